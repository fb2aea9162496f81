"""MAUC: the share of pairs of different levels that scores put in order, and its interval."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.metrics.interval import Interval, ShareEstimate, normal_quantile
from rareclass.metrics.scored_classes import FloatArray, check_scores, read_column, whole_rows


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
    return _mauc(_cells(y, scores, sample_weight, levels))


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
    from sklearn.utils import check_random_state

    normal_quantile(level)
    if not n_draws >= 2:
        raise ValueError(f"n_draws={n_draws!r} must be at least 2.")
    cells = _cells(y, scores, sample_weight, levels)
    value = _mauc(cells)
    rng = check_random_state(random_state)
    members = [np.flatnonzero(cells.codes == code) for code in np.flatnonzero(cells.mass)]
    drawn = np.empty(int(n_draws))
    for k in range(len(drawn)):  # as many rows of each level again, with replacement
        weight = np.zeros_like(cells.weight)
        for of_level in members:
            own = cells.weight[of_level]
            n = whole_rows(own.sum())
            weight[of_level] = rng.multinomial(n, own / own.sum()) * (own.sum() / n)
        drawn[k] = _mauc(cells._replace(weight=weight))
    mass = cells.mass
    total = mass.sum()
    spread = (((total - mass[mass > 0.0]) / _pairs(mass)) ** 2).sum()
    variance = float(np.var(drawn, ddof=1) + value * (1.0 - value) * spread)
    return ShareEstimate(value, value, variance, float(total - mass.max())).interval(level)


class _Cells(NamedTuple):
    """Weights by distinct (score, level), in that order: copies and weights come to the same."""

    codes: NDArray[np.int64]  # level of each cell
    ends: NDArray[np.int64]  # where each group of equal scores ends
    weight: FloatArray
    n_levels: int

    @property
    def mass(self) -> FloatArray:
        """Weight of each level."""
        return np.bincount(self.codes, self.weight, self.n_levels).astype(np.float64)


def _cells(y: Any, scores: ArrayLike, sample_weight: ArrayLike | None, levels: Any) -> _Cells:
    # Not at the top: scikit-learn takes seconds to load, and no other measure needs it.
    from rareclass.labels.levels import encode
    from rareclass.labels.two_classes import plain

    value, weight = check_scores(scores, sample_weight)
    order, codes = encode(y, levels)
    read_column(codes, "y", len(value))
    if weight is not None:
        kept = weight > 0.0
        value, codes, weight = value[kept], codes[kept], weight[kept]
    # By level first: two bytes a code are sorted by counting. Then by score, keeping that order.
    by = np.argsort(codes.astype(np.min_scalar_type(len(order))), kind="stable")
    by = by[np.argsort(value[by], kind="stable")]
    value, codes = value[by], codes[by]
    new_score = np.append(True, value[1:] != value[:-1])[: len(value)]
    new_level = np.append(True, codes[1:] != codes[:-1])[: len(codes)]
    starts = np.flatnonzero(new_score | new_level)
    by_row = np.ones(len(by)) if weight is None else weight[by]
    cell_weight = np.add.reduceat(by_row, starts) if len(starts) else by_row
    ends = np.append(np.flatnonzero(new_score[starts])[1:], len(starts)).astype(np.int64)
    cells = _Cells(codes[starts].astype(np.int64), ends, cell_weight, len(order))
    present = np.flatnonzero(cells.mass)
    if len(present) < 2:
        held = f"only {plain(order[present[0]])!r}" if len(present) else "no level"
        raise InputError(
            f"y holds {held}.",
            "Rows of two levels or more are needed for a MAUC.",
            ErrorKind.LABELS,
            column="y",
        )
    return cells


def _mauc(cells: _Cells) -> float:
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
