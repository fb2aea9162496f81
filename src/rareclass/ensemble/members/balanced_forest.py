"""A forest whose trees each see as many rare rows as there are, and not many more of the others."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_scikit_learn import from_forest
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.float32_rows import float32_rows
from rareclass.ensemble.members.member import FoldByFold, Size
from rareclass.rows.memory import count_threads

_FEWEST_MAJORITY = 20


@dataclass(frozen=True)
class BalancedForest(FoldByFold):
    """Trees of balanced bootstraps (Chen, Liaw and Breiman, 2004).

    Each tree is learned from a bootstrap of the rare rows and from `ratio` times as many majority
    rows, all drawn by their weights. The score is the mean share of rare rows in x's leaves.
    """

    trees: int = 60
    ratio: float = 1.0
    least_in_leaf: int = 1
    features_a_split: float | str = "sqrt"
    at_random: bool = False  # extra trees, whose splits are the best of random ones
    most_rows: int = 50_000  # that one tree is learned from
    most_leaves: int = 4000  # bounds the model of a large table: a leaf takes 29 bytes

    name: ClassVar[str] = "balanced forest"
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = None

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: rows of a bootstrap are sorted at each level."""
        n_rows = sum(self._bootstrap(size.n_rare, size.n_rows - size.n_rare))
        sorting = n_rows * np.log2(1 + n_rows) ** 2 * np.sqrt(size.n_features)
        return self.trees * (960 + 0.0076 * sorting) + 0.03 * size.n_rows * size.n_features

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The mean share as trees; 0 where there is one class."""
        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        X = float32_rows(X)
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
            return self._tree(int(random.integers(2**31))).fit(X[rows], is_rare[rows])

        with ThreadPoolExecutor(count_threads(n_jobs)) as pool:
            return from_forest(list(pool.map(tree, np.random.SeedSequence(seed).spawn(self.trees))))

    def _bootstrap(self, n_rare: int, n_majority: int) -> tuple[int, int]:
        """Rare and majority rows that each tree draws."""
        n_rare = min(n_rare, max(1, int(self.most_rows / (1 + self.ratio))))
        return n_rare, min(n_majority, max(int(self.ratio * n_rare), _FEWEST_MAJORITY))

    def _tree(self, seed: int) -> Any:
        from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

        kind = ExtraTreeClassifier if self.at_random else DecisionTreeClassifier
        return kind(
            max_features=self.features_a_split,
            min_samples_leaf=self.least_in_leaf,
            max_leaf_nodes=self.most_leaves,
            random_state=seed,
        )


def _steps(rows: np.ndarray, weight: np.ndarray | None) -> np.ndarray:
    """Shares of the weight up to each of the rows: what a draw is searched in."""
    sums = np.cumsum(np.ones(len(rows)) if weight is None else weight[rows])
    return sums / sums[-1]
