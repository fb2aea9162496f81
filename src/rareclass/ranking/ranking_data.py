"""Rows, labels and kernel of a ranking problem: read, drawn from, and prepared once for many uses.

1. `RankingData`: the rows with their target, the width of the kernel, scales of features
2. `prepare`: landmarks, the majority rows in blocks, the kernel of the rows that are held
3. `PreparedRanking.problem`: the ranking problem of all rows, or of a fold. A path of lams, or the
   folds of a cross-validation, are problems over the same kernel blocks: other lams, other weights
   (zero takes a row out), other landmarks (zero rows of the whitener).
4. `PreparedRanking.scored`: the training rows with the scores of solutions
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.utils import check_random_state

from rareclass.errors import ErrorKind
from rareclass.estimators.search import Fold, Scoring
from rareclass.folds.majority_part import DrawnRows, draw_class
from rareclass.kernels.expansion import (
    Coordinates,
    KernelExpansion,
    block_rows,
    block_scores,
    expand,
    orthonormalise,
    whiten,
)
from rareclass.kernels.kernels import KERNELS, FeatureScaled, given_width, make_kernel, mean_width
from rareclass.kernels.landmarks import Landmarks, choose_landmarks
from rareclass.labels.two_classes import Labels
from rareclass.machine import parse_bytes, size_text
from rareclass.ranking.losses import LabellingLoss, Loss
from rareclass.ranking.problem import RankingProblem
from rareclass.ranking.solvers.newton import Solution
from rareclass.ranking.solvers.part import kernel_is_worth_keeping, part_stride
from rareclass.ranking.targets import RankingScores, RankingTarget
from rareclass.rows import Budget, Rows, RowSource, RowValues, Token, rows_of

# Solvers in step share a pass of the rows; sixteen are the paper's path.
MOST_AT_ONCE = 16


@dataclass(frozen=True)
class KernelSettings:
    """Parameters of kernel and landmarks, as `RankRC` has them."""

    kernel: Any
    width: Any
    landmarks: Any
    memory: int | str
    n_jobs: int | None
    random_state: Any


@dataclass(frozen=True, eq=False)
class RankingData:
    """Rows with their labels, the loss of a pair and the kernel that is wanted."""

    settings: KernelSettings
    source: RowSource
    target: RankingTarget
    loss: Loss
    width: float  # sigma
    scales: np.ndarray | None = None  # of the features inside the kernel
    numbers: np.ndarray | None = None  # of the rows of a part, among all rows

    def drawn(self, most: int, seed: Any) -> Self:
        """At most so many of the rows, in memory; all of them where there are no more.

        Rows that are held are drawn where they are more than half of `most`, and the majority fills
        up. Those drawn of either weigh what all of them did.
        """
        labels = self.target.labels
        n_held, n_rest = len(labels.rare), len(labels.majority)
        if n_held + n_rest <= most:
            return self
        rng = np.random.default_rng(seed)
        most_held = max(most // 2, most - n_rest)
        held = draw_class(n_held, most_held, rng, labels.rare_weight)
        rest = draw_class(n_rest, most - len(held.rows), rng, labels.majority_weight)
        source, target = some_rows(self.source, self.target, held, rest)
        numbers = np.concatenate([labels.rare[held.rows], labels.majority[rest.rows]])
        return replace(self, source=source, target=target, numbers=numbers)


def some_rows(
    source: RowSource, target: RankingTarget, held: DrawnRows, rest: DrawnRows, dtype: Any = None
) -> tuple[RowSource, RankingTarget]:
    """Some rows in memory, those that are held first, in the order given.

    `held` are drawn among the rows that are held, `rest` among the majority. `dtype` is what values
    are turned into, by default none.
    """
    labels = target.labels
    chosen = np.concatenate([labels.rare[held.rows], labels.majority[rest.rows]])
    in_order = np.argsort(chosen)
    back = np.empty(len(chosen), dtype=np.int64)
    back[in_order] = np.arange(len(chosen))
    X = source.take(chosen[in_order])[back].astype(dtype or source.dtype)
    part = target.on_part(held.rows, held.weight, rest.weight)
    return RowSource(X.shape, X.dtype, lambda rows: X[rows], source.is_sparse), part


def prepare(data: RankingData, several: bool = False) -> "PreparedRanking":
    """Choose landmarks and lay out the majority rows in blocks within the memory allowed.

    `several`: more solutions are wanted than few passes serve. Raises `ValueError` when the
    matrices of landmarks do not fit.
    """
    settings, source, labels = data.settings, data.source, data.target.labels
    kernel = make_kernel(settings.kernel, data.width)
    # What a kernel of somebody's own costs is not known, and sparse products cost more.
    is_cheap = type(kernel) in KERNELS.values() and not source.is_sparse
    if data.scales is not None:
        kernel = FeatureScaled(kernel, data.scales)
    memory = parse_bytes(settings.memory)
    rng = check_random_state(settings.random_state)
    landmarks = choose_landmarks(settings.landmarks, kernel, source, labels, memory, rng)
    points, n_rows = landmarks.points, len(labels.majority)
    n_landmarks = points.shape[0]
    at_once, for_kernel = _share_out(memory, n_landmarks, len(labels.rare), source.dtype)
    # Solvers want blocks to remember zones, and the values at the last point.
    zones = n_rows // (part_stride(n_rows, n_landmarks) or 1)
    remembered = 8 * (n_rows + zones * (at_once + 1))
    rows = rows_of(
        source,
        labels.majority,
        labels.majority_weight,
        block_rows=block_rows(n_landmarks, source.dtype),
        budget=Budget(for_kernel, min(remembered, for_kernel // 4)),
        n_jobs=settings.n_jobs,
        keeps_arrays=not is_cheap
        or kernel_is_worth_keeping(n_rows, n_landmarks, source.n_features, several),
    )
    exact = points.astype(np.float64)
    K = kernel.block(exact, exact)  # symmetric but for rounding errors
    return PreparedRanking(
        data=data,
        rows=rows,
        expansion=KernelExpansion(kernel, points),
        landmarks=landmarks,
        loss=data.target.loss(data.loss),
        rare_kernel=kernel.block(source.take(labels.rare), points),
        landmark_kernel=0.5 * (K + K.T),
        at_once=at_once,
        columns_at_once=max(1, memory // 4 // (8 * n_rows)),
    )


@dataclass(frozen=True)
class PreparedRanking:
    """Rows in blocks, landmarks and kernels: all that does not depend on lam or on the fold."""

    data: RankingData
    rows: Rows
    expansion: KernelExpansion
    landmarks: Landmarks
    loss: Loss  # the target's
    rare_kernel: np.ndarray
    landmark_kernel: np.ndarray  # between the landmarks, in float64 whatever their dtype
    at_once: int
    columns_at_once: int

    def problem(
        self, lam: float, held_out: np.ndarray | None = None, coordinates: Coordinates = whiten
    ) -> RankingProblem:
        """The problem on all rows, or without those held out: of pairs, or of labellings.

        The rows of the mask `held_out` are neither summed, nor held, nor landmarks. `coordinates`
        makes the matrix from unknowns to coefficients out of the landmarks' kernel.
        """
        labels, loss = self.data.target.labels, self.loss
        rare_weight, kept, use, K = labels.rare_weight, None, None, self.landmark_kernel
        if held_out is not None:
            rare_weight = rare_weight * ~held_out[labels.rare]
            kept = ~held_out[labels.majority]
            use = self.landmarks.usable(held_out)
            if not use.any():
                raise ErrorKind.TOO_FEW_ROWS.error(
                    "a fold holds out every row that is a landmark: use more landmarks, or folds "
                    "that leave some of them in the training part."
                )
            K = K[np.ix_(use, use)]
            if coordinates is whiten:
                coordinates = orthonormalise  # `transform` never uses the coordinates of a fold
        whitener = coordinates(K, self.data.source.dtype)
        if use is not None:
            whitener, part = np.zeros((len(use), whitener.shape[1])), whitener
            whitener[use] = part
        if labels.majority_weight is not None:
            majority = float(labels.majority_weight[slice(None) if kept is None else kept].sum())
        else:
            majority = float(self.rows.n_rows if kept is None else np.count_nonzero(kept))
        if isinstance(loss, LabellingLoss):
            scale = 1.0  # there are no pairs
        else:
            scale = 1.0 / loss.pair_weight(rare_weight, majority)
        return RankingProblem(
            rows=self.rows,
            expansion=self.expansion,
            loss=loss,
            rare_kernel=self.rare_kernel,
            rare_weight=rare_weight,
            whitener=whitener,
            lam=lam,
            scale=scale,
            majority_total=majority,
            kept=None if kept is None else RowValues(kept),
        )

    def scored(
        self, coefficients: np.ndarray, token: Token | None = None, tested: np.ndarray | None = None
    ) -> RankingScores:
        """The training rows, or those of the mask `tested` at their share of a pass, scored.

        A column of scores a column of coefficients. `token` names the function when it is one that
        blocks may remember the values of.
        """
        target = self.data.target
        labels, weight = target.labels, target.labels.majority_weight
        held = slice(None) if tested is None else tested[labels.rare]
        chosen = slice(None) if tested is None else tested[labels.majority]
        which = None if isinstance(chosen, slice) else RowValues(chosen)
        return RankingScores(
            expand(self.rare_kernel[held], coefficients),
            self.rows.map(block_scores, self.expansion, coefficients, token, which),
            target.held_code[held],
            target.majority_code,
            None if weight is None else labels.rare_weight[held],
            None if weight is None else weight[chosen],
        )

    def scored_part(self, coefficients: np.ndarray) -> RankingScores:
        """Score rare rows and the solvers' part of the majority, weighed to stand for all."""
        stride = part_stride(self.rows.n_rows, self.expansion.n_landmarks)
        if stride is None:
            return self.scored(coefficients)
        rows, labels = self.rows.every(stride), self.data.target.labels
        weight = labels.majority_weight
        total = float(self.rows.n_rows if weight is None else weight.sum())
        return (
            replace(self, rows=rows)
            .scored(coefficients)
            ._replace(
                held_weight=labels.rare_weight,
                majority_weight=rows.weight * (total / rows.weight.sum()),
            )
        )

    def fold_scores(
        self, folds: Sequence[Fold], paths: Sequence[Sequence[Solution]], *measures: Scoring
    ) -> np.ndarray:
        """Measures of the solutions of each fold on the rows that it tests.

        Of shape (measures, folds, solutions); a pass for each fold and as many solutions as there
        is room for the scores of.
        """
        scores = []
        for fold, path in zip(folds, paths, strict=True):
            of_fold: list[list[float]] = []
            for start in range(0, len(path), self.columns_at_once):
                some = path[start : start + self.columns_at_once]
                rows = self.scored(coefficients_of(some), tested=fold.tested)
                y, weight = rows.y, rows.weight
                for column in np.ascontiguousarray(rows.scores.T):
                    of_fold.append([measure(y, column, weight) for measure in measures])
            scores.append(of_fold)
        return np.array(scores).transpose(2, 0, 1)


def coefficients_of(solutions: Sequence[Solution]) -> np.ndarray:
    """A column of coefficients a solution, of shape (n_landmarks, n_solutions)."""
    return np.column_stack([solution.at.coefficients for solution in solutions])


def width_of_rows(settings: KernelSettings, source: RowSource, labels: Labels) -> float:
    """Sigma: the number given, or the mean distance of the rows that count; one pass of them."""
    width = given_width(settings.width, settings.kernel)
    if width is not None:
        return width
    index = weight = None  # all of the rows
    if labels.majority_weight is not None:
        index = np.concatenate([labels.rare, labels.majority])
        order = np.argsort(index)
        index = index[order]
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])[order]
    shift = None if source.is_sparse else source.take(labels.rare[:1]).astype(np.float64)[0]
    return mean_width(rows_of(source, index, weight, n_jobs=settings.n_jobs), shift)


def held_whole_bytes(n_landmarks: int, n_rare: int, itemsize: int) -> tuple[int, int]:
    """Bytes of what no budget can cut: three matrices of landmarks, and the rare kernel."""
    return 3 * 8 * n_landmarks**2, itemsize * n_rare * n_landmarks


def _share_out(memory: int, n_landmarks: int, n_rare: int, dtype: np.dtype) -> tuple[int, int]:
    """Number of solvers that may run at once, and bytes left for kernel blocks."""
    square, rare = held_whole_bytes(n_landmarks, n_rare, dtype.itemsize)
    if square + rare > memory:
        most = int(min((memory / 48) ** 0.5, memory / (2 * dtype.itemsize * n_rare)))
        remedy = f"Allow at least memory='{-(-(square + rare) // 1024)}KiB'"
        if most > 0:
            remedy += f", or pass landmarks=('rare', k) with k of at most {most:,}"
        raise ErrorKind.MEMORY.error(
            f"memory= allows {size_text(memory)}; {n_landmarks:,} landmarks and their "
            f"factorisation take {size_text(square)}, their kernel with {n_rare:,} rare rows "
            f"{size_text(rare)}. {remedy}."
        )
    of_solver = square // 3  # its preconditioner
    left = memory - square - rare
    at_once = int(np.clip(min(memory // 4, left) // of_solver, 1, MOST_AT_ONCE))
    return at_once, max(left - at_once * of_solver, 0)
