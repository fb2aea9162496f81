"""Average precision, exact, and its confidence interval."""

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.interval import (
    Interval,
    ShareEstimate,
    cautious_square_sum,
    normal_quantile,
    share_interval,
)
from rareclass.metrics.rare_cells import RareCells, cells_of
from rareclass.metrics.scored_classes import FloatArray


def average_precision(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Mean, over the rare rows, of the precision at the row's own score.

    ``AP = sum_i w_i P_i / W+`` with ``P_i = T_i / (T_i + F_i)``, where ``T_i`` and ``F_i`` are the
    weights of the rare and of the majority rows that score at least ``s_i``, and ``W+`` the weight
    of the rare rows. Rows of equal score are one step, as in scikit-learn's
    ``average_precision_score``, which this equals.

    Parameters
    ----------
    y, scores, sample_weight
        As in `roc_auc`.

    Returns
    -------
    float
        In (0, 1]; a random order gives about the share of the rare class. O(n log n) time, O(n)
        memory.

    Raises
    ------
    ValueError
        As `roc_auc`.

    Examples
    --------
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return average_precision_of_cells(cells_of(y, scores, sample_weight))


def average_precision_interval(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None, level: float = 0.95
) -> Interval:
    """Average precision with a confidence interval, the class shares being given.

    The truth meant is the average precision of the same scores on endless rows with this sample's
    share of rare rows. The variance is the infinitesimal jackknife's: each row's influence on AP,
    its squares added up in each class, with one row of spread ``AP (1 - AP)`` added as in
    `roc_auc_interval`. A rare row counts itself in its own precision, which lifts AP by about
    ``b = sum_i w_i (1 - T_i / W+) F_i / (T_i + F_i)**2 / W+``; the interval lies around
    ``AP - b`` on the logit scale, is kept within the bounds of W+ yes-or-no trials, and always
    holds AP. No resampling and so no random state.

    Nominal 95 % intervals held the truth in 90 to 99 % of samples of 5 to 300 rare rows in 1 %;
    the percentile bootstrap, for 20 rare rows, in 66 to 94 %
    (``python -m benchmarks.interval_coverage``).

    Parameters
    ----------
    y, scores, sample_weight
        As in `average_precision`. Weights are frequencies: a weight of 3 is three independent
        rows.
    level : float, default 0.95
        Share of samples whose interval is to hold the truth. Greater gives wider.

    Returns
    -------
    Interval
        ``(value, low, high)`` within [0, 1]; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As `average_precision`, and when `level` is not between 0 and 1.

    References
    ----------
    Boyd, Eng and Page (2013), "Area under the precision-recall curve: point estimates and
    confidence intervals", ECML PKDD (the logit scale).

    Examples
    --------
    >>> interval = average_precision_interval([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8])
    >>> round(interval.value, 3), 0 < interval.low < interval.value < interval.high <= 1
    (0.833, True)
    """
    normal_quantile(level)
    cells = cells_of(y, scores, sample_weight)
    return share_interval(*with_variance(cells), cells.n_rare, level)


def average_precision_of_cells(cells: RareCells) -> float:
    """Average precision of rows that are counted already."""
    return _mean_over_rare(cells, _precisions(cells))


def with_variance(cells: RareCells) -> ShareEstimate:
    """AP with its cautious variance."""
    value = average_precision_of_cells(cells)
    of_rare, of_majority = influences(cells)
    majority = np.concatenate([cells.gaps, cells.tied])
    variance = (
        cautious_square_sum(cells.rare, of_rare, value) / cells.n_rare / cells.n_rare
        + cautious_square_sum(majority, of_majority, value) / cells.n_majority / cells.n_majority
    )
    # Fractional weights can make the first-order bias as great as the value itself.
    centre = value - min(_self_count_bias(cells), value / 2.0)
    return ShareEstimate(value, centre, variance)


def influences(cells: RareCells) -> tuple[FloatArray, FloatArray]:
    """Influence on AP of a row in each cell, times the weight of the row's class.

    The influence is the derivative of AP along ``F -> (1 - e) F + e delta_row`` for the class's
    distribution F: a rare row brings its own precision and lifts that of every rare row below it or
    level with it; a majority row lowers theirs.

    Shapes (d,) and (2 d + 1,): the d + 1 gaps, then the d ties.
    """
    precision = _precisions(cells)
    gain, loss = _slopes(cells)
    lifted = np.cumsum(cells.rare * gain)
    of_rare = precision + lifted
    of_rare -= cells.rare @ of_rare / cells.n_rare
    sunk = np.concatenate([[0.0], np.cumsum(cells.rare * loss)])
    sunk *= cells.n_majority / cells.n_rare
    of_majority = -np.concatenate([sunk, sunk[1:]])
    weight = np.concatenate([cells.gaps, cells.tied])
    return of_rare, of_majority - weight @ of_majority / cells.n_majority


def _precisions(cells: RareCells) -> FloatArray:
    rare = cells.rare_from()
    return rare / (rare + cells.majority_from())


def _slopes(cells: RareCells) -> tuple[FloatArray, FloatArray]:
    """Gain in precision by one more rare row above, and loss by one more majority row."""
    rare, majority = cells.rare_from(), cells.majority_from()
    called = rare + majority
    # Two divisions: the square of an extreme weight could overflow or vanish.
    return majority / called / called, rare / called / called


def _self_count_bias(cells: RareCells) -> float:
    gain, _ = _slopes(cells)
    return _mean_over_rare(cells, (1.0 - cells.rare_from() / cells.n_rare) * gain)


def _mean_over_rare(cells: RareCells, values: FloatArray) -> float:
    return min(float(cells.rare @ values) / cells.n_rare, 1.0)
