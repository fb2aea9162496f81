"""The F1 of held-out rows: how sure it is, and the radius at which it is best."""

from typing import NamedTuple

import numpy as np
from scipy.stats import binomtest


class Counts(NamedTuple):
    """Rows that a classifier got right and wrong: true positives, false positives and negatives."""

    tp: int
    fp: int
    fn: int

    @property
    def f1(self) -> float:
        """``2 tp / (2 tp + fp + fn)``; 0 where nothing is rare and nothing was found."""
        n = 2 * self.tp + self.fp + self.fn
        return 2.0 * self.tp / n if n else 0.0


def f1_interval(counts: Counts, confidence: float = 0.95) -> tuple[float, float]:
    """Wilson's interval, carried over from the share of hits to the F1 of held-out rows.

    Of the rows that are rare or were called so, :math:`J = tp / (tp + fp + fn)` are both. Given
    how many such rows there are, tp is binomial, and :math:`F_1 = 2 J / (1 + J)` grows with J: the
    limits of J are those of F1. (0, 1) where no row is rare or was called so.

    >>> low, high = f1_interval(Counts(3, 1, 1))
    >>> round(low, 2), round(high, 2)
    (0.37, 0.94)
    """
    n = counts.tp + counts.fp + counts.fn
    if not n:
        return 0.0, 1.0
    limits = binomtest(counts.tp, n).proportion_ci(confidence, method="wilson")
    low, high = float(limits.low), float(limits.high)
    return 2.0 * low / (1.0 + low), 2.0 * high / (1.0 + high)


# Of the largest depth: what is nearer than this is equal.
_ROUNDING = 1e-9


class RadiusChoice(NamedTuple):
    """What to add to the squared radius, and what came of it on the held-out rows."""

    slack: float
    counts: Counts  # of rows, whatever their weight: chance knows of rows only
    f1: float  # in weights
    n_rare: float  # weight of the rare ones among the held-out rows
    recall: float = 0.0  # the share of it that was called rare


def choose_radius(
    depths: np.ndarray,
    is_rare: np.ndarray,
    weight: np.ndarray,
    learn: bool = True,
    prior: float = 0.0,
) -> RadiusChoice:
    """Find the slack s, where rows of depth at or above -s are called rare.

    Problem 1 puts the rare rows that it is given on its sphere, so that others like them often lie
    just outside. s* is the slack with the best F1; of several the one nearest to 0, each in the
    middle between the depths of two rows, ``R^2 - distance^2`` of the held-out ones (n,). Where
    the border at 0 is itself an estimate, worth as much as `prior` rare rows, s* is drawn towards
    it: with r rare rows held out, :math:`s = s^* r / (r + prior)`. Without `learn` the slack is 0.
    Cost: O(n log n).

    >>> depths, is_rare = np.array([1.0, -1.0, -3.0]), np.array([True, True, False])
    >>> choose_radius(depths, is_rare, np.ones(3)).slack
    2.0
    >>> choose_radius(depths, is_rare, np.ones(3), prior=2.0).slack
    1.0
    """
    level, unit = _levels(depths)
    n_rare = float(weight[is_rare].sum())
    if not learn or not n_rare:  # without a rare row no radius is better than another
        return _outcome(0.0, level >= 0.0, is_rare, weight)
    slack, lowest = _best_slack(depths, level, is_rare, weight)
    if prior:
        slack *= n_rare / (n_rare + prior)
        lowest = np.round(-slack / unit)
    return _outcome(slack, level >= lowest, is_rare, weight)


def _best_slack(
    depths: np.ndarray, level: np.ndarray, is_rare: np.ndarray, weight: np.ndarray
) -> tuple[float, float]:
    """The slack with the best F1, and the lowest level that it calls rare."""
    order = np.argsort(-level, kind="stable")
    falling, steps, called = depths[order], level[order], np.cumsum(weight[order])
    hits = np.cumsum(weight[order] * is_rare[order])
    f1 = 2.0 * hits / (called + hits[-1])
    ends = np.append(steps[1:] < steps[:-1], True)  # equal depths are called together
    best = np.flatnonzero(ends & (f1 >= f1[ends].max() - 1e-12))
    below = np.append(falling[1:], 2.0 * falling[-1] - falling[0])
    at_border = (steps >= 0.0) & (np.append(steps[1:], -1.0) < 0.0)
    slacks = np.where(at_border, 0.0, -0.5 * (falling + below))[best]
    nearest = int(np.argmin(np.abs(slacks)))
    return float(slacks[nearest]), float(steps[best[nearest]])


def _levels(depths: np.ndarray) -> tuple[np.ndarray, float]:
    """Depths in units of rounding error, as whole numbers, and that unit.

    Equal rows may differ by such errors, and so do a border and the row that it was put on.
    """
    unit = _ROUNDING * float(np.abs(depths).max(initial=0.0)) or 1.0
    return np.round(depths / unit), unit


def _outcome(
    slack: float, called: np.ndarray, is_rare: np.ndarray, weight: np.ndarray
) -> RadiusChoice:
    kinds = (called & is_rare, called & ~is_rare, ~called & is_rare)
    tp, fp, fn = (float(weight[kind].sum()) for kind in kinds)
    f1 = 2.0 * tp / (2.0 * tp + fp + fn) if tp + fp + fn else 0.0
    counts = Counts(*(int(np.count_nonzero(kind)) for kind in kinds))
    return RadiusChoice(slack, counts, f1, tp + fn, tp / (tp + fn) if tp else 0.0)
