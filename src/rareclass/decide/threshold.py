"""Thresholds without a rule: of best balanced accuracy, and between ordered levels."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rareclass.errors import too_few_rows
from rareclass.metrics.held_out_cuts import between, steps, widest_gap
from rareclass.metrics.intervals import EQUAL
from rareclass.metrics.rare_cells import place_rows
from rareclass.metrics.scored_classes import FloatArray, ScoredClasses, split_scores


def balanced_accuracy_threshold(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Threshold t for which calling ``score > t`` rare has the greatest balanced accuracy.

    Maximises ``(TPR(t) + 1 - FPR(t)) / 2``: ``TPR(t)`` is the share, by weight, of the rare rows
    that score above t, ``FPR(t)`` the share of the majority rows that do. The answer is the
    midpoint of two neighbouring distinct scores; among several equally good gaps the widest is
    taken, and among equally wide ones the highest.

    When no threshold does better than calling every row the same (one half; all scores equal, or a
    ranking the wrong way round), the answer is the greatest score: nothing is called rare.

    Parameters
    ----------
    y, scores, sample_weight
        As in `rareclass.metrics.roc_auc`, with the same errors.

    Returns
    -------
    float
        Below every score that it puts above it, also where two scores are neighbouring floats or
        infinite. O(n log n) time, O(n) memory.

    Examples
    --------
    >>> balanced_accuracy_threshold([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    2.5
    """
    return threshold_between(split_scores(y, scores, sample_weight))


def threshold_between(split: ScoredClasses) -> float:
    """Threshold of best balanced accuracy of scores that are split by class already."""
    cells, majority = place_rows(split).cells, split.majority
    gain = cells.rare_from() / cells.n_rare - cells.majority_from() / cells.n_majority
    if gain.max() <= EQUAL:
        return float(max(cells.scores[-1], majority.max()))
    # Lowering t over majority rows only loses, so the best gaps lie right under a rare score.
    best = np.flatnonzero(gain >= gain.max() - EQUAL)
    upper = cells.scores[best]
    # The greatest score below each, of either class.
    ordered = np.sort(majority)
    n_below = np.searchsorted(ordered, upper)
    of_majority = np.where(n_below > 0, ordered[np.maximum(n_below - 1, 0)], -np.inf)
    lower = np.maximum(np.append(-np.inf, cells.scores)[best], of_majority)
    widest = widest_gap(lower, upper, np.arange(len(best)))
    return between(float(lower[widest]), float(upper[widest]))


def nearest_cut(above: FloatArray, wanted: float) -> int:
    """Return the cut with as many rows above as wanted, nearly; of two the one with fewer."""
    return int(np.abs(above - wanted).argmin())


def level_thresholds(
    y: Any,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    levels: Any = None,
    balanced: bool = True,
) -> FloatArray:
    """Thresholds ``t_0 <= t_1 <= ...`` that turn scores into levels with the least error.

    Level k is ``t_{k-1} < score <= t_k``. Minimises ``sum_i v_i |predicted_i - y_i|``, distances
    counted in levels, over all thresholds: exactly. Balanced, ``v_i = w_i / W_{y_i}``: the mean
    absolute error within each level, averaged over levels, so that a level of few rows counts as
    much as the majority. Otherwise ``v_i = w_i``: the mean absolute error, for which rare levels
    are often never worth predicting.

    A threshold is the midpoint of two neighbouring distinct scores; among equally good ones the
    widest gap is taken, and among equally wide ones the highest. Where it is best never to predict
    a level and those below (above) it, the threshold is -inf (inf).

    Parameters
    ----------
    y, scores, sample_weight, levels
        As in `rareclass.metrics.mauc`, with the same errors; scores are finite.
    balanced : bool, default True
        Whether each level counts equally, or each row.

    Returns
    -------
    ndarray of shape (n_levels - 1,)
        Non-decreasing; O(n (log n + n_levels)) time, O(n) memory.

    Notes
    -----
    ``|p - y|`` is the number of boundaries k with p and y on different sides, so the sum falls
    apart into one two-class error for each boundary. The best cut for boundary k + 1 is never
    below the best for k: rows of level k + 1 are all that differs, and they would have it higher.
    So each boundary is solved alone, and the thresholds come out in order.

    References
    ----------
    Baccianella, Esuli, Sebastiani (2009), "Evaluation measures for ordinal regression": the
    macro-averaged absolute error.

    Examples
    --------
    >>> level_thresholds([0, 0, 1, 2, 2], [0.0, 1.0, 2.0, 3.0, 4.0]).tolist()
    [1.5, 2.5]
    """
    # Not at the top: SciPy takes a while to load, and other thresholds do without.
    from rareclass.metrics.levels import read_levels

    order, codes, value, weight = read_levels(y, scores, sample_weight, levels)
    if not len(value):
        raise too_few_rows(
            "no rows to learn thresholds from: y is empty, or every weight is zero.",
            "Give rows of weight above 0.",
        )
    return thresholds_of_codes(codes, value, weight, len(order), balanced)


def thresholds_of_codes(
    codes: np.ndarray,
    scores: FloatArray,
    weight: FloatArray | None,
    n_levels: int,
    balanced: bool = True,
) -> FloatArray:
    """Thresholds of rows whose levels are given by position, all of weight above 0."""
    order = np.argsort(scores, kind="stable")
    codes, scores = codes[order], scores[order]
    cost = np.ones(len(codes)) if weight is None else weight[order]
    if balanced:
        mass = np.bincount(codes, cost, n_levels)
        cost = cost / mass[codes]
    equal = EQUAL * float(cost.sum())
    # Cut j puts the first ends[j] rows below: none, those up to a distinct score, ..., all.
    ends = steps(scores)
    upper, lower = scores[ends[1:-1]], scores[ends[1:-1] - 1]
    error = np.empty(len(scores) + 1)
    thresholds, cut = np.empty(n_levels - 1), 0
    for k in range(n_levels - 1):
        error[0] = 0.0
        np.cumsum(np.where(codes > k, cost, -cost), out=error[1:])
        # Of the cuts of least error, from that of the level before on, the widest within the
        # scores; else by rounding only: the cut before is as good.
        at = error[ends]
        best = np.flatnonzero(at[cut:] <= at.min() + equal) + cut
        inner = best[(best > 0) & (best < len(ends) - 1)]
        if len(best):
            cut = 1 + widest_gap(lower, upper, inner - 1) if len(inner) else int(best[-1])
        if 0 < cut < len(ends) - 1:
            thresholds[k] = between(float(lower[cut - 1]), float(upper[cut - 1]))
        else:
            thresholds[k] = np.inf if cut else -np.inf
    return thresholds
