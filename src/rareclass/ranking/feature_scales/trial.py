"""How well given scales rank held-out rows: folds, lams and their AUCs."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.estimators.search import Fold
from rareclass.folds.majority_part import DrawnRows, weight_for_all
from rareclass.machine import blas_threads
from rareclass.ranking.feature_scales.gradients import held_out_gradients
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.ranking_data import (
    KernelSettings,
    PreparedRanking,
    RankingData,
    prepare,
    some_rows,
)
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.targets import RankingTarget
from rareclass.rows import Block, RowSource, rows_of

_BLOCK_BYTES = 2**24
# Odd multipliers of a mixing step that spreads every bit (MurmurHash3's finaliser).
_FIRST, _SECOND = np.uint64(0xFF51AFD7ED558CCD), np.uint64(0xC4CEB9FE1A85EC53)
_SHIFT = np.uint64(33)


def row_hashes(X: Any) -> np.ndarray:
    """A number for each row that depends on its values alone: uint64 of shape (n_rows,).

    float32 and float64, dense and CSR rows of equal values have equal numbers.
    """
    # The bits of small whole numbers are nearly all zero: they are mixed before columns tell them
    # apart, and again so that sums do not cancel.
    rng = np.random.default_rng(0)
    columns = rng.integers(1, 2**63, X.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if not sparse.issparse(X):
        return _mixed(_mixed(_bits(X)) * columns).sum(axis=1, dtype=np.uint64)
    X = sparse.csr_array(X)
    values = _mixed(_mixed(_bits(X.data)) * columns[X.indices])
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(values, dtype=np.uint64)])
    return sums[X.indptr[1:]] - sums[X.indptr[:-1]]


def _bits(values: np.ndarray) -> np.ndarray:
    # Adding zero makes -0.0 the 0.0 that it equals, whose bits are all zero.
    return (np.asarray(values, dtype=np.float64) + 0.0).view(np.uint64)


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """Zero stays zero, so that a CSR row need not list its zeros."""
    numbers = (numbers ^ (numbers >> _SHIFT)) * _FIRST
    numbers = (numbers ^ (numbers >> _SHIFT)) * _SECOND
    return numbers ^ (numbers >> _SHIFT)


def distinct_rows(
    source: RowSource, target: RankingTarget, most_held: int, most_majority: Callable[[int], int]
) -> tuple[RowSource, RankingTarget]:
    """Distinct rows in memory, in float64; each class weighs what it did.

    Rows that are held come first. There are no more of them than `most_held`, those of the
    smallest hashes, and of the majority than `most_majority` of the number that are held. Cost:
    one reading of the rows, in order, and one of those that are kept.
    """
    labels = target.labels
    size = max(1, _BLOCK_BYTES // (8 * source.n_features))
    hashes = rows_of(source, block_rows=size, n_jobs=1).map(_hashes_of_block)
    keys = _apart_by_label(hashes[labels.rare], target.held_code)
    held = _merged(keys, labels.rare_weight, most_held)
    most = most_majority(len(held.rows))
    rest = _merged(hashes[labels.majority], labels.majority_weight, most)
    return some_rows(source, target, held, rest, np.float64)


def _hashes_of_block(block: Block) -> np.ndarray:
    return row_hashes(block.X)


def _apart_by_label(hashes: np.ndarray, code: np.ndarray) -> np.ndarray:
    """Hashes that differ, too, where equal rows have different labels."""
    if (code == code[0]).all():
        return hashes
    return _mixed(hashes ^ _mixed(code.astype(np.uint64) + np.uint64(1)))


def _merged(hashes: np.ndarray, weight: np.ndarray | None, most: int) -> DrawnRows:
    """Positions of one row of each hash, in the order of the hashes, and the weight of its copies.

    The weights of the rows that are kept sum to the weight of all rows.
    """
    _, first, which = np.unique(hashes, return_index=True, return_inverse=True)
    summed = np.bincount(which, weight, minlength=len(first)).astype(np.float64)
    return DrawnRows(first[:most], weight_for_all(summed, np.arange(len(first))[:most]))


N_FOLDS = 5
# A start for the gradient, and for a comparison of AUCs: no more digits are needed.
_TOL, _MAX_ITER = 1e-2, 100


class Trial(NamedTuple):
    """Models of all folds and lams with the same scales.

    ``lams`` are relative to the mean of k(z, z) over the landmarks; ``scores`` of shape (n_folds,
    n_lams) are held-out AUCs.
    """

    lams: np.ndarray
    scores: np.ndarray
    prepared: PreparedRanking
    folds: list[Fold]
    weights: list[list[np.ndarray]]  # by fold and lam, whitened coordinates
    unit: float

    @property
    def best(self) -> int:
        """Position of the lam of the highest mean AUC; the largest of equals."""
        means = self.scores.mean(axis=0)
        return max(range(len(means)), key=lambda k: (means[k], self.lams[k]))


@dataclass(frozen=True)
class Study:
    """Distinct rows in memory to try scales on; `eps` is of the smoothed hinge."""

    source: RowSource
    target: RankingTarget
    kernel: Any
    width: float
    eps: float
    memory: int | str
    n_jobs: int | None
    seed: int
    variance: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "variance", self._variance())

    def normalised(self, squares: np.ndarray) -> np.ndarray:
        """Squared scales times a number, so that rows are as far apart as without scales.

        The mean squared distance of two rows is twice the sum of the variances.
        """
        total = squares @ self.variance
        return squares * (self.variance.sum() / total) if total > 0.0 else squares

    def folds(self, number: int) -> list[Fold]:
        """Folds of every label; another `number`, other folds."""
        rng = np.random.default_rng([self.seed, number])
        labels, code = self.target.labels, self.target.held_code
        fold_of = np.empty(self.source.n_rows, dtype=np.int64)
        first = 0  # the next label goes on where the last one ended: small ones fill folds together
        for one in np.unique(code):
            rows = labels.rare[code == one]
            fold_of[rows] = (first + rng.permutation(len(rows))) % N_FOLDS
            first += len(rows)
        fold_of[labels.majority] = rng.permutation(len(labels.majority)) % N_FOLDS
        return [Fold(fold_of == k, fold_of == k) for k in range(N_FOLDS)]

    def without(self, rows: np.ndarray) -> "Study":
        """The same study on fewer rows: those where the mask `rows` is false."""
        kept = np.flatnonzero(~rows)
        X, old = self.source.take(kept), self.target.labels
        held, rest = ~rows[old.rare], ~rows[old.majority]
        assert old.majority_weight is not None
        target = self.target.on_part(
            np.flatnonzero(held), old.rare_weight[held], old.majority_weight[rest]
        )
        source = RowSource(X.shape, X.dtype, lambda chosen: X[chosen], self.source.is_sparse)
        return replace(self, source=source, target=target)

    def attempt(self, squares: np.ndarray, lams: np.ndarray, folds: list[Fold]) -> Trial:
        """Cross-validate squared scales."""
        settings = KernelSettings(
            self.kernel, self.width, self.target.labels.rare, self.memory, self.n_jobs, 0
        )
        loss, scales = SmoothedHinge(self.eps), np.sqrt(squares)
        prepared = prepare(
            RankingData(settings, self.source, self.target, loss, self.width, scales), several=True
        )
        unit = float(np.trace(prepared.landmark_kernel)) / len(prepared.landmark_kernel) or 1.0
        with blas_threads(1):
            solutions = solve_paths(
                [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
                [float(lam) for lam in lams * unit],
                _TOL,
                _MAX_ITER,
                prepared.at_once,
            )
        (scores,) = prepared.fold_scores(folds, solutions, self.target.measure)
        weights = [[solution.at.w for solution in path] for path in solutions]
        return Trial(lams, scores, prepared, folds, weights, unit)

    def gradients(self, trial: Trial) -> np.ndarray:
        """Derivative of every fold's held-out loss by the squared scales, at the best lam."""
        best = trial.best
        with blas_threads(1):
            return held_out_gradients(
                trial.prepared,
                self.source.take(self.target.labels.rare),
                trial.folds,
                [path[best] for path in trial.weights],
                float(trial.lams[best] * trial.unit),
            )

    def _variance(self) -> np.ndarray:
        """Weighted variance of every feature."""
        X, labels = self.source.take(slice(None)), self.target.labels
        assert labels.majority_weight is not None
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        weight = weight / weight.sum()
        mean = X.T @ weight
        if self.source.is_sparse:
            return np.maximum(np.asarray(X.multiply(X).T @ weight).ravel() - mean**2, 0.0)
        return weight @ (X - mean) ** 2
