"""A forest whose trees each see as many rare rows as there are, and not many more of the others."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_scikit_learn import from_forest
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.float32_rows import float32_rows
from rareclass.ensemble.members.folds_at_once import in_order
from rareclass.ensemble.members.member import FoldByFold, Size
from rareclass.rows.memory import count_threads

_FEWEST_MAJORITY = 20


@dataclass(frozen=True)
class BalancedForest(FoldByFold):
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
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = None

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: a bootstrap is looked at in each level."""
        n_rare, n_majority = self._bootstrap(size.n_rare, size.n_rows - size.n_rare)
        tried = min(self.features_a_split * size.n_features, self.most_features_a_split)
        looking = (n_rare + n_majority) * np.log2(2 + n_rare) * (0.039 + 0.0076 * tried)
        return self.trees * (980 + looking) + 0.08 * size.n_rows * size.n_features

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The mean share as trees; 0 where there is one class."""
        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        X = float32_rows(X)
        # Of cells that are all there scikit-learn has nothing to find out, tree by tree.
        has_empty = bool(np.isnan(X).any())
        classes = [
            (rows, _steps(rows, weight)) for rows in map(np.flatnonzero, (is_rare, ~is_rare))
        ]
        sizes = self._bootstrap(len(classes[0][0]), len(classes[1][0]))

        def tree(seeds: np.random.SeedSequence) -> Any:
            random = np.random.default_rng(seeds)
            rows = np.concatenate(
                [
                    among[np.searchsorted(steps, random.random(n), side="right")]
                    for (among, steps), n in zip(classes, sizes, strict=True)
                ]
            )
            learner = self._tree(int(random.integers(2**31)), X.shape[1])
            return learner.fit(X[rows], is_rare[rows], check_input=has_empty)

        seeds = np.random.SeedSequence(seed).spawn(self.trees)
        return from_forest(list(in_order(tree, seeds, count_threads(n_jobs))))

    def _bootstrap(self, n_rare: int, n_majority: int) -> tuple[int, int]:
        """Rare and majority rows that each tree draws."""
        n_rare = min(n_rare, max(1, int(self.most_rows / (1 + self.ratio))))
        return n_rare, min(n_majority, max(int(self.ratio * n_rare), _FEWEST_MAJORITY))

    def _tree(self, seed: int, n_features: int) -> Any:
        from sklearn.tree import ExtraTreeClassifier

        return ExtraTreeClassifier(
            max_features=min(self.features_a_split, self.most_features_a_split / n_features),
            min_samples_leaf=self.least_in_leaf,
            max_leaf_nodes=self.most_leaves,
            random_state=seed,
        )


def _steps(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Shares of the weight up to each of the rows: what a draw is searched in."""
    sums = np.cumsum(np.ones(len(rows)) if weight is None else weight[rows])
    return sums / sums[-1]
