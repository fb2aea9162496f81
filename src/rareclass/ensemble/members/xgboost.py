"""Boosted trees of XGBoost."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_xgboost import from_xgboost
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.float32_rows import float32_rows
from rareclass.ensemble.members.folds_at_once import FoldsAtOnce
from rareclass.ensemble.members.member import Size
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class XGBoost(FoldsAtOnce):
    """Trees that each correct the sum of those before, by XGBoost; the score is the log odds."""

    rounds: int = 200
    learning_rate: float = 0.05
    leaves: int = 15
    # Sum of p (1 - p) over the rows of a leaf; 1 would ask for hundreds of rows where rare rows
    # are one in some hundred.
    least_weight: float = 0.1
    l2: float = 5.0
    features_a_tree: float = 0.7  # share of the features that each tree may choose from

    name: ClassVar[str] = "xgboost"
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = "xgboost"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: histograms of rows, and of the bins of leaves."""
        rows = size.n_rows * (0.021 + 0.0018 * size.n_features)
        return self.rounds * (30 + 4.3 * self.leaves * size.n_features + rows)

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The log odds as trees; 0 where there is one class."""
        import xgboost

        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        parameters = {
            "objective": "binary:logistic",
            "tree_method": "hist",
            "grow_policy": "lossguide",
            "max_depth": 0,  # as deep as the leaves allow
            "max_leaves": self.leaves,
            "learning_rate": self.learning_rate,
            "min_child_weight": self.least_weight,
            "reg_lambda": self.l2,
            "colsample_bytree": self.features_a_tree,
            "seed": seed % 2**31,
            "nthread": count_threads(n_jobs),
            "verbosity": 0,
        }
        rows = xgboost.DMatrix(
            float32_rows(X), is_rare, weight=weight, nthread=count_threads(n_jobs)
        )
        return from_xgboost(xgboost.train(parameters, rows, self.rounds))
