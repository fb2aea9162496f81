"""XGBoost: ``tree_method="hist"`` and all other defaults, without weights and with them."""

from typing import Any

import numpy as np
from xgboost import XGBClassifier

from benchmarks.peers import Fitted, Task


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``XGBClassifier(tree_method="hist")``: 100 trees of depth 6, learning rate 0.3."""
    return _fit(X, y, task)


def weighted(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """The same with ``scale_pos_weight`` the majority rows for each rare one, as its guide says."""
    n_rare = int(y.sum())
    return _fit(X, y, task, scale_pos_weight=(len(y) - n_rare) / n_rare)


def _fit(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    model = XGBClassifier(tree_method="hist", n_jobs=task.threads, random_state=0, **settings)
    model.fit(X, y)

    def scores(rows: np.ndarray) -> np.ndarray:
        return model.predict(rows, output_margin=True)

    return Fitted(scores, {"trees": model.get_booster().num_boosted_rounds()})
