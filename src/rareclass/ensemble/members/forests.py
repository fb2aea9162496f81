"""Forests of scikit-learn as members, and their trees as a `TreeSum`."""

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.members.member import Size, TreeMember, float32_rows, in_order
from rareclass.ensemble.tree_sum import Tree, TreeSum, before_rounding
from rareclass.rows.memory import count_threads

# Trees have nothing to wait for, but each is begun in Python, one thread at a time.
_CELLS_A_THREAD = 100_000
# Majority rows that a balanced bootstrap draws at least.
_FEWEST_MAJORITY = 20


@dataclass(frozen=True)
class Forest(TreeMember):
    """A forest of scikit-learn: the score is the mean share of rare rows in x's leaves."""

    trees: int = 50
    least_in_leaf: int = 2
    most_leaves: int = 4000  # bounds the model of a large table: a leaf takes 29 bytes
    # Share of the features that each split may choose from, of so many at most; None: their root.
    features_a_split: float | None = None
    most_features_a_split: int = 24

    kind: ClassVar[str]  # scikit-learn's name of it
    cells_a_thread: ClassVar[int | None] = _CELLS_A_THREAD

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the mean share as trees."""
        from sklearn import ensemble

        share: Any = "sqrt"
        if self.features_a_split is not None:
            share = min(self.features_a_split, self.most_features_a_split / X.shape[1])
        model = of_copied_trees(vars(ensemble)[self.kind])(
            self.trees,
            max_features=share,
            min_samples_leaf=self.least_in_leaf,
            max_leaf_nodes=self.most_leaves,
            random_state=seed,
            n_jobs=count_threads(n_jobs),
        )
        model.fit(float32_rows(X), is_rare, sample_weight=weight)
        return from_forest(model.estimators_)


@dataclass(frozen=True)
class ExtraTrees(Forest):
    """Trees of all rows whose splits are the best of random ones."""

    least_in_leaf: int = 3
    features_a_split: float | None = 0.5

    name: ClassVar[str] = "extra trees"
    kind: ClassVar[str] = "ExtraTreesClassifier"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows above the last rare ones are split on."""
        levels = np.log2(2 + size.n_rare) ** 2
        share = 1.0 if self.features_a_split is None else self.features_a_split
        tried = min(share * size.n_features, self.most_features_a_split)
        return self.trees * (960 + size.n_rows * (0.15 + 0.0013 * levels * tried))


@dataclass(frozen=True)
class RandomForest(Forest):
    """Trees of bootstraps whose splits are the best of some features."""

    name: ClassVar[str] = "random forest"
    kind: ClassVar[str] = "RandomForestClassifier"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows are sorted by the features that are tried."""
        levels = np.log2(2 + size.n_rows) ** 2
        features = 0.0034 * np.sqrt(size.n_features) + 0.0004 * size.n_features
        return self.trees * (1200 + size.n_rows * levels * features)


def of_copied_trees(kind: Any) -> Any:
    """Return a forest class that copies its trees, before they learn, without a clone of each.

    A clone reads and checks the parameters of a tree several times over, which takes as long as
    learning a tree of some hundred rows does. Nothing else is different, the seeds included.
    """

    class OfCopiedTrees(kind):
        def _make_estimator(self, append: bool = True, random_state: Any = None) -> Any:
            if append or random_state is None:  # as no forest asks for
                return super()._make_estimator(append, random_state)
            tree = copy(self.estimator_)
            tree.__dict__.update({name: self.__dict__[name] for name in self.estimator_params})
            tree.random_state = random_state.randint(np.iinfo(np.int32).max)
            return tree

    return OfCopiedTrees


@dataclass(frozen=True)
class BalancedForest(TreeMember):
    """Trees of balanced bootstraps (Chen, Liaw and Breiman, 2004), with splits at random.

    Each tree is learned from a bootstrap of the rare rows and from `ratio` times as many majority
    rows, all drawn by their weights; its splits are the best of random ones, as those of extra
    trees. The score is the mean share of rare rows in x's leaves.
    """

    trees: int = 60
    ratio: float = 3.0
    least_in_leaf: int = 2
    features_a_split: float = 0.5  # share of the features that each split may choose from
    most_features_a_split: int = 24
    most_rows: int = 50_000  # that one tree is learned from
    most_leaves: int = 4000  # bounds the model of a large table: a leaf takes 29 bytes

    name: ClassVar[str] = "balanced forest"
    cells_a_thread: ClassVar[int | None] = _CELLS_A_THREAD

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: a bootstrap is looked at in each level."""
        n_rare, n_majority = self._bootstrap(size.n_rare, size.n_rows - size.n_rare)
        tried = min(self.features_a_split * size.n_features, self.most_features_a_split)
        looking = (n_rare + n_majority) * np.log2(2 + n_rare) * (0.039 + 0.0076 * tried)
        return self.trees * (980 + looking) + 0.08 * size.n_rows * size.n_features

    def grow(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """Return the mean share as trees."""
        from sklearn.tree import ExtraTreeClassifier

        X = float32_rows(X)
        # scikit-learn checks each tree's rows for empty cells; here all are checked at once.
        has_empty = bool(np.isnan(X).any())
        rare, majority = np.flatnonzero(is_rare), np.flatnonzero(~is_rare)
        masses = [
            np.ones(len(rows)) if weight is None else weight[rows] for rows in (rare, majority)
        ]
        # The share of the weight up to each of the rows: a draw is searched in it.
        sums = [np.cumsum(mass) for mass in masses]
        shares = [each / each[-1] for each in sums]
        sizes = self._bootstrap(len(rare), len(majority))
        share = min(self.features_a_split, self.most_features_a_split / X.shape[1])

        def tree(seeds: np.random.SeedSequence) -> Any:
            random = np.random.default_rng(seeds)
            rows = np.concatenate(
                [
                    among[np.searchsorted(up_to, random.random(n), side="right")]
                    for among, up_to, n in zip((rare, majority), shares, sizes, strict=True)
                ]
            )
            learner = ExtraTreeClassifier(
                max_features=share,
                min_samples_leaf=self.least_in_leaf,
                max_leaf_nodes=self.most_leaves,
                random_state=int(random.integers(2**31)),
            )
            return learner.fit(X[rows], is_rare[rows], check_input=has_empty)

        seeds = np.random.SeedSequence(seed).spawn(self.trees)
        return from_forest(list(in_order(tree, seeds, count_threads(n_jobs))))

    def _bootstrap(self, n_rare: int, n_majority: int) -> tuple[int, int]:
        """Return the numbers of rare and majority rows that each tree draws."""
        n_rare = min(n_rare, max(1, int(self.most_rows / (1 + self.ratio))))
        return n_rare, min(n_majority, max(int(self.ratio * n_rare), _FEWEST_MAJORITY))


def from_forest(trees: Sequence[Any]) -> TreeSum:
    """Return the mean share of the second class in the leaves of decision trees or extra trees.

    Each was learned from two classes; of a forest, pass its ``estimators_``.
    """
    learned = [each.tree_ for each in trees]
    return TreeSum.of(
        [
            Tree(
                tree.feature,
                before_rounding(tree.threshold),
                tree.children_left,
                tree.children_right,
                tree.missing_go_to_left,
                tree.value[:, 0, 1] / len(learned),
            )
            for tree in learned
        ]
    )
