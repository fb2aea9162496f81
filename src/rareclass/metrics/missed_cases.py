r"""Measures where some majority rows are really rare: cases that nobody recorded.

Cases are missed at random: at every threshold the recorded cases above it stand for r times as many
missed ones, r the missed cases per recorded one. Missed cases count as false alerts in the recorded
precision. Recall and the ranks of recorded cases are right as they are.
"""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from rareclass.labels.wrong_labels import (
    LEVEL,
    WrongLabels,
    check_missed_cases,
    count_missed_cases,
)
from rareclass.metrics.areas import average_precision, average_precision_interval
from rareclass.metrics.interval import Interval, exact_interval
from rareclass.metrics.scored_classes import score_column


@dataclass(frozen=True)
class MissedCaseMeasures:
    """Measures that count missed cases as cases, with 95 percent intervals.

    Attributes
    ----------
    missed : WrongLabels
        Cases with the label of the majority; a given share has no interval.
    precision : Interval or None
        Of the rows above the threshold; None where there is none.
    recall : Interval
        As by the recorded labels: cases missed at random rank like recorded ones.
    average_precision : Interval
    n_rare : Interval
        Recorded and missed cases.
    """

    missed: WrongLabels
    precision: Interval | None
    recall: Interval
    average_precision: Interval
    n_rare: Interval

    def as_plain_data(self) -> dict[str, Any]:
        """Return the measures as dictionaries and numbers."""
        plain = {k: v._asdict() if isinstance(v, Interval) else v for k, v in vars(self).items()}
        return plain | {"missed": asdict(self.missed)}


def missed_case_measures(
    y: Any, scores: Any, threshold: float, *, missed_cases: str | float = "auto"
) -> MissedCaseMeasures:
    r"""Correct precision and average precision for cases that carry the label of the majority.

    With r missed cases per recorded one the precision is :math:`(1 + r)` times that of the recorded
    labels, at most 1; `average_precision_with_missed` does so at the score of each case. The bounds
    of both intervals, of the recorded measure and of r, are multiplied, which is cautious.

    Parameters
    ----------
    y : array-like of shape (n,)
        True for recorded cases.
    scores : array-like of shape (n,)
        By a model that did not learn from these rows.
    threshold : float
        Rows that score more are alerts.
    missed_cases : "auto" or float, default="auto"
        Share of all cases that was missed, such as 0.2; "auto" estimates it from the scores
        (`rareclass.labels.wrong_labels`).

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
    >>> found.precision.value, found.recall.value, found.n_rare.value
    (0.625, 0.5, 2.5)
    """
    check_missed_cases(missed_cases)
    is_case = np.asarray(y, dtype=bool)
    scores = score_column(scores, "scores", len(is_case), "y")
    recorded = average_precision_interval(is_case, scores, level=LEVEL)
    missed = count_missed_cases(missed_cases, is_case, scores)
    numbers = np.array([missed.number, missed.low, missed.high])
    ratios, called = numbers / missed.n_labelled, scores > threshold
    hits, alerts = int((called & is_case).sum()), int(called.sum())
    precision = exact_interval(hits, alerts, LEVEL)
    areas = [average_precision_with_missed(is_case, scores, ratio) for ratio in ratios]
    return MissedCaseMeasures(
        missed,
        Interval(*map(float, precision_with_missed(precision, ratios))) if alerts else None,
        exact_interval(hits, int(is_case.sum()), LEVEL),
        Interval(*(min(a * b / recorded.value, 1.0) for a, b in zip(recorded, areas, strict=True))),
        Interval(*map(float, numbers + missed.n_labelled)),
    )


def precision_with_missed(precision: Any, missed_per_case: Any) -> Any:
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
        r, s / (1 - s) where a share s of all cases was missed.
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
