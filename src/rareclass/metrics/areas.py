"""Areas under the ROC and precision-recall curves, exact, with their cautious variances."""

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.intervals import ShareEstimate, cautious_square_sum
from rareclass.metrics.scored_classes import FloatArray, RareCells, cells_of
from rareclass.parameters import check_number


def roc_auc(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
    """Chance that a rare row scores above a majority row, ties counting one half.

    ``AUC = sum_i sum_j w_i w_j ([s_i > s_j] + [s_i = s_j] / 2) / (W+ W-)`` over rare rows i and
    majority rows j, with ``w`` the weights, ``s`` the scores, ``W+`` and ``W-`` the weight of each
    class. No pair is formed.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.

    Returns
    -------
    float
        In [0, 1]; O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        On empty or mismatched columns, labels other than 0 and 1, NaN scores, negative weights,
        or a class without rows.

    Examples
    --------
    >>> roc_auc([0, 0, 1, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    return auc_of_cells(cells_of(y, scores, sample_weight))


def auc_estimate(cells: RareCells) -> ShareEstimate:
    """AUC with DeLong's variance, and one more row of the greatest spread in each class.

    ``V_i`` is the share of the majority below rare row i, ``U_j`` the share of the rare rows above
    majority row j (ties one half). Both have mean AUC, and
    ``variance = (sum_i w_i (V_i - AUC)**2 + c) / W+**2 + (sum_j w_j (U_j - AUC)**2 + c) / W-**2``
    with ``c = AUC (1 - AUC)``, because DeLong's own is far too short for few rare rows at a high
    AUC. It rests on ``min(W+, W-)`` trials.

    DeLong, DeLong and Clarke-Pearson (1988), Biometrics 44; Sun and Xu (2014), IEEE Signal
    Processing Letters 21.
    """
    auc = auc_of_cells(cells)
    variance = _cautious_variance(cells, auc_influences(cells), auc)
    return ShareEstimate(auc, auc, variance, min(cells.n_rare, cells.n_majority))


def auc_influences(cells: RareCells) -> tuple[FloatArray, FloatArray]:
    """DeLong's structural components less the AUC, for a row in each cell.

    Of a rare row the share of the majority below it, of a majority row the share of the rare rows
    above it; ties count one half. Shapes as of `average_precision_influences`.
    """
    auc = auc_of_cells(cells)
    return cells.majority_below() / cells.n_majority - auc, rare_above(cells) - auc


def _cautious_variance(
    cells: RareCells, influences: tuple[FloatArray, FloatArray], share: float, max_fpr: float = 1.0
) -> float:
    """Variance from the influence of a row in each cell, with a made-up row in each class.

    Of the majority that in the top `max_fpr` of it, which is so many times rarer.
    """
    n_rare, n_majority = cells.n_rare, cells.n_majority
    (of_rare, of_majority), majority = influences, np.concatenate([cells.gaps, cells.tied])
    return (
        cautious_square_sum(cells.rare, of_rare, share) / n_rare / n_rare
        + cautious_square_sum(majority, of_majority, share, max_fpr) / n_majority / n_majority
    )


def rare_above(cells: RareCells) -> FloatArray:
    """Share of the rare rows above a majority row, ties one half: in the gaps, then at the ties."""
    of_gaps = np.append(cells.rare_from(), 0.0) / cells.n_rare
    return np.concatenate([of_gaps, (of_gaps[:-1] + of_gaps[1:]) / 2.0])


def auc_of_cells(cells: RareCells) -> float:
    """AUC of rows that are counted already."""
    # Shares first: the products of two extreme weights could overflow. At perfect separation
    # the quotient of two equal sums must not round past 1.
    of_rare = cells.majority_below() / cells.n_majority
    return float(np.clip(cells.rare @ of_rare / cells.n_rare, 0.0, 1.0))


def accuracy_at_optroc(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Largest accuracy that any threshold on the scores gives, equal costs on both errors.

    ``max_t (sum_i w_i [s_i >= t] + sum_j w_j [s_j < t]) / (W+ + W-)`` over rare rows i and majority
    rows j, as in `roc_auc`, whose parameters, errors and cost it has, and t any number or infinity.
    Rows of equal score are called alike. It is the accuracy at the point of the ROC curve that the
    line of slope ``W- / W+`` touches first (OPTROC), at least ``max(W+, W-) / (W+ + W-)``.

    The threshold is chosen on the rows that it is judged by, so the figure flatters small samples.
    It compares rankings; what a threshold chosen in advance will do, it does not say.

    References
    ----------
    Khalid, Ray and Chitsaz (2016), "Confidence-weighted bipartite ranking", Tables 4 and 6.

    Examples
    --------
    >>> accuracy_at_optroc([0, 0, 1, 0, 1], [0.1, 0.2, 0.3, 0.4, 0.8])
    0.8
    >>> accuracy_at_optroc([0, 0, 1], [0.5, 0.5, 0.5]) == 2 / 3
    True
    """
    cells = cells_of(y, scores, sample_weight)
    # A threshold in a gap or above a tied majority row is no better than one at the next rare
    # score, so the rare scores and "nothing is rare" are all there is to try.
    found = np.append(cells.rare_from(), 0.0)
    below = np.append(0.0, np.cumsum(cells.tied)) + np.cumsum(cells.gaps)
    return float(min((found + below).max() / (cells.n_rare + cells.n_majority), 1.0))


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
    y, scores, sample_weight
        As in `roc_auc`, with the same errors and cost.
    max_fpr : float
        In (0, 1], else refused; 1 gives the AUC.
    standardized : bool, default True
        False gives the area itself, in [0, max_fpr].

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
    found = area_estimate(cells_of(y, scores, sample_weight), max_fpr, standardized)
    return found.offset + found.factor * found.value


def area_estimate(cells: RareCells, max_fpr: float, standardized: bool = True) -> ShareEstimate:
    """Estimate of ``A / p`` with its cautious variance, to be reported as was asked for.

    With ``s = A / p``: ``V_i`` is the share of the majority's top share p below rare row i, and
    ``I_j`` the influence of a majority row, ``(U_j - TPR(p)) / p`` in the top and 0 below it, less
    its mean, with ``U_j`` the share of the rare rows above row j: that of a mean of what is above
    a quantile. ``variance = (sum_i w_i (V_i - s)**2 + c) / W+**2 + (sum_j w_j I_j**2 + c / p**2) /
    W-**2`` with ``c = s (1 - s)`` a made-up row in each class. It rests on ``min(W+, p W-)``
    trials.
    """
    check_number("max_fpr", max_fpr, "a rate above 0 and at most 1", 0.0, 1.0, "(]")
    share = _share_of_top(cells, _top_of_majority(cells, max_fpr)[0])
    influences = partial_auc_influences(cells, max_fpr)
    variance = _cautious_variance(cells, influences, share, max_fpr)
    n_trials = min(cells.n_rare, max_fpr * cells.n_majority)
    if not standardized:
        return ShareEstimate(share, share, variance, n_trials, 0.0, max_fpr)
    # (1 + (s - p / 2) / (1 - p / 2)) / 2
    factor = 0.5 / (1.0 - max_fpr / 2.0)
    return ShareEstimate(share, share, variance, n_trials, 0.5 - factor * max_fpr / 2.0, factor)


def partial_auc_influences(
    cells: RareCells, max_fpr: float, standardized: bool = True
) -> tuple[FloatArray, FloatArray]:
    """Influence on ``A / p`` of a row in each cell; shapes as of `average_precision_influences`.

    It is the same however the area is reported.
    """
    below, part = _top_of_majority(cells, max_fpr)
    above, weight = rare_above(cells), np.concatenate([cells.gaps, cells.tied])
    # The true-positive rate at the cut: that of the lowest cell that reaches into the top.
    influence = part * (above - above[part > 0.0].max()) / max_fpr
    influence -= weight @ influence / cells.n_majority
    return below - _share_of_top(cells, below), influence


def _share_of_top(cells: RareCells, below: FloatArray) -> float:
    """``A / p``: the mean, over the rare rows, of the share of the top below."""
    return float(np.clip(cells.rare @ below / cells.n_rare, 0.0, 1.0))


def _top_of_majority(cells: RareCells, max_fpr: float) -> tuple[FloatArray, FloatArray]:
    """Share of the majority's top share p below each rare score, and part of each cell in the top.

    Shapes (d,) and (2 d + 1,): the d + 1 gaps, then the d ties. Of a tie of weight g with weight t
    in the top, each rare row there stands before ``t**2 / (2 g)`` of it on average.
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
    return below, np.concatenate([in_gap / gaps, in_tie / tied])


def average_precision(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Mean, over the rare rows, of the precision at the row's own score.

    ``AP = sum_i w_i P_i / W+`` with ``P_i = T_i / (T_i + F_i)``, where ``T_i`` and ``F_i`` are the
    weights of the rare and of the majority rows that score at least ``s_i``, and ``W+`` the weight
    of the rare rows. Rows of equal score are one step, as in scikit-learn's
    ``average_precision_score``, which this equals. A random order gives about the share of the rare
    class. Parameters, errors and cost as of `roc_auc`.

    Examples
    --------
    >>> round(average_precision([0, 0, 1, 1], [0.1, 0.4, 0.35, 0.8]), 4)
    0.8333
    """
    return average_precision_of_cells(cells_of(y, scores, sample_weight))


def average_precision_of_cells(cells: RareCells) -> float:
    """Average precision of rows that are counted already."""
    rare = cells.rare_from()
    return min(float(cells.rare @ (rare / (rare + cells.majority_from()))) / cells.n_rare, 1.0)


def average_precision_estimate(cells: RareCells) -> ShareEstimate:
    """AP with its cautious variance, the class shares being given.

    The truth meant is the average precision of the same scores on endless rows with this sample's
    share of rare rows. The variance is the infinitesimal jackknife's: each row's influence on AP,
    its squares added up in each class, with one row of spread ``AP (1 - AP)`` added as in
    `auc_estimate`. A rare row counts itself in its own precision, which lifts AP by about
    ``b = sum_i w_i (1 - T_i / W+) F_i / (T_i + F_i)**2 / W+``: the centre is ``AP - b``. It rests
    on W+ trials.

    Boyd, Eng and Page (2013), "Area under the precision-recall curve: point estimates and
    confidence intervals", ECML PKDD (the logit scale).
    """
    n_rare, value = cells.n_rare, average_precision_of_cells(cells)
    variance = _cautious_variance(cells, average_precision_influences(cells), value)
    gain, _ = _slopes(cells)
    bias = min(float(cells.rare @ ((1.0 - cells.rare_from() / n_rare) * gain)) / n_rare, 1.0)
    # Fractional weights can make the first-order bias as great as the value itself.
    return ShareEstimate(value, value - min(bias, value / 2.0), variance, n_rare)


def average_precision_influences(cells: RareCells) -> tuple[FloatArray, FloatArray]:
    """Influence on AP of a row in each cell, times the weight of the row's class.

    The influence is the derivative of AP along ``F -> (1 - e) F + e delta_row`` for the class's
    distribution F: a rare row brings its own precision and lifts that of every rare row below it or
    level with it; a majority row lowers theirs.

    Shapes (d,) and (2 d + 1,): the d + 1 gaps, then the d ties.
    """
    rare = cells.rare_from()
    gain, loss = _slopes(cells)
    of_rare = rare / (rare + cells.majority_from()) + np.cumsum(cells.rare * gain)
    of_rare -= cells.rare @ of_rare / cells.n_rare
    sunk = np.concatenate([[0.0], np.cumsum(cells.rare * loss)])
    sunk *= cells.n_majority / cells.n_rare
    of_majority = -np.concatenate([sunk, sunk[1:]])
    weight = np.concatenate([cells.gaps, cells.tied])
    return of_rare, of_majority - weight @ of_majority / cells.n_majority


def _slopes(cells: RareCells) -> tuple[FloatArray, FloatArray]:
    """Gain in precision by one more rare row above, and loss by one more majority row."""
    rare, majority = cells.rare_from(), cells.majority_from()
    called = rare + majority
    # Two divisions: the square of an extreme weight could overflow or vanish.
    return majority / called / called, rare / called / called
