"""LightGBM: 100 trees and all other defaults, without weights and with ``is_unbalance``."""

from typing import Any

import numpy as np
from lightgbm import LGBMClassifier

from benchmarks.peers import Fitted, Task


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LGBMClassifier()``: 100 trees of 31 leaves, learning rate 0.1."""
    return _fit(X, y, task)


def weighted(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``LGBMClassifier(is_unbalance=True)``: both classes weigh the same."""
    return _fit(X, y, task, is_unbalance=True)


def _fit(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    model = LGBMClassifier(n_jobs=task.threads, random_state=0, verbose=-1, **settings).fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.booster_.predict(rows, raw_score=True, num_threads=task.threads)

    return Fitted(scores, {"trees": model.booster_.num_trees()})
