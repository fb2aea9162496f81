"""XGBoost: ``tree_method="hist"``, its other defaults, and what a practitioner would try next."""

from typing import Any

import numpy as np
from xgboost import XGBClassifier

from benchmarks.peers import Fitted, Task
from benchmarks.peers.random_search import best_settings
from benchmarks.tabular.spaces import SPACES

CHILD_WEIGHT = 5.0


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``XGBClassifier(tree_method="hist")``: 100 trees of depth 6, learning rate 0.3."""
    return _fit(X, y, task)


def weighted(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """The same with ``scale_pos_weight`` the majority rows for each rare one, as its guide says."""
    return _fit(X, y, task, class_weight="balanced")


def child_weight(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``min_child_weight=5``: no leaf for a few rare rows."""
    return _fit(X, y, task, min_child_weight=CHILD_WEIGHT)


def tuned(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """Random search by average precision, the defaults first, then a fit on all rows."""
    chosen = best_settings(lambda one: _model(y, task, **one), SPACES["xgboost"], X, y, task)
    return _fit(X, y, task, **chosen)


def _model(y: np.ndarray, task: Task, **settings: Any) -> XGBClassifier:
    if settings.pop("class_weight", None) == "balanced":  # it has the ratio only
        n_rare = int(y.sum())
        settings["scale_pos_weight"] = (len(y) - n_rare) / n_rare
    return XGBClassifier(tree_method="hist", n_jobs=task.threads, random_state=0, **settings)


def _fit(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    model = _model(y, task, **settings).fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.predict(rows, output_margin=True)

    return Fitted(scores, {"trees": model.get_booster().num_boosted_rounds(), "settings": settings})
