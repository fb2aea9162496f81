"""Boosted oblivious trees of CatBoost."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_catboost import from_catboost
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.float32_rows import float32_rows
from rareclass.ensemble.members.member import FoldByFold, Size
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class CatBoost(FoldByFold):
    """Oblivious trees, which ask the same at all splits of a level, by CatBoost.

    They are plainer than other trees and each is learned from rows in a random order, which makes
    up for much where rare rows are few. The score is the log odds.
    """

    rounds: int = 200
    learning_rate: float = 0.07
    depth: int = 6
    l2: float = 3.0

    name: ClassVar[str] = "catboost"
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = "catboost"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: the bins of leaves, and each level's rows."""
        rows = size.n_rows * self.depth * (0.025 + 0.0005 * size.n_features)
        return self.rounds * (3.0 * 2**self.depth * size.n_features + rows)

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The log odds as trees; 0 where there is one class or no column that varies."""
        import catboost

        X = float32_rows(X)
        if is_rare.all() or not is_rare.any() or not _varies(X):
            return TreeSum.of([])
        model = catboost.CatBoostClassifier(
            iterations=self.rounds,
            learning_rate=self.learning_rate,
            depth=self.depth,
            l2_leaf_reg=self.l2,
            random_seed=seed % 2**31,
            thread_count=count_threads(n_jobs),
            allow_writing_files=False,
            logging_level="Silent",
        )
        model.fit(X, is_rare.astype(np.int64), sample_weight=weight)
        return from_catboost(model)


def _varies(X: np.ndarray) -> bool:
    """Whether any column has two values, of which one may be missing."""
    return bool(((X[0] != X) & ~(np.isnan(X) & np.isnan(X[0]))).any())
