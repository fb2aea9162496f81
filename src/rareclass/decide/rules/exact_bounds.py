"""Exact binomial tests and Clopper-Pearson bounds of shares; counts need not be whole."""

from typing import Any

import numpy as np
from scipy import special

from rareclass.metrics.interval import Interval


def chance_of_at_least(hits: Any, trials: Any, share: Any) -> Any:
    r"""``P(Bin(trials, share) >= hits)``: small where the true share is more than `share`.

    The incomplete beta function ``I_share(hits, trials - hits + 1)``, 1 for no hits.
    """
    hits, trials = np.broadcast_arrays(np.asarray(hits, float), trials)
    some = np.maximum(hits, np.finfo(float).tiny)
    return np.where(hits > 0, special.betainc(some, np.maximum(trials - hits, 0) + 1, share), 1.0)


def chance_of_at_most(hits: Any, trials: Any, share: Any) -> Any:
    """``P(Bin(trials, share) <= hits)``: small where the true share is less than `share`."""
    return chance_of_at_least(np.asarray(trials, float) - hits, trials, 1.0 - np.asarray(share))


def lower_bound(hits: Any, trials: Any, tail: float) -> Any:
    """The share of which so many hits have the chance `tail`: a lower bound at 1 - tail."""
    hits, trials = np.broadcast_arrays(np.asarray(hits, float), trials)
    some = np.maximum(hits, np.finfo(float).tiny)
    bound = special.betaincinv(some, np.maximum(trials - hits, 0) + 1, tail)
    return np.where(hits > 0, bound, 0.0)


def upper_bound(hits: Any, trials: Any, tail: float) -> Any:
    """The same from above."""
    return 1.0 - lower_bound(np.asarray(trials, float) - hits, trials, tail)


def exact_interval(hits: float, trials: float, level: float) -> Interval:
    """Clopper-Pearson's two-sided interval; from 0 to 1 around NaN where there are no trials."""
    if trials <= 0:
        return Interval(float("nan"), 0.0, 1.0)
    tail = (1.0 - level) / 2.0
    value = hits / trials
    low, high = float(lower_bound(hits, trials, tail)), float(upper_bound(hits, trials, tail))
    return Interval(value, min(low, value), max(high, value))
