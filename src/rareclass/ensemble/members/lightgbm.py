"""Boosted trees of LightGBM."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rareclass.ensemble.functions.from_lightgbm import from_lightgbm
from rareclass.ensemble.functions.tree_sum import TreeSum
from rareclass.ensemble.members.folds_at_once import FoldsAtOnce
from rareclass.ensemble.members.member import Size
from rareclass.rows.memory import count_threads


@dataclass(frozen=True)
class LightGBM(FoldsAtOnce):
    """Trees that each correct the sum of those before, by LightGBM; the score is the log odds."""

    rounds: int = 200
    learning_rate: float = 0.05
    leaves: int = 15
    least_in_leaf: int = 5
    l2: float = 5.0
    features_a_tree: float = 0.7  # share of the features that each tree may choose from

    name: ClassVar[str] = "lightgbm"
    view: ClassVar[str] = "trees"
    package: ClassVar[str | None] = "lightgbm"

    def cost(self, size: Size) -> float:
        """About the microseconds of one thread: histograms of rows, and of the bins of leaves."""
        rows = size.n_rows * (0.030 + 0.0023 * size.n_features)
        return self.rounds * (30 + 2.5 * self.leaves * size.n_features + rows)

    def learn(
        self, X: Any, is_rare: np.ndarray, weight: np.ndarray | None, seed: int, n_jobs: int
    ) -> TreeSum:
        """The log odds as trees; 0 where there is one class."""
        import lightgbm

        if is_rare.all() or not is_rare.any():
            return TreeSum.of([])
        parameters = {
            "objective": "binary",
            "learning_rate": self.learning_rate,
            "num_leaves": self.leaves,
            "min_data_in_leaf": self.least_in_leaf,
            "lambda_l2": self.l2,
            "feature_fraction": self.features_a_tree,
            "seed": seed % 2**31,
            "num_threads": count_threads(n_jobs),
            "deterministic": True,
            "force_col_wise": True,
            "verbosity": -1,
        }
        rows = lightgbm.Dataset(X, is_rare.astype(np.float64), weight=weight, params=parameters)
        return from_lightgbm(lightgbm.train(parameters, rows, self.rounds))
