"""VUS: the chance that one row of each level is scored in order, and its interval."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.interval import Interval, ShareEstimate
from rareclass.metrics.level_cells import LevelCells, level_cells, variance_of_draws


def vus(
    y: Any, scores: ArrayLike, sample_weight: ArrayLike | None = None, *, levels: Any = None
) -> float:
    """Volume under the ROC surface: chance that one row of each level comes in order of score.

    ``VUS = sum over (i_1, .., i_K), i_k of level k, of prod_k (w_k / W_k) t(f_1, .., f_K)`` with
    ``w`` the weights, ``f`` the scores and ``W_k`` the weight of level k. ``t`` is 0 where a
    higher level scores lower, and else ``prod 1 / r!`` over the runs of r equal scores: the share
    of the orders of tied rows that is right, 1/2 for a tie of two, 1/6 for a tie of three. With
    two levels it is `roc_auc`. Equal scores give ``1 / K!``, and so does a random order on
    average: 0.17 for three levels, 0.008 for five. Levels without rows change nothing.

    Exact for any number of levels, and no tuple is formed. In increasing order of score,
    ``A_k``, the chance that rows of the k lowest levels stand in order below the score at hand,
    grows by ``sum_r A_{k - r} s_{k - r + 1} .. s_k / r!`` at each distinct score, with ``s`` the
    share of each level that has this score; ``A_K`` is the answer.

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
        In [0, 1]; O(n) memory, O(n (log n + K)) time, of which O(n log n) where no scores tie.

    Raises
    ------
    ValueError
        As `mauc`.

    References
    ----------
    Nakas, Yiannoutsos (2004), "Ordered multiple-class ROC analysis with continuous measurements"
    (ties). Waegeman, De Baets, Boullart (2008), "On the scalability of ordered multi-class ROC
    analysis" (no tuple need be formed). Tayal, Coleman, Li (2014), "Bounding the difference
    between RankRC and RankSVM", section 5, which takes it for exponential in the levels.

    Examples
    --------
    >>> vus([1, 2, 2, 3], [0.1, 0.5, 0.3, 0.4])
    0.5
    >>> round(vus(["low", "mid", "high"], [1.0, 1.0, 1.0], levels=["low", "mid", "high"]), 4)
    0.1667
    """
    return _vus(level_cells(y, scores, sample_weight, levels))


def vus_interval(
    y: Any,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    *,
    levels: Any = None,
    n_draws: int = 200,
    random_state: Any = 0,
) -> Interval:
    """VUS with a bootstrap confidence interval on the logit scale.

    As `mauc_interval`, whose parameters these are. A row of level k is in order with the others'
    with a chance between 0 and ``V_k``, the VUS of all other levels, so that the made-up row of
    the greatest possible spread adds ``VUS (V_k - VUS) / W_k**2``. The bounds are kept within
    those of as many yes-or-no trials as the rarest level has rows.

    Examples
    --------
    >>> interval = vus_interval([1, 2, 2, 3, 1, 3], [0.1, 0.5, 0.3, 0.4, 0.2, 0.6])
    >>> round(interval.value, 3), 0 < interval.low < interval.value < interval.high < 1
    (0.75, True)
    """
    cells = level_cells(y, scores, sample_weight, levels)
    variance = variance_of_draws(_vus, cells, level, n_draws, random_state)
    value, mass = _vus(cells), cells.mass
    for code in np.flatnonzero(mass):
        others = np.where(cells.codes == code, 0.0, cells.weight)
        spread = max(_vus(cells._replace(weight=others)) - value, 0.0)
        variance += value * spread / float(mass[code]) ** 2
    rarest = float(mass[mass > 0.0].min())
    return ShareEstimate(value, value, variance, rarest).interval(level)


def _vus(cells: LevelCells) -> float:
    """VUS of the levels that have weight; cells without weight may be among them."""
    # Not at the top: numba takes longer to load than small samples take to sort.
    from rareclass.metrics import _ranking_jit as jit

    kept = cells.weight > 0.0
    ends = np.cumsum(kept)[cells.ends - 1]
    present, codes = np.unique(cells.codes[kept], return_inverse=True)
    # By each level's largest weight first: the sum of extreme weights could overflow.
    largest = np.zeros(len(present))
    np.maximum.at(largest, codes, cells.weight[kept])
    share = cells.weight[kept] / largest[codes]
    share /= np.bincount(codes, share)[codes]
    chance = jit.chance_in_order(codes.astype(np.int64), ends, share, len(present))
    return float(np.clip(chance, 0.0, 1.0))
