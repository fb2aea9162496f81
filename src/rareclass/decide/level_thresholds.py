"""The scores at which one level ends and the next begins."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.threshold import between
from rareclass.metrics.scored_classes import FloatArray, check_scores

# Sums of fractional weights that are equal on paper differ by rounding.
_EQUAL = 1e-12


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
    y : array-like of shape (n,)
        Ordered levels, as in `rareclass.metrics.mauc`.
    scores : array-like of shape (n,)
        Finite; higher means a higher level.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.
    levels : sequence, optional
        The levels in increasing order. Text needs it.
    balanced : bool, default True
        Whether each level counts equally, or each row.

    Returns
    -------
    ndarray of shape (n_levels - 1,)
        Non-decreasing; O(n (log n + n_levels)) time, O(n) memory.

    Raises
    ------
    ValueError
        On empty or mismatched columns, a label that is not among `levels`, NaN scores or negative
        weights.

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
    # Not at the top: scikit-learn takes seconds to load, and other thresholds do without.
    from rareclass.labels.levels import encode

    value, weight = check_scores(scores, sample_weight)
    order, codes = encode(y, levels)
    if len(codes) != len(value):
        raise ValueError(f"y has {len(codes)} rows, but scores has {len(value)}.")
    if weight is not None:
        kept = weight > 0.0
        value, codes, weight = value[kept], codes[kept], weight[kept]
    if not len(value):
        raise ValueError("no rows to learn thresholds from: y is empty, or every weight is zero.")
    return thresholds_of_codes(codes, value, weight, len(order), balanced)


def thresholds_of_codes(
    codes: np.ndarray,
    scores: FloatArray,
    weight: FloatArray | None,
    n_levels: int,
    balanced: bool = True,
) -> FloatArray:
    """`level_thresholds` of rows whose levels are given by position, all of weight above 0."""
    order = np.argsort(scores, kind="stable")
    codes, scores = codes[order], scores[order]
    cost = np.ones(len(codes)) if weight is None else weight[order]
    if balanced:
        mass = np.bincount(codes, cost, n_levels)
        cost = cost / mass[codes]
    equal = _EQUAL * float(cost.sum())
    # Cut j puts the first ends[j] rows below: none, those up to a distinct score, ..., all.
    ends = np.concatenate([[0], np.flatnonzero(np.diff(scores)) + 1, [len(scores)]])
    upper, lower = scores[ends[1:-1]], scores[ends[1:-1] - 1]
    # A cut within the scores comes before one that never predicts a level.
    width = np.concatenate([[-1.0], upper - lower, [-1.0]])
    error = np.empty(len(scores) + 1)
    thresholds, cut = np.empty(n_levels - 1), 0
    for k in range(n_levels - 1):
        error[0] = 0.0
        np.cumsum(np.where(codes > k, cost, -cost), out=error[1:])
        cut = _best_cut(error[ends], width, cut, equal)
        if 0 < cut < len(ends) - 1:
            thresholds[k] = between(float(lower[cut - 1]), float(upper[cut - 1]))
        else:
            thresholds[k] = np.inf if cut else -np.inf
    return thresholds


def _best_cut(error: FloatArray, width: FloatArray, at_least: int, equal: float) -> int:
    """The widest of the cuts of least error from `at_least` on; the last of equally wide ones."""
    best = np.flatnonzero(error[at_least:] <= error.min() + equal) + at_least
    if not len(best):  # by rounding only: `at_least` is as good
        return at_least
    return int(best[np.flatnonzero(width[best] == width[best].max())[-1]])
