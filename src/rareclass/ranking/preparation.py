"""From a table and labels to the pieces of a ranking problem, prepared once and used many times.

A path of lams, or the folds of a cross-validation, are problems over the same kernel blocks:
other lams, other weights (zero takes a row out), other landmarks (zero rows of the whitener).
"""

from contextlib import AbstractContextManager
from dataclasses import dataclass
from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.multiclass import check_classification_targets, type_of_target
from sklearn.utils.validation import _check_sample_weight
from threadpoolctl import threadpool_limits

from rareclass.byte_sizes import parse_bytes, size_text
from rareclass.ranking.expansion import KernelExpansion, block_scores, expand
from rareclass.ranking.kernels import Kernel, make_kernel, mean_width, needs_width
from rareclass.ranking.landmarks import LandmarkRule, Landmarks, distinct_landmarks
from rareclass.ranking.losses import PairLoss, make_loss
from rareclass.ranking.part import expected_passes
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.whitening import whiten
from rareclass.rows import ArrayRows, Budget, RowSource, as_source

# A kernel block of this size stays in a core's second-level cache between its uses.
_BLOCK_BYTES = 2**22
_MOST_BLOCK_ROWS = 8192
_LEAST_BLOCK_ROWS = 64
# What a solver wants blocks to remember of a row besides its kernel.
_ROW_BYTES = 24
# Solvers in step share a pass of the rows; sixteen are the paper's path.
_MOST_AT_ONCE = 16
# Up to here one BLAS thread factorises as fast as several.
_FEW_LANDMARKS = 1024


class Labels(NamedTuple):
    """The two classes, which of them is rare, and the rows that count.

    ``rare`` and ``majority`` are row numbers in increasing order, of rows with weight above 0.
    """

    classes: np.ndarray
    pos_label: Any
    rare: np.ndarray
    majority: np.ndarray
    rare_weight: np.ndarray
    majority_weight: np.ndarray | None


@dataclass(frozen=True)
class Prepared:
    """Everything that does not depend on lam or on the fold."""

    n_rows: int
    labels: Labels
    rows: ArrayRows
    expansion: KernelExpansion
    landmarks: Landmarks
    width: float
    loss: PairLoss
    rare_kernel: np.ndarray
    landmark_kernel: np.ndarray
    dtype: np.dtype
    at_once: int

    def blas_threads(self) -> AbstractContextManager:
        """BLAS threads for the matrices of landmarks: one while they are small.

        Threads that BLAS starts go on spinning between its calls, in the way of the pool that
        works on blocks.
        """
        small = self.landmark_kernel.shape[0] < _FEW_LANDMARKS
        return threadpool_limits(1 if small else self.rows.n_threads, user_api="blas")

    def problem(self, lam: float, held_out: np.ndarray | None = None) -> RankingProblem:
        """The ranking problem on all rows, or without those held out.

        Parameters
        ----------
        lam : float
        held_out : ndarray of bool over all rows, or None
            Rows that are neither summed, nor held, nor landmarks.
        """
        labels = self.labels
        rare_weight, kept = labels.rare_weight, None
        if held_out is not None:
            rare_weight = rare_weight * ~held_out[labels.rare]
            kept = ~held_out[labels.majority]
            use = self.landmarks.usable(held_out)
            if not use.any():
                raise ValueError(
                    "a fold holds out every row that is a landmark: use more landmarks, or folds "
                    "that leave some of them in the training part."
                )
            part = whiten(self.landmark_kernel[np.ix_(use, use)], self.dtype)
            whitener = np.zeros((len(use), part.shape[1]))
            whitener[use] = part
        else:
            whitener = whiten(self.landmark_kernel, self.dtype)
        majority = self.rows.weight if kept is None else self.rows.weight[kept]
        return RankingProblem(
            rows=self.rows,
            expansion=self.expansion,
            loss=self.loss,
            rare_kernel=self.rare_kernel,
            rare_weight=rare_weight,
            whitener=whitener,
            lam=lam,
            scale=1.0 / float(rare_weight.sum() * majority.sum()),
            kept=kept,
        )

    def training_scores(
        self,
        coefficients: np.ndarray,
        token: object = None,
        tested: np.ndarray | None = None,
    ) -> tuple[np.ndarray, np.ndarray]:
        """Scores of the rare and of the majority rows; one column a column of coefficients.

        Parameters
        ----------
        coefficients : ndarray of shape (n_landmarks,) or (n_landmarks, k)
        token : object
            Names the function when it is one that blocks may remember the values of.
        tested : ndarray of bool over all rows, or None
            Asks for the scores of some rows only, at their share of a pass.
        """
        labels = self.labels
        rare, chosen = self.rare_kernel, None
        if tested is not None:
            rare, chosen = rare[tested[labels.rare]], tested[labels.majority]
        majority = self.rows.map(block_scores, self.expansion, coefficients, token, chosen)
        return expand(rare, coefficients), majority


def read_labels(y: Any, sample_weight: Any, pos_label: Any, n_rows: int) -> Labels:
    """Find the rare class: the label with less weight, or `pos_label`.

    Equal weights are settled by the number of rows, then by the order of the labels (the last
    one is rare).

    Raises
    ------
    ValueError
        On one class or more than two, a missing label, a `pos_label` that does not occur, a
        wrong length or a weight below zero.
    """
    if y is None:
        raise ValueError("requires y to be passed, but the target y is None")
    y = column_or_1d(np.asarray(y), warn=True)
    if len(y) != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: [{n_rows}, {len(y)}]"
        )
    missing = _missing_labels(y)
    if len(missing):
        raise ValueError(
            f"Input y contains NaN or infinity, or no label at all: row {missing[0]}. "
            "Drop the rows without a label."
        )
    weight = None
    if sample_weight is not None:
        like = np.empty((n_rows, 0))
        weight = _check_sample_weight(
            sample_weight, like, dtype=np.float64, ensure_non_negative=True
        )
        if not weight.any():
            raise ValueError("every sample_weight is zero: there are no rows to learn from.")
        weight = weight / weight.max()  # only their ratios count, and 1e160 squared does not fit
    return _split_classes(y, weight, pos_label)


def _missing_labels(y: np.ndarray) -> np.ndarray:
    """Rows whose label is None, NaN, infinite, or a missing value of pandas."""
    if y.dtype.kind == "f":
        return np.flatnonzero(~np.isfinite(y))
    if y.dtype != object:
        return np.empty(0, dtype=int)
    names = ("NoneType", "NAType", "NaTType")
    return np.flatnonzero(
        [type(v).__name__ in names or (isinstance(v, float) and not np.isfinite(v)) for v in y]
    )


def _split_classes(y: np.ndarray, weight: np.ndarray | None, pos_label: Any) -> Labels:
    kept = np.arange(len(y)) if weight is None else np.flatnonzero(weight)
    classes, code = _classes_of(y if weight is None else y[kept])
    check_classification_targets(classes)
    if len(classes) == 1:
        raise ValueError(
            f"the target holds one class only, {classes[0]!r}: there is nothing to rank it "
            "against. Rows of a second class are needed."
        )
    if len(classes) > 2:
        raise ValueError(
            "Only binary classification is supported. The type of the target is "
            f"{type_of_target(y)} with {len(classes)} labels. Use y == label to learn one label "
            "against the rest (--positive on the command line), or OrdinalRankRC for levels "
            "that have an order."
        )
    kept_weight = np.ones(len(kept)) if weight is None else weight[kept]
    if pos_label is None:
        mass = np.bincount(code, weights=kept_weight)
        count = np.bincount(code)
        tied = np.isclose(mass[0], mass[1], rtol=1e-9)
        rare_code = int(count[1] <= count[0]) if tied else int(mass[1] < mass[0])
    else:
        found = np.flatnonzero(classes == pos_label)
        if not len(found):
            raise ValueError(f"pos_label={pos_label!r} is not among the labels {list(classes)}.")
        rare_code = int(found[0])
    is_rare = code == rare_code
    return Labels(
        classes=classes,
        pos_label=classes[rare_code],
        rare=kept[is_rare],
        majority=kept[~is_rare],
        rare_weight=kept_weight[is_rare],
        majority_weight=None if weight is None else kept_weight[~is_rare],
    )


def _classes_of(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The labels, sorted, and the number of each row's label among them."""
    other = y != y[0]
    second = int(other.argmax())
    # Two labels, the usual case, need no sorting of the rows.
    if y.dtype != object and other[second] and (~other | (y == y[second])).all():
        classes = np.sort(y[[0, second]])
        return classes, (y == classes[1]).astype(int)
    return np.unique(y, return_inverse=True)


def prepare(estimator: Any, X: Any, y: Any, sample_weight: Any, n_solutions: int = 1) -> Prepared:
    """Read the rows and labels with the parameters of a RankRC or RankRCCV `estimator`.

    `n_solutions` are wanted from them: lams times folds.
    """
    names = getattr(estimator, "feature_names_in_", None)
    source = as_source(X, names)
    labels = read_labels(y, sample_weight, estimator.pos_label, source.n_rows)
    width = _width(estimator, source, labels)
    kernel = make_kernel(estimator.kernel, width)
    landmarks = _landmarks(estimator, kernel, labels, source)
    points = landmarks.points
    memory = parse_bytes(estimator.memory)
    at_once, for_kernel = _share_out(memory, points.shape[0], len(labels.rare), source.dtype)
    expansion = KernelExpansion(kernel, points)
    return Prepared(
        n_rows=source.n_rows,
        labels=labels,
        rows=ArrayRows(
            source,
            labels.majority,
            labels.majority_weight,
            block_rows=block_rows(points.shape[0], source.dtype),
            budget=Budget(for_kernel, min(_ROW_BYTES * len(labels.majority), for_kernel // 4)),
            n_jobs=estimator.n_jobs,
            n_uses=expected_passes(len(labels.majority), points.shape[0], n_solutions),
        ),
        expansion=expansion,
        landmarks=landmarks,
        width=width,
        loss=make_loss(estimator.loss, estimator.eps),
        rare_kernel=expansion.kernel.block(source.take(labels.rare), points),
        landmark_kernel=landmark_kernel(expansion),
        dtype=source.dtype,
        at_once=at_once,
    )


def block_rows(n_landmarks: int, dtype: np.dtype) -> int:
    """Rows a block, so that its kernel block stays in cache."""
    fitting = _BLOCK_BYTES // (max(n_landmarks, 1) * dtype.itemsize)
    return int(min(max(fitting, _LEAST_BLOCK_ROWS), _MOST_BLOCK_ROWS))


def _landmarks(estimator: Any, kernel: Kernel, labels: Labels, source: RowSource) -> Landmarks:
    rule = LandmarkRule(estimator.landmarks)
    if rule.points is not None:
        points = as_source(rule.points)
        if points.n_features != source.n_features:
            raise ValueError(
                f"landmarks has {points.n_features} columns, X has {source.n_features}."
            )
        return distinct_landmarks(points.take(slice(None)), None)
    kept = np.sort(np.concatenate([labels.rare, labels.majority]))
    rng = check_random_state(estimator.random_state)
    rows = rule.choose(labels.rare, kept, source.take, rng, kernel)
    return distinct_landmarks(source.take(rows), rows)


def _width(estimator: Any, source: RowSource, labels: Labels) -> float:
    width = estimator.width
    if isinstance(width, str):
        if width != "mean":
            raise ValueError(f"width={width!r} is not 'mean' or a number above 0.")
        if not needs_width(estimator.kernel):
            return 1.0
        index = np.concatenate([labels.rare, labels.majority])
        weight = None
        if labels.majority_weight is not None:
            weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        everything = ArrayRows(source, index, weight, n_jobs=estimator.n_jobs)
        shift = None if source.is_sparse else source.take(labels.rare[:1]).astype(np.float64)[0]
        return mean_width(everything, shift)
    if not (isinstance(width, Real) and 0.0 < float(width) < np.inf):
        raise ValueError(f"width={width!r} is not 'mean' or a number above 0.")
    return float(width)


def held_whole_bytes(n_landmarks: int, n_rare: int, itemsize: int) -> tuple[int, int]:
    """Bytes of what no budget can cut: three matrices of landmarks, and the rare kernel."""
    return 3 * 8 * n_landmarks**2, itemsize * n_rare * n_landmarks


def _share_out(memory: int, n_landmarks: int, n_rare: int, dtype: np.dtype) -> tuple[int, int]:
    """How many solvers may run at once, and the bytes that are left for kernel blocks.

    Raises
    ------
    ValueError
        When what cannot be cut does not fit.
    """
    square, rare = held_whole_bytes(n_landmarks, n_rare, dtype.itemsize)
    if square + rare > memory:
        most = int(min((memory / 48) ** 0.5, memory / (2 * dtype.itemsize * n_rare)))
        remedy = f"Allow at least memory='{-(-(square + rare) // 1024)}KiB'"
        if most > 0:
            remedy += f", or pass landmarks=('rare', k) with k of at most {most:,}"
        raise ValueError(
            f"memory= allows {size_text(memory)}; {n_landmarks:,} landmarks and their "
            f"factorisation take {size_text(square)}, their kernel with {n_rare:,} rare rows "
            f"{size_text(rare)}. {remedy}."
        )
    of_solver = square // 3  # its preconditioner
    at_once = int(np.clip(memory // 4 // of_solver, 1, _MOST_AT_ONCE))
    return at_once, max(memory - square - rare - at_once * of_solver, 0)


def landmark_kernel(expansion: KernelExpansion) -> np.ndarray:
    """Kernel between the landmarks in float64, whatever their dtype, exactly symmetric."""
    points = expansion.landmarks.astype(np.float64)
    K = expansion.kernel.block(points, points)
    return 0.5 * (K + K.T)
