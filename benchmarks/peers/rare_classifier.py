"""RareClassifier: nothing set but the threads; `in_20_seconds` gives it a time."""

from typing import Any

import numpy as np

from benchmarks.peers import Fitted, Task
from rareclass import RareClassifier


def default(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``RareClassifier()``."""
    return _fit(X, y, task)


def in_20_seconds(X: np.ndarray, y: np.ndarray, task: Task) -> Fitted:
    """``RareClassifier(time_budget=20)``."""
    return _fit(X, y, task, time_budget=20.0)


def _fit(X: np.ndarray, y: np.ndarray, task: Task, **settings: Any) -> Fitted:
    model = RareClassifier(n_jobs=task.threads, random_state=0, verbose=False, **settings)
    model.fit(X, y)
    members = [f"{member.name} {member.weight:.2f}" for member in model.members_]
    return Fitted(model.score_samples, {"members": members})
