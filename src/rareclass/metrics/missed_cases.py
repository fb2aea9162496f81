r"""Precision where some majority rows are really rare: cases that nobody recorded.

Cases are missed at random: at every threshold the recorded cases above it stand for r times as many
missed ones, r the missed cases per recorded one. Missed cases count as false alerts in the recorded
precision. Recall and the ranks of recorded cases are right as they are.
"""

from typing import Any

import numpy as np

from rareclass.errors import ErrorKind, InputError
from rareclass.metrics.areas import average_precision


def missed_per_case(share: float) -> float:
    """Return the missed cases per recorded one, where a share of all cases was missed.

    Raises `InputError` for a share that is not above 0 and below 1.

    >>> missed_per_case(0.2)
    0.25
    """
    if not 0.0 < share < 1.0:
        raise InputError(
            f"{share:g} is not a share of the cases that may be missed.",
            "Give a number above 0 and below 1, such as 0.2.",
            ErrorKind.SETTING,
            value=share,
        )
    return share / (1.0 - share)


def precision_with_missed(precision: Any, missed_per_case: float) -> Any:
    """Return the precision that counts missed cases as cases: at most 1.

    >>> float(precision_with_missed(0.4, 0.25))
    0.5
    """
    return np.minimum(np.asarray(precision) * (1.0 + missed_per_case), 1.0)[()]


def average_precision_with_missed(
    y: Any, scores: Any, missed_per_case: float, sample_weight: Any = None
) -> float:
    r"""Return the average precision that counts missed cases as cases.

    .. math:: \frac{1}{W} \sum_{i \in R} w_i
        \min\Bigl(1, (1 + r) \frac{P(s_i)}{P(s_i) + M(s_i)}\Bigr)

    with R the recorded cases of weight W, and P and M the weights of recorded cases and of other
    rows that score at least as high. With r = 0 it is `average_precision`. O(n log n).

    Parameters
    ----------
    y : array-like of shape (n,)
        True for recorded cases.
    scores : array-like of shape (n,)
    missed_per_case : float
        r, such as `missed_per_case` of a share.
    sample_weight : array-like of shape (n,) or None

    Examples
    --------
    >>> y, scores = [True, False, True, False], [4.0, 3.0, 2.0, 1.0]
    >>> round(average_precision_with_missed(y, scores, 0.25), 3)
    0.917
    """
    if missed_per_case == 0.0:
        return float(average_precision(y, scores, sample_weight))
    is_case, scores = np.asarray(y, dtype=bool), np.asarray(scores, dtype=np.float64)
    weight = np.ones(len(scores)) if sample_weight is None else np.asarray(sample_weight, float)
    order = np.argsort(-scores, kind="stable")
    last = np.searchsorted(-scores[order], -scores, side="right") - 1  # of equal scores
    cases = np.cumsum((weight * is_case)[order])[last]
    rows = np.cumsum(weight[order])[last]
    precision = precision_with_missed(cases / np.maximum(rows, 1e-300), missed_per_case)
    return float(np.average(precision[is_case], weights=weight[is_case]))
