"""Distance of a fitted model from the machine on all rows: Theorem 3 for a `RankRC`."""

from typing import Any

import numpy as np

from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Kernel, Laplace, Matrix
from rareclass.labels.two_classes import Labels, RowNumbers
from rareclass.ranking.losses import PairLoss, SmoothedHinge
from rareclass.ranking.losses.logistic import Logistic
from rareclass.ranking.ranking_data import PreparedRanking, block_rows
from rareclass.rows import Block, RowSource, rows_of
from rareclass.rows.source import equal_rows, stacked
from rareclass.theory import subset_bound

# Losses of a single pair whose slope is between -1 and 0.
_SLOPE_OF_ONE = (SmoothedHinge, Logistic)
_ROUNDING = 1e-9


def outside_landmarks(prepared: PreparedRanking) -> tuple[float, float]:
    """Share of the weight of the rare and of the majority rows that were not made landmarks.

    Rows that equal a landmark without having been chosen count as outside: finding them would take
    a pass, and counting too many keeps a bound a bound.
    """
    labels, chosen = prepared.labels, prepared.landmarks.rows
    if chosen is None:  # points were given
        return 1.0, 1.0
    return (
        _share_outside(labels.rare, labels.rare_weight, chosen),
        _share_outside(labels.majority, labels.majority_weight, chosen),
    )


def _share_outside(rows: RowNumbers, weight: np.ndarray | None, chosen: np.ndarray) -> float:
    """Share of the weight of increasing row numbers that are not chosen; O(chosen log rows)."""
    chosen = np.unique(chosen[chosen <= rows[-1]])
    place = rows.searchsorted(chosen)
    place = place[rows[place] == chosen]
    if weight is None:
        return (len(rows) - len(place)) / len(rows)
    return float((weight.sum() - weight[place].sum()) / weight.sum())


def bound_without_rows(
    kernel: Kernel, outside: tuple[float, float], lam: float, kappa: float | None
) -> float:
    """The bound of `RankRC.stability_bound` where only the shares `outside_landmarks` are known."""
    kappa = kappa or _constant_diagonal(kernel)
    if kappa is None:
        raise ValueError(
            f"the largest k(x, x) of the kernel {type(kernel).__name__} depends on the rows: "
            "pass the training rows, X and y, or kappa=."
        )
    return float(subset_bound(*outside, lam, kappa=kappa))


def bound_on_rows(
    source: RowSource,
    labels: Labels,
    expansion: KernelExpansion,
    whitener: np.ndarray,
    lam: float,
    kappa: float | None,
    n_jobs: int | None,
) -> float:
    """The same with the training rows: how much of each the landmarks cannot express."""
    size = block_rows(expansion.n_landmarks, np.dtype(np.float64))
    rows = rows_of(source, block_rows=size, n_jobs=n_jobs)
    found = rows.map(_residuals, expansion.kernel, expansion.landmarks, whitener)
    rare = np.average(found[labels.rare], axis=0, weights=labels.rare_weight)
    rest = np.average(found[labels.majority], axis=0, weights=labels.majority_weight)
    largest = float(found[np.concatenate([labels.rare, labels.majority]), 2].max())
    if kappa is not None and kappa < largest * (1.0 - _ROUNDING):
        raise ValueError(f"kappa={kappa!r} is below the largest k(x, x) of the rows, {largest:g}.")
    kappa = max(kappa or 0.0, largest)
    if kappa == 0.0:
        return 0.0  # every score is 0
    # Both are bounds. Where nearly all rows are landmarks the residuals are rounding errors,
    # whose fourth root is large.
    by_residuals = subset_bound(rare[0], rest[0], lam=lam, kappa=kappa, residuals=True)
    return float(min(by_residuals, subset_bound(rare[1], rest[1], lam=lam, kappa=kappa)))


def _residuals(block: Block, kernel: Kernel, points: Matrix, whitener: np.ndarray) -> np.ndarray:
    """Columns ||phi(x) - phi_R(x)||, 1 where a row equals no landmark, and k(x, x)."""
    outside = ~_is_among(block.X, points)
    X, Z = (A.astype(np.float64, copy=False) for A in (block.X, points))
    squares = np.asarray(kernel.diag(X), dtype=np.float64)
    features = kernel.block(X, Z) @ whitener
    left = np.maximum(squares - np.einsum("ij,ij->i", features, features), 0.0)
    return np.column_stack([outside * np.sqrt(left), outside, squares])


def _is_among(X: Matrix, points: Matrix) -> np.ndarray:
    """Mask of the rows of X that equal one of the points."""
    group = equal_rows(stacked([points, X]))[1]
    return np.isin(group[points.shape[0] :], group[: points.shape[0]])


def _constant_diagonal(kernel: Kernel) -> float | None:
    """k(x, x) of kernels for which it is one number; None for others."""
    inner = kernel.kernel if isinstance(kernel, FeatureScaled) else kernel
    return 1.0 if isinstance(inner, (Gaussian, Laplace)) else None


def check_is_ranksvm(penalty: str, named: Any, loss: PairLoss) -> None:
    """Refuse what the theorem is not about; `named` is the loss as the user gave it."""
    if penalty != "l2":
        raise ValueError(
            f"penalty={penalty!r}: the bound is about the penalty 'l2'. Refit with "
            "penalty='l2' and landmarks=model.landmark_rows_."
        )
    if not isinstance(loss, _SLOPE_OF_ONE):
        raise ValueError(
            f"loss={named!r}: the bound is about losses of single pairs with "
            "slopes of at most 1. Use loss='smoothed_hinge' or 'logistic', or give the slope of "
            "yours to rareclass.theory.subset_bound."
        )
