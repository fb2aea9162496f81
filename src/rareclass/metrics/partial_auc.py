"""The area under the ROC curve up to a false-positive rate, and its confidence interval."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.cells_of_columns import cells_of
from rareclass.metrics.interval import (
    Interval,
    cautious_square_sum,
    normal_quantile,
    share_interval,
)
from rareclass.metrics.rare_cells import RareCells
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number


def partial_auc(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    max_fpr: float,
    standardized: bool = True,
) -> float:
    """Area under the ROC curve over false-positive rates up to `max_fpr`.

    ``A = int_0^p TPR(u) du`` with ``p = max_fpr``, ties drawn as straight lines. ``A / p`` is the
    chance that a rare row scores above a majority row of the top share p of its class.
    Standardised, as in scikit-learn's ``roc_auc_score(max_fpr=p)``, which this then equals, it is
    McClish's ``(1 + (A - p**2 / 2) / (p - p**2 / 2)) / 2``: 1/2 for a random order, 1 at best.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    max_fpr : float
        In (0, 1]; 1 gives the AUC.
    standardized : bool, default True
        False gives the area itself, in [0, max_fpr].

    Returns
    -------
    float
        O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        When `max_fpr` is not in (0, 1], and as `roc_auc`.

    References
    ----------
    McClish (1989), "Analyzing a portion of the ROC curve", Medical Decision Making 9.

    Examples
    --------
    >>> partial_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], max_fpr=0.5, standardized=False)
    0.25
    >>> round(partial_auc([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8], max_fpr=0.5), 4)
    0.6667
    """
    scale = area_scale(max_fpr, standardized)
    cells = cells_of(y, scores, sample_weight)
    return scale.of(share_of_area(cells, max_fpr))


def partial_auc_interval(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    level: float = 0.95,
    *,
    max_fpr: float,
    standardized: bool = True,
) -> Interval:
    """Partial AUC with a confidence interval, made as that of the AUC.

    With ``s = A / p``: ``V_i`` is the share of the majority's top share p below rare row i, and
    ``I_j`` the influence of a majority row, ``(U_j - TPR(p)) / p`` in the top and 0 below it, less
    its mean, with ``U_j`` the share of the rare rows above row j: that of a mean of what is above
    a quantile. ``variance = (sum_i w_i (V_i - s)**2 + c) / W+**2 + (sum_j w_j I_j**2 + c / p**2) /
    W-**2`` with ``c = s (1 - s)`` a made-up row in each class. The logit interval around s is kept
    within the bounds of ``min(W+, p W-)`` yes-or-no trials, then brought to the scale asked for.

    Parameters
    ----------
    y, scores, sample_weight, max_fpr, standardized
        As in `partial_auc`. Weights are frequencies: a weight of 3 is three independent rows.
    level : float, default 0.95
        Share of samples whose interval is to hold the truth. Greater gives wider.

    Returns
    -------
    Interval
        ``(value, low, high)``; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        As `partial_auc`, and when `level` is not between 0 and 1.

    Examples
    --------
    >>> interval = partial_auc_interval([0, 0, 0, 1, 1], [0.1, 0.2, 0.4, 0.3, 0.8], max_fpr=0.5)
    >>> round(interval.value, 3), interval.low < interval.value < interval.high < 1
    (0.778, True)
    """
    normal_quantile(level)
    scale = area_scale(max_fpr, standardized)
    cells = cells_of(y, scores, sample_weight)
    share, variance = share_with_variance(cells, max_fpr)
    n_trials = min(cells.n_rare, max_fpr * cells.n_majority)
    found = share_interval(share, share, variance, n_trials, level)
    return Interval(*(scale.of(bound) for bound in found))


class AreaScale(NamedTuple):
    """What is reported for a share s of the area: ``offset + factor * s``."""

    offset: float
    factor: float

    def of(self, share: float) -> float:
        """The figure for a share of the area."""
        return self.offset + self.factor * share


def area_scale(max_fpr: float, standardized: bool) -> AreaScale:
    """From ``A / p`` to what was asked for; `max_fpr` out of range is refused."""
    check_number("max_fpr", max_fpr, "a rate above 0 and at most 1", 0.0, 1.0, "(]")
    if not standardized:
        return AreaScale(0.0, max_fpr)
    # (1 + (s - p / 2) / (1 - p / 2)) / 2
    factor = 0.5 / (1.0 - max_fpr / 2.0)
    return AreaScale(0.5 - factor * max_fpr / 2.0, factor)


def share_of_area(cells: RareCells, max_fpr: float) -> float:
    """``A / p``."""
    below = _top(cells, max_fpr)[0]
    return float(np.clip(cells.rare @ below / cells.n_rare, 0.0, 1.0))


def share_with_variance(cells: RareCells, max_fpr: float) -> tuple[float, float]:
    """``A / p`` and its cautious variance."""
    below, part_of_ties, part_of_gaps = _top(cells, max_fpr)
    share = float(np.clip(cells.rare @ below / cells.n_rare, 0.0, 1.0))
    of_gaps = np.append(cells.rare_from(), 0.0) / cells.n_rare
    of_ties = (of_gaps[:-1] + of_gaps[1:]) / 2.0
    part = np.concatenate([part_of_gaps, part_of_ties])
    above = np.concatenate([of_gaps, of_ties])
    # The true-positive rate at the cut: that of the lowest cell that reaches into the top.
    at_cut = above[part > 0.0].max()
    weight = np.concatenate([cells.gaps, cells.tied])
    influence = part * (above - at_cut) / max_fpr
    influence -= weight @ influence / cells.n_majority
    variance = cautious_square_sum(cells.rare, below - share, share) / cells.n_rare / cells.n_rare
    of_majority = weight @ influence**2 + share * (1.0 - share) / max_fpr**2
    return share, float(variance + of_majority / cells.n_majority / cells.n_majority)


def _top(cells: RareCells, max_fpr: float) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Share of the majority's top below each rare score; part of each tie and gap in the top.

    Shapes (d,), (d,), (d + 1,). Of a tie of weight g with weight t in the top, each rare row there
    stands before ``t**2 / (2 g)`` of it on average.
    """
    most = max_fpr * cells.n_majority
    above_gap = np.append(cells.majority_from(), 0.0)
    above_tie = above_gap[1:] + cells.gaps[1:]
    in_gap = np.clip(most - above_gap, 0.0, cells.gaps)
    in_tie = np.clip(most - above_tie, 0.0, cells.tied)
    tied = np.where(cells.tied > 0.0, cells.tied, 1.0)
    left = np.maximum(most - above_tie - in_tie, 0.0)
    below = (in_tie * in_tie / (2.0 * tied) + left) / most
    gaps = np.where(cells.gaps > 0.0, cells.gaps, 1.0)
    return below, in_tie / tied, in_gap / gaps
