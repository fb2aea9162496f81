"""Boosted trees of scikit-learn over histograms."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import ThreadpoolController

from rareclass.ensemble.functions.from_scikit_learn import from_histogram_boosting
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.folds_at_once import FoldsAtOnce
from rareclass.ensemble.members.member import Size
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class HistogramBoosting(FoldsAtOnce):
    """Trees that each correct the sum of those before, by scikit-learn.

    The number of trees is fixed: with few rare rows, those that a stop would be decided on are
    missed more. The score is the log odds of the rare class.
    """

    rounds: int = 150
    learning_rate: float = 0.05
    leaves: int = 15
    least_in_leaf: int = 3  # few rare rows are split off as they are, or not at all
    l2: float = 0.3
    features_a_split: float = 0.5  # share of the features that each split may choose from

    name: ClassVar[str] = "histogram boosting"
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = None
    share: ClassVar[float] = 2.0

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: histograms of rows, and of the bins of leaves."""
        rows = size.n_rows * (0.036 + 0.0038 * size.n_features)
        return self.rounds * (450 + 2.9 * self.leaves * size.n_features + rows)

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The log odds as trees; 0 where there is one class."""
        from sklearn.ensemble import HistGradientBoostingClassifier

        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        empty = np.isnan(X).all(axis=0)
        if empty.any():  # has no bins; a constant column has one, and splits nothing either
            X = np.where(empty, 0.0, X)

        class BinnedUnweighted(HistGradientBoostingClassifier):
            # Quantiles by weight, which it lays bins by, take several times as long as the trees.
            def _bin_data(self, X: Any, sample_weight: Any, is_training_data: bool) -> Any:
                return super()._bin_data(X, None, is_training_data)

        model = BinnedUnweighted(
            max_iter=self.rounds,
            learning_rate=self.learning_rate,
            max_leaf_nodes=self.leaves,
            min_samples_leaf=self.least_in_leaf,
            l2_regularization=self.l2,
            max_features=self.features_a_split,
            early_stopping=False,
            random_state=seed,
        )
        with _openmp().limit(limits=count_threads(n_jobs), user_api="openmp"):
            model.fit(X, is_rare, sample_weight=weight)
        return from_histogram_boosting(model)


@dataclass(frozen=True)
class SlowHistogramBoosting(HistogramBoosting):
    """Many trees, each of which counts for little."""

    rounds: int = 600
    learning_rate: float = 0.03
    leaves: int = 15
    l2: float = 3.0

    name: ClassVar[str] = "slow histogram boosting"
    share: ClassVar[float] = 8.0  # the best on long tables, the more rows the better
    least_rows: ClassVar[int] = 1000


@dataclass(frozen=True)
class DeepHistogramBoosting(HistogramBoosting):
    """Few large trees that may ask any feature anywhere: what holds for few rows alone."""

    rounds: int = 200
    learning_rate: float = 0.1
    leaves: int = 63
    l2: float = 1.0
    features_a_split: float = 1.0

    name: ClassVar[str] = "deep histogram boosting"
    share: ClassVar[float] = 0.5  # many small trees make more of little time
    least_rows: ClassVar[int] = 1000


@cache
def _openmp() -> ThreadpoolController:
    """The threads of scikit-learn's boosting, once it is imported: looking for them takes 4 ms."""
    return ThreadpoolController()
