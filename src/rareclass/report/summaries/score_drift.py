"""Scores of new rows beside those of rows held out of training."""

from dataclasses import dataclass
from typing import NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rules.exact_bounds import exact_interval
from rareclass.metrics.interval import Interval
from rareclass.report.summaries.score_distribution import shared_edges, shares
from rareclass.report.summaries.threshold_table import LEVEL

Floats = NDArray[np.float64]
TAILS = (0.001, 0.01, 0.1)
"""Shares of the held-out rows, above whose scores new ones are counted."""
_LEAST_ROWS = 10


class Tail(NamedTuple):
    """Rows above a score, as shares of those held out and of the new ones."""

    score: float
    before: Interval
    now: Interval

    @property
    def differs(self) -> bool:
        """Whether the intervals do not meet: one in some hundreds by chance."""
        return self.now.low > self.before.high or self.now.high < self.before.low


@dataclass(frozen=True)
class ScoreDrift:
    """Two distributions of scores over bins that they share, and how often scores are high.

    Only the top decides on alerts, so it is the top that is compared: scores of the many rows at
    the bottom move with every model that is fitted, and mean nothing there.

    Attributes
    ----------
    edges : ndarray of shape (b + 1,)
    before, now : ndarray of shape (b,)
        Shares of the rows held out, and of the new ones.
    at_threshold : Tail
        Above the model's threshold: alerts.
    tails : tuple of Tail
        Above the scores that `TAILS` of the held-out rows exceed.
    """

    edges: Floats
    before: Floats
    now: Floats
    at_threshold: Tail
    tails: tuple[Tail, ...]

    @property
    def differs(self) -> bool:
        """Whether alerts are more or less frequent than chance explains."""
        return self.at_threshold.differs

    @classmethod
    def of(
        cls,
        held_out: ArrayLike,
        held_out_weight: ArrayLike | None,
        scores: ArrayLike,
        threshold: float,
    ) -> Self:
        """Compare scores; O(n log n) time. Weights are copies; where
        they are not whole, they count as so many rows as have their variance."""
        before, now = np.asarray(held_out, float), np.asarray(scores, float)
        weight = np.ones(len(before))
        if held_out_weight is not None:
            weight = np.asarray(held_out_weight, float)
        whole = bool((weight == np.round(weight)).all())
        effective = float(weight.sum() if whole else weight.sum() ** 2 / (weight @ weight))

        def tail(score: float) -> Tail:
            share = float(weight[before > score].sum() / weight.sum())
            return Tail(
                score,
                exact_interval(share * effective, effective, LEVEL),
                exact_interval(int((now > score).sum()), len(now), LEVEL),
            )

        order = np.argsort(-before, kind="stable")
        above = np.cumsum(weight[order]) / weight.sum()
        places = [int(np.searchsorted(above, share)) for share in TAILS]
        tails = tuple(tail(float(before[order][k])) for k in places if k >= _LEAST_ROWS)
        edges = shared_edges(before, now)
        return cls(
            edges,
            shares(before, weight, edges),
            shares(now, np.ones(len(now)), edges),
            tail(threshold),
            tails,
        )
