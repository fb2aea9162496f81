"""Settings of a booster by random search, in no less time than RankRCCV takes to choose its own.

The search is that of the tabular benchmark: average precision over five stratified folds of at most
50,000 rows, the defaults first, what is behind on two folds is given up. Each library may use all
threads of the task.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import polars as pl

from benchmarks.peers import Task
from benchmarks.tabular.learners import Learner, probability
from benchmarks.tabular.search import search


class Arrays:
    """The preparation of rows that are numbers already."""

    def fit_transform(self, frame: pl.DataFrame) -> np.ndarray:
        """The same rows as an array."""
        return frame.to_numpy()

    transform = fit_transform


def best_settings(
    build: Callable[[Mapping[str, Any]], Any],
    space: Mapping[str, Any],
    X: np.ndarray,
    y: np.ndarray,
    task: Task,
) -> dict[str, Any]:
    """The settings with the best average precision of those tried in time; {} for the defaults."""
    learner = Learner("", lambda settings, X, y, seed: build(settings), Arrays, probability)
    return search(learner, space, pl.DataFrame(X), y, seed=0, budget=task.search_seconds).settings
