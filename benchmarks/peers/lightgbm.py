"""LightGBM: 100 trees and all other defaults, and the settings that a practitioner would try next.

`default` breaks where rare rows are few among very many: a leaf may hold a single rare row, because
the least sum of Hessians of a leaf (`min_child_weight`) is 0.001. `child_weight` asks for 5 and
changes nothing else; `slow` has more and smaller trees as well; `tuned` searches at random.
"""

from typing import Any

import numpy as np
from lightgbm import LGBMClassifier
from scipy.stats import loguniform

from benchmarks.peers import Fitted, Task
from benchmarks.peers.random_search import best_settings
from benchmarks.tabular.spaces import SPACES

CHILD_WEIGHT = 5.0
SLOW = {
    "n_estimators": 300,
    "learning_rate": 0.03,
    "num_leaves": 15,
    "colsample_bytree": 0.7,
    "min_child_weight": CHILD_WEIGHT,
}
SPACE = {**SPACES["lightgbm"], "min_child_weight": loguniform(1e-3, 100.0)}


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LGBMClassifier()``: 100 trees of 31 leaves, learning rate 0.1."""
    return _fit(X, y, task)


def weighted(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LGBMClassifier(is_unbalance=True)``: both classes weigh the same."""
    return _fit(X, y, task, is_unbalance=True)


def child_weight(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LGBMClassifier(min_child_weight=5)``: no leaf for a few rare rows."""
    return _fit(X, y, task, min_child_weight=CHILD_WEIGHT)


def slow(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """300 trees of 15 leaves, learning rate 0.03, 70 percent of the columns for each tree."""
    return _fit(X, y, task, **SLOW)


def tuned(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """Random search by average precision, the defaults first, then a fit on all rows."""
    settings = best_settings(lambda chosen: _model(task, **chosen), SPACE, X, y, task)
    return _fit(X, y, task, **settings)


def _model(task: Task, **settings: Any) -> LGBMClassifier:
    return LGBMClassifier(n_jobs=task.threads, random_state=0, verbose=-1, **settings)


def _fit(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    model = _model(task, **settings).fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.booster_.predict(rows, raw_score=True, num_threads=task.threads)

    return Fitted(scores, {"trees": model.booster_.num_trees(), "settings": settings})
