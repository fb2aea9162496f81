"""What users see: the model with the rows that still wait, its threshold, its history."""

from typing import Any, NamedTuple

import numpy as np

from rareclass.decide.threshold import threshold_between
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.ranking.stochastic.feeding import Feeder, Reservoir, State
from rareclass.ranking.stochastic.learner import Learned

# Rows of the reservoir that are scored at a time.
_ROWS = 1024


class Progress(NamedTuple):
    """One line of the history."""

    passes: float  # readings of all rows; nan in a stream
    batches: int  # mini-batches learned
    objective: float  # as the running model knows it
    optimality: float  # its estimated relative distance from the minimum


class Published(NamedTuple):
    """A fitted model as its users see it; the attributes of `StochasticRankRC`."""

    landmarks: Any
    whitener: np.ndarray
    coef: np.ndarray
    width: float
    offset: float
    objective: float
    optimality: float
    n_rare: int


def publish(feeder: Feeder, state: State, n_features: int) -> Published:
    """The model of a state."""
    state = feeder.finished(state)
    learned, lam = state.learned, feeder.settings.lam
    if learned is None:
        # One far point with a coefficient of zero: every row scores zero.
        point, none = np.zeros((1, n_features)), np.zeros((1, 0))
        return Published(point, none, np.zeros(1), 1.0, 0.0, np.nan, np.inf, 0)
    return Published(
        landmarks=learned.space.expansion.landmarks,
        whitener=learned.space.whitener,
        coef=learned.coefficients,
        width=learned.width,
        offset=_threshold(learned, state.reservoir),
        objective=learned.objective(lam),
        optimality=learned.relative_gap(lam),
        n_rare=len(learned.rare.rows),
    )


def _threshold(learned: Learned, reservoir: Reservoir) -> float:
    """The best balanced accuracy between the rare rows and the sample of the majority."""
    rows, rare = reservoir.rows, learned.rare
    if rows is None:
        return 0.0
    X: Any = rows.X
    parts = [
        learned.space.kernel(X[start : start + _ROWS]) @ learned.coefficients
        for start in range(0, len(rows), _ROWS)
    ]
    weights = [rare.rows.weight, rows.weight]
    is_weighted = any((weight != 1.0).any() for weight in weights)
    return threshold_between(
        ScoredClasses(
            rare.scores(learned.weights),
            np.concatenate(parts),
            *(weights if is_weighted else (None, None)),
        )
    )
