"""How well given scales rank held-out rows: folds, lams and their AUCs."""

from dataclasses import dataclass, field, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from rareclass.estimators.folds import Fold
from rareclass.labels.two_classes import Labels
from rareclass.metrics import roc_auc
from rareclass.ranking.feature_scales.held_out_gradient import held_out_gradients
from rareclass.ranking.losses import SmoothedHinge
from rareclass.ranking.preparation import Prepared, prepare_rows
from rareclass.ranking.solvers.path import solve_paths
from rareclass.rows import RowSource

N_FOLDS = 5
# A start for the gradient, and for a comparison of AUCs: no more digits are needed.
_TOL, _MAX_ITER = 1e-2, 100


class Trial(NamedTuple):
    """Models of all folds and lams with the same scales.

    Attributes
    ----------
    lams : ndarray of shape (n_lams,)
        Relative to the mean of k(z, z) over the landmarks.
    scores : ndarray of shape (n_folds, n_lams)
        Held-out AUC.
    """

    lams: np.ndarray
    scores: np.ndarray
    prepared: Prepared
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
    """Rows in memory to try scales on.

    Parameters
    ----------
    source : RowSource
        Distinct rows.
    labels : Labels
    kernel : str or Kernel
    width : float
    eps : float
        Of the smoothed hinge.
    memory : int or str
    n_jobs : int or None
    seed : int
    """

    source: RowSource
    labels: Labels
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
        """Folds of both classes; another `number`, other folds."""
        rng = np.random.default_rng([self.seed, number])
        fold_of = np.empty(self.source.n_rows, dtype=np.int64)
        for rows in (self.labels.rare, self.labels.majority):
            fold_of[rows] = rng.permutation(len(rows)) % N_FOLDS
        return [Fold(fold_of == k, fold_of == k) for k in range(N_FOLDS)]

    def without(self, rows: np.ndarray) -> "Study":
        """The same study on fewer rows: those where the mask `rows` is false."""
        kept = np.flatnonzero(~rows)
        X, old = self.source.take(kept), self.labels
        rare, rest = ~rows[old.rare], ~rows[old.majority]
        assert old.majority_weight is not None
        labels = old._replace(
            rare=np.arange(rare.sum()),
            majority=np.arange(rare.sum(), len(kept)),
            rare_weight=old.rare_weight[rare],
            majority_weight=old.majority_weight[rest],
        )
        source = RowSource(X.shape, X.dtype, lambda chosen: X[chosen], self.source.is_sparse)
        return replace(self, source=source, labels=labels)

    def attempt(self, squares: np.ndarray, lams: np.ndarray, folds: list[Fold]) -> Trial:
        """Cross-validate squared scales."""
        settings = SimpleNamespace(
            kernel=self.kernel,
            width=self.width,
            landmarks=self.labels.rare,
            memory=self.memory,
            n_jobs=self.n_jobs,
            random_state=0,
        )
        loss = SmoothedHinge(self.eps)
        scales = np.sqrt(squares)
        prepared = prepare_rows(settings, self.source, self.labels, loss, True, scales=scales)
        unit = float(np.trace(prepared.landmark_kernel)) / len(prepared.landmark_kernel) or 1.0
        with prepared.blas_threads():
            solutions = solve_paths(
                [partial(prepared.problem, 1.0, fold.held_out) for fold in folds],
                [float(lam) for lam in lams * unit],
                _TOL,
                _MAX_ITER,
                prepared.at_once,
            )
        scores = np.empty((len(folds), len(lams)))
        for k, (fold, path) in enumerate(zip(folds, solutions, strict=True)):
            coefficients = np.column_stack([solution.at.coefficients for solution in path])
            scores[k] = self._aucs(prepared, fold, coefficients)
        weights = [[solution.at.w for solution in path] for path in solutions]
        return Trial(lams, scores, prepared, folds, weights, unit)

    def gradients(self, trial: Trial) -> np.ndarray:
        """Derivative of every fold's held-out loss by the squared scales, at the best lam."""
        best = trial.best
        with trial.prepared.blas_threads():
            return held_out_gradients(
                trial.prepared,
                self.source.take(self.labels.rare),
                trial.folds,
                [path[best] for path in trial.weights],
                float(trial.lams[best] * trial.unit),
            )

    def _aucs(self, prepared: Prepared, fold: Fold, coefficients: np.ndarray) -> list[float]:
        labels = self.labels
        rare, majority = prepared.training_scores(coefficients, tested=fold.tested)
        y = np.repeat([True, False], [len(rare), len(majority)])
        assert labels.majority_weight is not None
        weight = np.concatenate(
            [
                labels.rare_weight[fold.tested[labels.rare]],
                labels.majority_weight[fold.tested[labels.majority]],
            ]
        )
        return [roc_auc(y, s, weight) for s in np.concatenate([rare, majority]).T]

    def _variance(self) -> np.ndarray:
        """Weighted variance of every feature."""
        X, labels = self.source.take(slice(None)), self.labels
        assert labels.majority_weight is not None
        weight = np.concatenate([labels.rare_weight, labels.majority_weight])
        weight = weight / weight.sum()
        mean = X.T @ weight
        if self.source.is_sparse:
            return np.maximum(np.asarray(X.multiply(X).T @ weight).ravel() - mean**2, 0.0)
        return weight @ (X - mean) ** 2
