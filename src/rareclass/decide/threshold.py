"""Thresholds without a rule: of best balanced accuracy, between ordered levels, of several classes.

Several rare classes have one each, for the probability of the class: what a row is called.

1. the classes have weights w_k, which rise with their training rows (`class_weights`)
2. a row's multiple of class k is P(k | x) / w_k; rows rank by the greatest (`greatest_multiples`)
3. the thresholds are t_k = c w_k: c sets how many rows are called any class (`shared_thresholds`)
4. a row is called the class whose P(k | x) is the greatest multiple of t_k, where that is above 1
   (`called_class`)
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.errors import ErrorKind
from rareclass.metrics.held_out_cuts import between, steps, threshold_of_cut, widest_gap
from rareclass.metrics.intervals import EQUAL
from rareclass.metrics.scored_classes import FloatArray, ScoredClasses, place_rows, split_scores

# Chosen on six tables of benchmarks.several_classes, from 0, 1/4, 1/2, 3/4 and 1.
_POWER = 0.75
_LEAST = np.finfo(np.float64).tiny


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
        raise ErrorKind.TOO_FEW_ROWS.error(
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


def class_weights(n_rows: Sequence[float] | NDArray[Any]) -> FloatArray:
    """Weights of classes: their training rows to the power 3/4.

    In proportion to the rows the expected mean recall of the classes would be the greatest, were
    probabilities exact; those of classes of few rows are not.

    >>> class_weights([16, 1]).tolist()
    [8.0, 1.0]
    """
    return np.asarray(n_rows, np.float64) ** _POWER


def greatest_multiples(probability: FloatArray, weights: FloatArray) -> FloatArray:
    """Greatest multiple that the probability of a class is of its weight, for every row.

    `probability` has shape (n_rows, n_classes). A class of infinite weight is never the one.
    """
    return np.asarray((probability / weights).max(axis=1))


def shared_thresholds(
    probability: FloatArray,
    weights: FloatArray,
    n_called: float,
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Thresholds in the ratio of `weights` by which as many rows are called a class as wanted.

    As nearly as ties allow; of two cuts that are as near, the one of fewer rows. Rows count by
    `sample_weight`. A class of infinite weight has an infinite threshold.
    O(n_rows (n_classes + log n_rows)).

    >>> P = np.array([[0.9, 0.0], [0.4, 0.1], [0.0, 0.1]])
    >>> shared_thresholds(P, np.array([8.0, 1.0]), 1).round(3).tolist()
    [0.85, 0.106]
    """
    multiple = greatest_multiples(probability, weights)
    scale = threshold_for(multiple, n_called, sample_weight, 0.0)
    thresholds = np.full(len(weights), np.inf)
    return np.multiply(scale, weights, out=thresholds, where=np.isfinite(weights))


def weights_among(n_rows: Sequence[float] | NDArray[Any], which: NDArray[Any]) -> FloatArray:
    """Weights of classes to choose thresholds by rows of them: infinite where no row is of a class.

    `which` has the place of the class of each row, -1 for the majority.
    """
    is_there = np.isin(np.arange(len(n_rows)), which)
    return np.where(is_there, class_weights(n_rows), np.inf)


def thresholds_in_step(
    probability: FloatArray,
    which: NDArray[Any],
    n_rows: Sequence[float] | NDArray[Any],
    is_above: NDArray[np.bool_],
    sample_weight: FloatArray | None = None,
) -> FloatArray:
    """Thresholds of classes that call as many rows as are above the threshold of any rare class.

    `n_rows` are the training rows of each class; see `weights_among` and `shared_thresholds`.
    """
    n_called = float(is_above.sum() if sample_weight is None else sample_weight[is_above].sum())
    return shared_thresholds(probability, weights_among(n_rows, which), n_called, sample_weight)


def threshold_for(
    value: FloatArray,
    n_above: float,
    sample_weight: FloatArray | None = None,
    lowest: float = -np.inf,
) -> float:
    """Threshold that as many rows are above as wanted, as nearly as ties allow.

    Of two cuts that are as near, the one of fewer rows. `lowest` is the threshold that all rows are
    above. O(n log n).

    >>> threshold_for(np.array([3.0, 1.0, 2.0, 1.0]), 2.0)
    1.5
    """
    order = np.argsort(-value, kind="stable")
    value = value[order]
    copies = np.ones(len(value)) if sample_weight is None else sample_weight[order]
    ends = steps(value)
    above = np.concatenate([[0.0], np.cumsum(copies)])[ends]
    return threshold_of_cut(value, int(ends[nearest_cut(above, n_above)]), lowest)


def decades_above(probability: FloatArray, thresholds: FloatArray) -> FloatArray:
    """Common logarithm of the multiple that each probability is of the threshold of its class.

    Above 0 where the probability is above the threshold, and below 0 where it is not: a row at the
    threshold is not of the class, however the logarithm is rounded.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        multiples = np.fmax(probability / thresholds, _LEAST)  # a class that is never called has 0
    decades = np.log10(multiples)
    is_above = probability > thresholds
    return np.where(is_above, np.maximum(decades, _LEAST), np.minimum(decades, -_LEAST))


def called_class(probability: FloatArray, thresholds: FloatArray) -> NDArray[np.intp]:
    """Class that each row is called, -1 for none.

    A row is called a class where its probability is above the threshold of the class; of several
    such classes the one whose probability is the greatest multiple of its threshold.

    >>> called_class(np.array([[0.3, 0.2], [0.1, 0.1]]), np.array([0.25, 0.1])).tolist()
    [1, -1]
    """
    decades = decades_above(probability, thresholds)
    return np.where((decades > 0.0).any(axis=1), decades.argmax(axis=1), -1)
