"""What random search draws settings from, method by method.

The knobs are those that each library's own guide to tuning names, over the usual ranges around
the defaults: LightGBM "Parameters Tuning", XGBoost "Notes on Parameter Tuning", CatBoost "Parameter
tuning", scikit-learn's user guide. All may weigh the classes alike or not. The first candidate of
every search is the defaults.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform

from benchmarks.tabular.learners import LEARNERS

TUNED = "_tuned"  # ends the name of a method whose settings are searched for
WEIGHTS = [None, "balanced"]


@dataclass(frozen=True)
class LogInteger:
    """Whole numbers from `low` to `high`, their logarithm uniform."""

    low: int
    high: int

    def rvs(self, random_state: np.random.RandomState) -> int:
        """Draw one."""
        edges = np.log([self.low, self.high + 1])
        return min(self.high, int(np.exp(random_state.uniform(*edges))))


def _between(low: float, high: float) -> Any:
    return uniform(low, high - low)


SPACES: Mapping[str, Mapping[str, Any]] = {
    "lightgbm": {
        "n_estimators": LogInteger(50, 1000),
        "learning_rate": loguniform(0.01, 0.3),
        "num_leaves": LogInteger(4, 128),
        "min_child_samples": LogInteger(2, 100),
        "reg_lambda": loguniform(1e-3, 100.0),
        "colsample_bytree": _between(0.3, 1.0),
        "subsample": _between(0.5, 1.0),
        "subsample_freq": [1],
        "min_split_gain": [0.0, 0.0, 0.1, 1.0],
        "class_weight": WEIGHTS,
    },
    "xgboost": {
        "n_estimators": LogInteger(50, 1000),
        "learning_rate": loguniform(0.01, 0.3),
        "max_depth": randint(2, 11),
        "min_child_weight": loguniform(0.01, 30.0),
        "gamma": [0.0, 0.0, 0.1, 1.0],
        "reg_lambda": loguniform(0.01, 100.0),
        "colsample_bytree": _between(0.3, 1.0),
        "subsample": _between(0.5, 1.0),
        "max_delta_step": [0, 0, 1],
        "class_weight": WEIGHTS,
    },
    "catboost": {
        "iterations": LogInteger(100, 1000),
        "learning_rate": loguniform(0.01, 0.3),
        "depth": randint(3, 11),
        "l2_leaf_reg": loguniform(1.0, 30.0),
        "random_strength": loguniform(0.1, 10.0),
        "rsm": _between(0.3, 1.0),
        "one_hot_max_size": [2, 10, 50],
        "auto_class_weights": [None, "Balanced"],
    },
    "forest": {
        "n_estimators": [100, 300, 500],
        "criterion": ["gini", "entropy"],
        "max_features": ["sqrt", "sqrt", 0.2, 0.5, 1.0],
        "min_samples_leaf": LogInteger(1, 20),
        "max_samples": [None, 0.3, 0.6],
        "class_weight": [None, "balanced", "balanced_subsample"],
    },
    "svm": {
        "C": loguniform(0.01, 1e4),
        "gamma_times": loguniform(0.01, 100.0),
        "class_weight": WEIGHTS,
    },
    "logistic": {
        "C": loguniform(1e-4, 1e4),
        "penalty": ["l2", "l2", "l1"],
        "class_weight": WEIGHTS,
    },
}

METHODS = (*LEARNERS, *(name + TUNED for name in SPACES))
