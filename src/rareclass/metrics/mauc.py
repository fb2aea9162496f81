"""MAUC: the share of pairs of different levels that scores put in order, and its interval."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.interval import Interval, ShareEstimate
from rareclass.metrics.level_cells import LevelCells, level_cells, variance_of_draws
from rareclass.metrics.scored_classes import FloatArray


def mauc(
    y: Any, scores: ArrayLike, sample_weight: ArrayLike | None = None, *, levels: Any = None
) -> float:
    """Chance that of two rows of different levels the higher one scores higher, ties one half.

    ``MAUC = sum_{r < s} sum_{i of r, j of s} w_i w_j ([f_j > f_i] + [f_j = f_i] / 2) /
    sum_{r < s} W_r W_s`` with ``w`` the weights, ``f`` the scores and ``W_r`` the weight of level
    r. With two levels it is `roc_auc`. Levels without rows change nothing. No pair is formed.

    Parameters
    ----------
    y : array-like of shape (n,)
        Ordered levels: numbers, an ordered categorical, or any labels with `levels`.
    scores : array-like of shape (n,)
        Higher means a higher level.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    levels : sequence, optional
        The levels in increasing order. Text needs it: it has no order of its own.

    Returns
    -------
    float
        In [0, 1]; O(n (log n + log n_levels)) time, O(n) memory.

    Raises
    ------
    ValueError
        On empty or mismatched columns, a label that is not among `levels`, NaN scores, negative
        weights, or fewer than two levels with rows.

    References
    ----------
    Tayal, Coleman, Li (2014), "Bounding the difference between RankRC and RankSVM", section 5;
    there ties count nothing. Waegeman, De Baets, Boullart (2006), "A comparison of different ROC
    measures for ordinal regression".

    Examples
    --------
    >>> mauc([1, 2, 2, 3], [0.1, 0.5, 0.3, 0.4])
    0.8
    >>> mauc(["low", "high"], [0.2, 0.9], levels=["low", "high"])
    1.0
    """
    return _mauc(level_cells(y, scores, sample_weight, levels))


def mauc_interval(
    y: Any,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    *,
    levels: Any = None,
    n_draws: int = 200,
    random_state: Any = 0,
) -> Interval:
    """MAUC with a bootstrap confidence interval on the logit scale.

    Rows are drawn again with replacement within each level, `n_draws` times; V is the variance
    of the MAUC of the draws. To it comes one made-up row of the greatest possible spread in each
    level, as in `roc_auc_interval`, because a level of few rows that happen to rank alike shows
    none of the spread that is there: ``V + c sum_r ((W - W_r) / N)**2`` with
    ``c = MAUC (1 - MAUC)``, W the weight of all rows and N that of all pairs. The bounds are kept
    within those of as many yes-or-no trials as there are rows outside the most frequent level.

    Parameters
    ----------
    y, scores, sample_weight, levels, level
        As in `mauc` and `roc_auc_interval`. Weights are frequencies: a weight of 3 is three
        independent rows, and the interval is the same as for three copies.
    n_draws : int, default 200
        Samples drawn, at least 2. More changes the answer less from one `random_state` to another:
        the width is good to about ``1 / sqrt(2 n_draws)``, 5 % at 200. Each takes O(n) time.
    random_state : int, RandomState or None, default 0
        The default gives the same interval each time.

    Examples
    --------
    >>> interval = mauc_interval([1, 2, 2, 3, 1, 3], [0.1, 0.5, 0.3, 0.4, 0.2, 0.6])
    >>> round(interval.value, 3), 0 < interval.low < interval.value < interval.high < 1
    (0.917, True)
    """
    cells = level_cells(y, scores, sample_weight, levels)
    variance = variance_of_draws(_mauc, cells, level, n_draws, random_state)
    value, mass = _mauc(cells), cells.mass
    total = mass.sum()
    spread = (((total - mass[mass > 0.0]) / _pairs(mass)) ** 2).sum()
    variance += float(value * (1.0 - value) * spread)
    return ShareEstimate(value, value, variance, float(total - mass.max())).interval(level)


def _mauc(cells: LevelCells) -> float:
    # Not at the top: numba takes longer to load than small samples take to sort.
    from rareclass.metrics import _ranking_jit as jit

    # Shares first: the products of two extreme weights could overflow.
    # A power of two leaves every digit of a weight as it is.
    cells = cells._replace(weight=np.ldexp(cells.weight, -np.frexp(cells.weight.max())[1]))
    in_order = jit.concordant_weight(cells.codes, cells.ends, cells.weight, cells.n_levels)
    # At perfect separation the quotient of two equal sums must not round past 1.
    return float(np.clip(in_order / _pairs(cells.mass), 0.0, 1.0))


def _pairs(mass: FloatArray) -> float:
    """Weight of the pairs of different levels: a sum of products, no difference of squares."""
    return float(mass[1:] @ np.cumsum(mass)[:-1])
