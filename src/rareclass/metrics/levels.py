"""Measures of ordered levels: MAUC and VUS, and the variance of either by drawing rows again."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind
from rareclass.metrics.intervals import ShareEstimate
from rareclass.metrics.scored_classes import FloatArray, check_scores, group_codes, read_column

_MOST_DRAWS = 2**31 - 1  # what a draw can count, on every system


class RowsOfGroups(NamedTuple):
    """Rows in the order of their cells, each with its group."""

    weight: FloatArray
    group: NDArray[np.intp]
    starts: NDArray[np.intp]  # of each cell
    n_groups: int


class LevelCells(NamedTuple):
    """Weights by distinct (score, level), in that order: copies and weights come to the same."""

    codes: NDArray[np.int64]  # level of each cell
    ends: NDArray[np.int64]  # where each run of equal scores ends
    weight: FloatArray
    n_levels: int
    rows: RowsOfGroups | None = None  # where groups are known

    @property
    def mass(self) -> FloatArray:
        """Weight of each level."""
        return np.bincount(self.codes, self.weight, self.n_levels).astype(np.float64)

    def unit(self) -> FloatArray:
        """Weight of as many rows of each level as one independent row counts: 1 without groups."""
        if self.rows is None:
            return np.ones(self.n_levels)
        weight, group, starts, n_groups = self.rows
        level = np.repeat(self.codes, np.diff(np.append(starts, len(weight))))
        of_groups = np.bincount(level * n_groups + group, weight, self.n_levels * n_groups)
        squares = np.square(of_groups.reshape(self.n_levels, n_groups)).sum(axis=1)
        return np.asarray(squares / np.where(self.mass > 0.0, self.mass, 1.0))


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

    Parameters and errors as of `mauc`; in [0, 1]. O(n) memory, O(n (log n + K)) time, of which
    O(n log n) where no scores tie.

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


def level_estimate(
    measure: str,
    y: Any,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    levels: Any = None,
    n_draws: int = 200,
    random_state: Any = 0,
    groups: Any = None,
) -> ShareEstimate:
    """MAUC or VUS with its variance over rows drawn again, and one made-up row in each level.

    A level of few rows that happen to rank alike shows none of the spread that is there, so the
    row of the greatest possible spread is added. With groups these are drawn again, and the row
    weighs as many rows of the level as are one independent row.
    """
    cells = level_cells(y, scores, sample_weight, levels, groups)
    of_cells, made_up = _MEASURES[measure]
    variance = _variance_of_draws(of_cells, cells, n_draws, random_state)
    value = of_cells(cells)
    added, n_trials = made_up(cells, value)
    return ShareEstimate(value, value, sum(added, variance), n_trials)


def _mauc_made_up(cells: LevelCells, value: float) -> tuple[list[float], float]:
    """Variances of the made-up rows of MAUC, added up, and the trials that it rests on.

    ``c sum_r (u_r (W - W_r) / N)**2`` with ``c = MAUC (1 - MAUC)``, W the weight of all rows, N
    that of all pairs and u the `unit`; as many trials as independent rows outside the most frequent
    level.
    """
    mass, unit = cells.mass, cells.unit()
    some, total = mass > 0.0, mass.sum()
    spread = ((unit[some] * (total - mass[some]) / _pairs(mass)) ** 2).sum()
    outside = some & (np.arange(len(mass)) != mass.argmax())
    return [float(value * (1.0 - value) * spread)], float((mass[outside] / unit[outside]).sum())


def _vus_made_up(cells: LevelCells, value: float) -> tuple[list[float], float]:
    """Variance of the made-up row of each level for VUS, and the trials that it rests on.

    A row of level k is in order with the others' with a chance between 0 and ``V_k``, the VUS of
    all other levels: ``VUS (V_k - VUS) / n_k**2``, of n independent rows. As many trials as the
    rarest level has of those.
    """
    some, added = np.flatnonzero(cells.mass), []
    n_rows = cells.mass[some] / cells.unit()[some]
    for code, n in zip(some, n_rows, strict=True):
        others = np.where(cells.codes == code, 0.0, cells.weight)
        spread = max(_vus(cells._replace(weight=others)) - value, 0.0)
        added.append(value * spread / float(n) ** 2)
    return added, float(n_rows.min())


_MEASURES = {"mauc": (_mauc, _mauc_made_up), "vus": (_vus, _vus_made_up)}


def read_levels(
    y: Any, scores: ArrayLike, sample_weight: ArrayLike | None, levels: Any
) -> tuple[NDArray[Any], NDArray[Any], FloatArray, FloatArray | None]:
    """Levels in order; of the rows of weight above 0 the place of each level, scores, weights.

    Refuses what `check_scores` and `encode` refuse, and columns of different lengths.
    """
    # Not at the top: scikit-learn takes seconds to load, and no other measure needs it.
    from rareclass.labels.levels import encode

    value, weight = check_scores(scores, sample_weight)
    order, codes = encode(y, levels)
    read_column(codes, "y", len(value))
    if weight is None:
        return order, codes, value, None
    kept = weight > 0.0
    return order, codes[kept], value[kept], weight[kept]


def level_cells(
    y: Any, scores: ArrayLike, sample_weight: ArrayLike | None, levels: Any, groups: Any = None
) -> LevelCells:
    """Check the columns and add up the rows; O(n log n).

    Refuses what `check_scores` and the reading of levels refuse, and rows of fewer than two levels.
    """
    from rareclass.labels.spelling import plain

    order, codes, value, weight = read_levels(y, scores, sample_weight, levels)
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
    rows = None
    if groups is not None:
        kept = ... if sample_weight is None else np.asarray(sample_weight, float) > 0.0
        every, n_groups = group_codes(groups, len(np.asarray(scores)), kept)
        group = every[kept]
        first = np.unique(group, return_index=True)[1]
        group = np.argsort(np.argsort(first))[group]  # by their first rows, whatever their names
        rows = RowsOfGroups(by_row, group[by], starts, n_groups)
    cells = LevelCells(codes[starts].astype(np.int64), ends, cell_weight, len(order), rows)
    present = np.flatnonzero(cells.mass)
    if len(present) < 2:
        held = f"only {plain(order[present[0]])!r}" if len(present) else "no level"
        raise ErrorKind.LABELS.error(
            f"y holds {held}.",
            "Rows of two levels or more are needed to measure their order.",
            column="y",
        )
    return cells


def _variance_of_draws(
    measure: Callable[[LevelCells], float], cells: LevelCells, n_draws: int, random_state: Any
) -> float:
    """Variance of a measure over rows drawn again within each level, or groups, with replacement.

    A draw of groups that has one level only tells nothing and is left out.
    """
    from sklearn.utils import check_random_state

    if not n_draws >= 2:
        raise ErrorKind.SETTING.error(f"n_draws={n_draws!r} must be at least 2.")
    rng = check_random_state(random_state)
    members = [np.flatnonzero(cells.codes == code) for code in np.flatnonzero(cells.mass)]

    def again() -> LevelCells:
        if cells.rows is None:
            return cells._replace(weight=drawn_again(rng, cells.weight, members))
        weight, group, starts, n_groups = cells.rows
        times = rng.multinomial(n_groups, np.full(n_groups, 1.0 / n_groups))
        return cells._replace(weight=np.add.reduceat(weight * times[group], starts))

    draws = [again() for _ in range(int(n_draws))]
    return float(np.var([measure(each) for each in draws if (each.mass > 0.0).sum() > 1], ddof=1))


def drawn_again(rng: Any, weight: FloatArray, strata: Sequence[NDArray[np.intp]]) -> FloatArray:
    """Weights of rows drawn with replacement, as many as there are in each stratum.

    Weights that are no frequencies stand for the nearest whole number of rows, at least one.
    """
    again = np.zeros_like(weight)
    for rows in strata:
        total = weight[rows].sum()
        n = min(max(round(float(total)), 1), _MOST_DRAWS)
        again[rows] = rng.multinomial(n, weight[rows] / total) * (total / n)
    return again
