"""Kernel machines (RankRC) and linear models as members: logistic regression and MIBC."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils import check_random_state

from rareclass.ensemble.members.member import (
    CrossFitted,
    EncodedFolds,
    FoldByFold,
    Member,
    Size,
    learn_folds,
)
from rareclass.ensemble.score_functions import KernelFunction, LinearFunction, ScoreFunction
from rareclass.estimators.search import Fold
from rareclass.kernels.landmarks import spread_out
from rareclass.labels.two_classes import Labels
from rareclass.ranking.ranking_data import KernelSettings
from rareclass.ranking.solve import cross_fit
from rareclass.ranking.targets import TwoClasses
from rareclass.rows import RowSource, as_source

# Powers of two for lam, from smooth to rough, by the most rows that they are for: what was best on
# some table of that size (docs/decisions/0028).
_POWERS = ((5_000, (-2, -6, -9, -12, -16)), (20_000, (-6, -9, -12, -16)))
_POWERS_OF_MANY = (-10, -14)
# From so many rows on the kernel is of 32 bits.
_SINGLE_PRECISION_ROWS = 10_000
_SIMILARITY_ROWS = 5000


@dataclass(frozen=True)
class LaplaceOnQuantiles(Member):
    """A Laplace kernel on normal quantiles: only the order of each number counts."""

    name: ClassVar[str] = "kernel on quantiles"
    view: ClassVar[str] = "quantiles"
    kernel: ClassVar[str] = "laplace"
    # `cost` is the seconds of a thread, and each of these takes three.
    unit: ClassVar[float] = 3.0
    most_majority: ClassVar[int | None] = 20_000

    most_rare: int = 400  # landmarks among the rare rows
    n_majority: int = 400  # landmarks among the others
    lams: tuple[float, ...] | None = None  # None: by the number of rows
    memory: int = 1 << 30

    def cost(self, size: Size) -> float:
        """Kernel entries, times what each costs: features once, and questions of the solvers."""
        landmarks = min(size.n_rare, self.most_rare) + self.n_majority
        entry = 0.02 * size.n_features + 0.6
        questions = 0.35 * 8 * len(self._lams(size.n_rows))
        return 1e-9 * landmarks * (size.n_rows + landmarks) * (entry + questions)

    def within_memory(self, n_bytes: int) -> Self:
        """Return the member with at most so many bytes for its kernel."""
        return replace(self, memory=min(self.memory, n_bytes))

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every lam."""
        if rows.features is None:
            return self._on_one_matrix(rows)
        # The folds see other features: each is a matrix of its own, and a kernel of its own.
        found: list[list[CrossFitted]] = []
        for number, _ in rows.each_fold():
            found.append(self._on_one_matrix(rows.of_fold(number)))
        return [_joined(of_setting) for of_setting in zip(*found, strict=True)]

    def _on_one_matrix(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn folds that see the same features, which share one kernel."""
        rows.check()
        rare, majority = np.flatnonzero(rows.is_rare), np.flatnonzero(~rows.is_rare)
        of_rare = np.ones(len(rare)) if rows.weight is None else rows.weight[rare]
        labels = Labels(np.array([0, 1]), 1, rare, majority, of_rare, rows.weights(majority))
        target, landmarks = TwoClasses(labels), self._landmarks(rows, labels)
        settings = KernelSettings(
            self.kernel, "mean", landmarks, self.memory, rows.n_jobs, rows.seed
        )
        folds = [Fold(tested, tested) for _, tested in rows.each_fold()]
        lams = self._lams(len(rows.fold))
        machines = cross_fit(settings, _source(rows), target, folds, lams, check=rows.check)
        # One array for all lams, which then share their kernel matrix when new rows are scored.
        points = np.asarray(machines.expansion.landmarks, dtype=np.float32)
        found = []
        for k, lam in enumerate(lams):
            functions: list[Any] = [
                KernelFunction(self.kernel, machines.width, points, each[:, k])
                for each in machines.coefficients
            ]
            least = _least_similarity(functions[0], rows)
            most = float(np.nanmedian(machines.held_out[~rows.is_rare, k]))
            for function in functions:
                function.least, function.most = least, most
            found.append(CrossFitted(f"lam 2^{np.log2(lam):g}", machines.held_out[:, k], functions))
        return found

    def _lams(self, n_rows: int) -> tuple[float, ...]:
        if self.lams is not None:
            return self.lams
        fitting = (powers for most, powers in _POWERS if n_rows <= most)
        return tuple(2.0**power for power in next(fitting, _POWERS_OF_MANY))

    def _landmarks(self, rows: EncodedFolds, labels: Labels) -> np.ndarray:
        """Draw row numbers: rare rows, spread out where there are many, and majority rows."""
        rng = check_random_state(rows.seed)
        rare = labels.rare
        if len(rare) > self.most_rare:
            rare = spread_out(rare, rows.X.__getitem__, self.most_rare, rng)
        n_majority = min(self.n_majority, len(labels.majority))
        majority = rng.choice(labels.majority, n_majority, replace=False)
        return np.sort(np.concatenate([rare, majority]))


def _joined(of_folds: Sequence[CrossFitted]) -> CrossFitted:
    """Return a setting of which every fold was learned by itself."""
    held_out = np.fmax.reduce([each.held_out for each in of_folds])
    return CrossFitted(
        of_folds[0].setting,
        held_out,
        [function for each in of_folds for function in each.functions],
    )


def _source(rows: EncodedFolds) -> RowSource:
    """Return the rows, of 32 bits where there are many."""
    many = len(rows.fold) >= _SINGLE_PRECISION_ROWS
    return as_source(np.ascontiguousarray(rows.X, dtype=np.float32 if many else np.float64))


def _least_similarity(function: KernelFunction, rows: EncodedFolds) -> float:
    """A tenth of the least sum of similarities among training rows, or some thousands of them.

    A landmark's similarity to itself, which no new row has, is left out: rare rows lie where there
    are few others, and new ones must not count as rows that are like nothing.
    """
    step = max(1, len(rows.fold) // _SIMILARITY_ROWS)
    X = np.asarray(rows.X[::step], dtype=np.float32)
    landmarks = {landmark.tobytes() for landmark in function.landmarks}
    itself = np.array([row.tobytes() in landmarks for row in X])
    return 0.1 * float((function.with_similarity(X, rows.n_jobs)[:, 1] - itself).min())


@dataclass(frozen=True)
class LogisticMember(Member):
    """Logistic regression with a ridge, for several strengths of the ridge."""

    unit: ClassVar[float] = 5e-8

    strengths: tuple[float, ...] = (0.01, 0.1, 1.0)  # C of scikit-learn
    max_iter: int = 200

    def cost(self, size: Size) -> float:
        """Products with the rows, a number of times."""
        return float(size.n_rows) * (1 + size.n_features) * len(self.strengths)

    def cross_fit(self, rows: EncodedFolds) -> list[CrossFitted]:
        """Learn every strength on every fold, from the strongest ridge to the weakest."""
        held_out = np.full((len(rows.fold), len(self.strengths)), np.nan)
        functions: list[list[ScoreFunction]] = [[] for _ in self.strengths]
        for number, path in learn_folds(rows, self._path_of_fold):
            tested = np.flatnonzero(rows.fold == number)
            X = rows.part(number, tested)
            for k, function in enumerate(path):
                held_out[tested, k] = function.scores(X)
                functions[k].append(function)
        return [
            CrossFitted(f"C {C:g}", held_out[:, k], functions[k])
            for k, C in enumerate(self.strengths)
        ]

    def _path_of_fold(self, rows: EncodedFolds, number: int) -> list[LinearFunction]:
        """Return the functions of one fold, from the strongest ridge to the weakest."""
        X, is_rare, weight = rows.learned_by(number)
        if not X.shape[1]:  # a view may hold nothing of a small table
            return [LinearFunction(np.zeros(0))] * len(self.strengths)
        from sklearn.linear_model import LogisticRegression

        model = LogisticRegression(max_iter=self.max_iter, warm_start=True, tol=1e-3)
        path = []
        for C in self.strengths:
            model.set_params(C=C).fit(X, is_rare, sample_weight=weight)
            path.append(LinearFunction(model.coef_[0].copy(), float(model.intercept_[0])))
        return path


class LogisticOnQuantiles(LogisticMember):
    """Logistic regression on normal quantiles and indicators of the commonest values."""

    name = "logistic regression"
    view = "quantiles"


class LogisticOnIndicators(LogisticMember):
    """Logistic regression on an indicator of every value and of pairs of values."""

    name = "logistic regression on indicators"
    view = "indicators"


@dataclass(frozen=True)
class MomentMember(FoldByFold):
    """MIBC: a linear model of the rare rows and the mean and covariance of the majority."""

    name: ClassVar[str] = "mibc"
    view: ClassVar[str] = "quantiles"
    unit: ClassVar[float] = 2e-9

    C: float = 0.1

    def cost(self, size: Size) -> float:
        """One pass for the covariance."""
        return float(size.n_rows) * size.n_features**2

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> LinearFunction:
        """Return MIBC's weights on the rows of a training part."""
        from rareclass.moments import MIBC

        model = MIBC(C=self.C, pos_label=1, n_jobs=n_jobs, random_state=seed)
        model.fit(X, is_rare.astype(int), sample_weight=weight)
        return LinearFunction(np.asarray(model.coef_, dtype=np.float64).ravel())
