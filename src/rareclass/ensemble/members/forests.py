"""Forests of scikit-learn: many deep trees, each random in its own way."""

from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_scikit_learn import from_forest
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.float32_rows import float32_rows
from rareclass.ensemble.members.member import FoldByFold, Size
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class _Forest(FoldByFold):
    """What both forests have in common: the score is the mean share of rare rows in x's leaves."""

    trees: int = 50
    least_in_leaf: int = 2
    most_leaves: int = 4000  # bounds the model of a large table: a leaf takes 29 bytes

    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = None

    def _learned(
        self,
        kind: Any,
        features_a_split: float | str,
        X: Any,
        is_rare: np.ndarray,
        weight: np.ndarray | None,
        seed: int,
        n_jobs: int,
    ) -> TreeSum:
        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        model = _of_plain_trees(kind)(
            self.trees,
            max_features=features_a_split,
            min_samples_leaf=self.least_in_leaf,
            max_leaf_nodes=self.most_leaves,
            random_state=seed,
            n_jobs=count_threads(n_jobs),
        )
        model.fit(float32_rows(X), is_rare, sample_weight=weight)
        return from_forest(model.estimators_)


def _of_plain_trees(kind: Any) -> Any:
    """A forest of scikit-learn that copies its trees, before they learn, without a clone of each.

    A clone reads and checks the parameters of a tree several times over, which takes as long as
    learning a tree of some hundred rows does. Nothing else is different, the seeds included.
    """

    class OfPlainTrees(kind):
        def _make_estimator(self, append: bool = True, random_state: Any = None) -> Any:
            if append or random_state is None:  # as no forest asks for
                return super()._make_estimator(append, random_state)
            tree = copy(self.estimator_)
            for name in self.estimator_params:
                setattr(tree, name, getattr(self, name))
            tree.random_state = random_state.randint(np.iinfo(np.int32).max)
            return tree

    return OfPlainTrees


@dataclass(frozen=True)
class ExtraTrees(_Forest):
    """Trees of all rows whose splits are the best of random ones, by scikit-learn."""

    least_in_leaf: int = 3
    features_a_split: float = 0.5  # share of the features that each split may choose from
    most_features_a_split: int = 24

    name: ClassVar[str] = "extra trees"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows above the last rare ones are split on."""
        levels = np.log2(2 + size.n_rare) ** 2
        tried = min(self.features_a_split * size.n_features, self.most_features_a_split)
        return self.trees * (960 + size.n_rows * (0.15 + 0.0013 * levels * tried))

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The mean share as trees; 0 where there is one class."""
        from sklearn.ensemble import ExtraTreesClassifier

        share = min(self.features_a_split, self.most_features_a_split / X.shape[1])
        return self._learned(ExtraTreesClassifier, share, X, is_rare, weight, seed, n_jobs)


@dataclass(frozen=True)
class RandomForest(_Forest):
    """Trees of bootstraps whose splits are the best of some features, by scikit-learn."""

    name: ClassVar[str] = "random forest"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows are sorted by the features that are tried."""
        levels = np.log2(2 + size.n_rows) ** 2
        features = 0.0034 * np.sqrt(size.n_features) + 0.0004 * size.n_features
        return self.trees * (1200 + size.n_rows * levels * features)

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The mean share as trees; 0 where there is one class."""
        from sklearn.ensemble import RandomForestClassifier

        return self._learned(RandomForestClassifier, "sqrt", X, is_rare, weight, seed, n_jobs)
