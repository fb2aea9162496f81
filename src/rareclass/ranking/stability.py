"""How far a fitted model can be from the machine on all rows: Theorem 3 for a `RankRC`."""

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import validate_data

from rareclass.kernels.kernels import Gaussian, Kernel, Laplace, Matrix
from rareclass.labels.two_classes import plain, read_labels
from rareclass.ranking.losses import SmoothedHinge, make_loss
from rareclass.ranking.losses.logistic import Logistic
from rareclass.ranking.preparation import Prepared, block_rows
from rareclass.rows import ArrayRows, Block, LabelledRows, as_source, header
from rareclass.rows.equal_rows import equal_rows
from rareclass.theory import subset_bound

# Losses of a single pair whose slope is between -1 and 0.
_SLOPE_OF_ONE = (SmoothedHinge, Logistic)
_ROUNDING = 1e-9


def outside_landmarks(prepared: Prepared) -> tuple[float, float]:
    """Share of the weight of the rare and of the majority rows that were not made landmarks.

    Rows that equal a landmark without having been chosen count as outside: finding them would take
    a pass, and counting too many keeps a bound a bound.
    """
    labels, chosen = prepared.labels, prepared.landmarks.rows
    if chosen is None:  # points were given
        return 1.0, 1.0
    return (
        float(np.average(~np.isin(labels.rare, chosen), weights=labels.rare_weight)),
        float(np.average(~np.isin(labels.majority, chosen), weights=labels.majority_weight)),
    )


def model_bound(model: Any, X: Any, y: Any, sample_weight: Any, kappa: float | None) -> float:
    """The bound of `RankRC.stability_bound`, which has the meaning of the arguments."""
    _check_is_ranksvm(model)
    kernel = model._expansion().kernel
    if X is None:
        if y is not None or sample_weight is not None:
            raise ValueError("X is missing: pass the training rows beside their labels.")
        kappa = kappa or _constant_diagonal(kernel)
        if kappa is None:
            raise ValueError(
                f"the largest k(x, x) of the kernel {type(kernel).__name__} depends on the rows: "
                "pass the training rows, X and y, or kappa=."
            )
        rare, majority = model._outside
        return float(subset_bound(rare, majority, model.lam, kappa=kappa))
    if isinstance(X, LabelledRows) and y is None:
        y, sample_weight = X.y, X.sample_weight
    residuals, outside, largest = _class_means(model, X, y, sample_weight)
    if kappa is not None and kappa < largest * (1.0 - _ROUNDING):
        raise ValueError(f"kappa={kappa!r} is below the largest k(x, x) of the rows, {largest:g}.")
    kappa = max(kappa or 0.0, largest)
    if kappa == 0.0:
        return 0.0  # every score is 0
    # Both are bounds. Where nearly all rows are landmarks the residuals are rounding errors,
    # whose fourth root is large.
    lam = model.lam
    by_residuals = subset_bound(*residuals, lam=lam, kappa=kappa, residuals=True)
    return float(min(by_residuals, subset_bound(*outside, lam=lam, kappa=kappa)))


def _class_means(
    model: Any, X: Any, y: Any, sample_weight: Any
) -> tuple[tuple[float, float], tuple[float, float], float]:
    """By class, mean residual norm and share outside the landmarks; the largest k(x, x)."""
    expansion = model._expansion()
    source = as_source(X, getattr(model, "feature_names_in_", None))
    validate_data(model, header(X), reset=False, skip_check_array=True)
    labels = read_labels(y, sample_weight, plain(model.pos_label_), source.n_rows)
    size = block_rows(expansion.n_landmarks, np.dtype(np.float64))
    rows = ArrayRows(source, block_rows=size, n_jobs=model.n_jobs)
    points = expansion.landmarks
    found = rows.map(_residuals, expansion.kernel, points, model.whitener_)
    rare = np.average(found[labels.rare], axis=0, weights=labels.rare_weight)
    rest = np.average(found[labels.majority], axis=0, weights=labels.majority_weight)
    largest = float(found[np.concatenate([labels.rare, labels.majority]), 2].max())
    return (rare[0], rest[0]), (rare[1], rest[1]), largest


def _residuals(block: Block, kernel: Kernel, points: Matrix, whitener: np.ndarray) -> np.ndarray:
    """Of each row: ||phi(x) - phi_R(x)||, 1 where it equals no landmark, and k(x, x)."""
    outside = ~_is_among(block.X, points)
    X, Z = (A.astype(np.float64, copy=False) for A in (block.X, points))
    squares = np.asarray(kernel.diag(X), dtype=np.float64)
    features = kernel.block(X, Z) @ whitener
    left = np.maximum(squares - np.einsum("ij,ij->i", features, features), 0.0)
    return np.column_stack([outside * np.sqrt(left), outside, squares])


def _is_among(X: Matrix, points: Matrix) -> np.ndarray:
    """Which rows of X equal one of the points."""
    both: Any = [points, X]
    if any(sparse.issparse(part) for part in both):
        both = sparse.vstack([sparse.csr_array(part) for part in both], format="csr")
    else:
        both = np.concatenate([np.asarray(part) for part in both])
    group = equal_rows(both)[1]
    return np.isin(group[points.shape[0] :], group[: points.shape[0]])


def _constant_diagonal(kernel: Kernel) -> float | None:
    """k(x, x) of kernels for which it is one number; None for others."""
    inner = getattr(kernel, "kernel", kernel)  # of a kernel on scaled features
    return 1.0 if isinstance(inner, (Gaussian, Laplace)) else None


def _check_is_ranksvm(model: Any) -> None:
    """Refuse what the theorem is not about."""
    if model.penalty != "l2":
        raise ValueError(
            f"penalty={model.penalty!r}: the bound is about the penalty 'l2'. Refit with "
            "penalty='l2' and landmarks=model.landmark_rows_."
        )
    loss = make_loss(model.loss, model.eps, model.loss_params)
    if not isinstance(loss, _SLOPE_OF_ONE):
        raise ValueError(
            f"loss={model.loss!r}: the bound is about losses of single pairs with slopes of at "
            "most 1. Use loss='smoothed_hinge' or 'logistic', or give the slope of yours to "
            "rareclass.theory.subset_bound."
        )
