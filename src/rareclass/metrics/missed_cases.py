r"""Measures where some majority rows are really rare: cases that nobody recorded.

Cases are missed at random: at every threshold the recorded cases above it stand for r times as many
missed ones, r the missed cases per recorded one. Missed cases count as false alerts in the recorded
precision. Recall and the ranks of recorded cases are right as they are.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import Interval, exact_interval
from rareclass.metrics.named_measures import interval
from rareclass.metrics.scored_classes import score_column
from rareclass.parameters import check_number
from rareclass.stored import PlainData

_LEVEL = 0.95


@dataclass(frozen=True)
class MissedCaseMeasures(PlainData):
    """Measures that count a share of missed cases as cases, with 95 percent intervals.

    Attributes
    ----------
    share : float
        Share of all cases that was missed, as given.
    precision : Interval or None
        Of the rows above the threshold; None where there is none.
    recall : Interval
        As by the recorded labels: cases missed at random rank like recorded ones.
    average_precision : Interval
    n_rare : float
        Recorded and missed cases.
    """

    share: float
    precision: Interval | None
    recall: Interval
    average_precision: Interval
    n_rare: float


def check_missed_cases(asked: Any) -> None:
    """Raise `InputError` unless the parameter is a share between 0 and 1."""
    remedy = "It is a share of the rare rows, such as 0.2."
    check_number("missed_cases", asked, "above 0 and below 1", high=1.0, remedy=remedy)


def missed_case_measures(
    y: Any, scores: Any, threshold: float, *, missed_cases: float, groups: Any = None
) -> MissedCaseMeasures:
    r"""Correct precision and average precision for cases that carry the label of the majority.

    With r missed cases per recorded one the precision is :math:`(1 + r)` times that of the recorded
    labels, at most 1; `average_precision_with_missed` does so at the score of each case. So are the
    bounds of the interval.

    Parameters
    ----------
    y : array-like of shape (n,)
        True for recorded cases.
    scores : array-like of shape (n,)
        By a model that did not learn from these rows.
    threshold : float
        Rows that score more are alerts.
    missed_cases : float
        Share of all cases that was missed, such as 0.2.
    groups : array-like of shape (n,), optional
        Rows of equal group count together in the intervals.

    Raises
    ------
    InputError
        Where `missed_cases` is no share.
    ValueError
        On columns of different lengths, and on one class.

    Examples
    --------
    >>> y, scores = [True, False, True, False, False], [4.0, 3.0, 2.0, 1.0, 0.0]
    >>> found = missed_case_measures(y, scores, 2.5, missed_cases=0.2)
    >>> found.precision.value, found.recall.value, found.n_rare
    (0.625, 0.5, 2.5)
    """
    check_missed_cases(missed_cases)
    is_case = np.asarray(y, dtype=bool)
    scores = score_column(scores, "scores", len(is_case), "y")
    recorded = interval("average_precision", is_case, scores, level=_LEVEL, groups=groups)
    ratio = missed_cases / (1.0 - missed_cases)
    held = HeldOutCuts.read(is_case, scores, groups=groups, to_count=True)
    of_called, of_cases, _ = held.tests_at(threshold)
    precision = precision_with_missed(exact_interval(*of_called, _LEVEL), ratio)
    area = average_precision_with_missed(is_case, scores, ratio) / recorded.value
    of_alerts = Interval(*map(float, precision)) if of_called[1] else None
    recall, n_rare = exact_interval(*of_cases, _LEVEL), held.n_rare * (1.0 + ratio)
    corrected = Interval(*(min(each * area, 1.0) for each in recorded))
    return MissedCaseMeasures(float(missed_cases), of_alerts, recall, corrected, n_rare)


def precision_with_missed(precision: Any, missed_per_case: Any) -> Any:
    """Return the precision that counts missed cases as cases: at most 1.

    >>> float(precision_with_missed(0.4, 0.25))
    0.5
    """
    return np.minimum(np.asarray(precision) * (1.0 + missed_per_case), 1.0)[()]


def average_precision_with_missed(y: Any, scores: Any, missed_per_case: float) -> float:
    r"""Return the average precision that counts missed cases as cases.

    .. math:: \frac{1}{|R|} \sum_{i \in R}
        \min\Bigl(1, (1 + r) \frac{P(s_i)}{P(s_i) + M(s_i)}\Bigr)

    with R the recorded cases, and P and M the numbers of recorded cases and of other rows that
    score at least as high. With r = 0 it is the average precision. O(n log n).

    Parameters
    ----------
    y : array-like of shape (n,)
        True for recorded cases.
    scores : array-like of shape (n,)
    missed_per_case : float
        r, s / (1 - s) where a share s of all cases was missed.

    Examples
    --------
    >>> y, scores = [True, False, True, False], [4.0, 3.0, 2.0, 1.0]
    >>> round(average_precision_with_missed(y, scores, 0.25), 3)
    0.917
    """
    is_case, scores = np.asarray(y, dtype=bool), np.asarray(scores, dtype=np.float64)
    order = np.argsort(-scores, kind="stable")
    n_rows = np.searchsorted(-scores[order], -scores[is_case], side="right")  # with equal scores
    precision = np.cumsum(is_case[order])[n_rows - 1] / n_rows
    return float(precision_with_missed(precision, missed_per_case).mean())
