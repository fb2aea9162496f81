"""A model on other rows: ``rareclass evaluate`` with known classes, ``monitor`` without them."""

from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.alert_budget import PeriodBudget, covered_periods
from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import no_rows
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import exact_interval
from rareclass.metrics.missed_cases import (
    MissedCaseMeasures,
    check_missed_cases,
    missed_case_measures,
)
from rareclass.model.columns import ColumnTracker
from rareclass.model.decisions import Confusion, RareDecision
from rareclass.model.drift import Drift, InputSummary, alert_rate, drift_of, refuse_drift
from rareclass.model.facts import RankingEstimate, RareClassScores
from rareclass.model.model import Model
from rareclass.model.threshold import budget_of, budget_time, columns_beside, labelled_scores
from rareclass.model.times import alert_times
from rareclass.stored import plain_data
from rareclass.tables.columns import Column
from rareclass.tables.dialect import DETECTED, TextSettings
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, batch_rows_for, open_table

_TOPS = (10, 100)
_LEVEL = 0.95


@dataclass(frozen=True)
class DecisionRow:
    """Rows called rare in one way, and how often that was right, with 95 % intervals.

    Those of a threshold are exact (Clopper-Pearson). Those of the k highest are Wilson's for the
    recall in ``n_rare`` trials, and the same in units of the others, as k and the classes are given
    (`rareclass.metrics.intervals`).
    """

    name: str
    alerts: int
    precision: Interval  # NaN where no row was called
    recall: Interval
    false_positive_rate: Interval

    def as_plain_data(self) -> dict[str, Any]:
        """Return the row as dictionaries and numbers; no precision is null."""
        plain: dict[str, Any] = plain_data(self)
        for name in ("precision", "recall", "false_positive_rate"):
            if np.isnan(plain[name]["value"]):
                plain[name]["value"] = None
        return plain


def decision_table(
    rare: NDArray[np.bool_], scores: NDArray[np.float64], threshold: float
) -> list[DecisionRow]:
    """Return the threshold, then the 10, the 100 and as many highest rows as are rare, if so many.

    O(n log n).
    """
    n_rare = int(rare.sum())
    n_rest = len(rare) - n_rare
    table = [decision_row("threshold", rare, scores > threshold)]
    for k in sorted({k for k in (*_TOPS, n_rare) if k < len(rare)}):
        value, low, high = precision = interval("precision_at_k", rare, scores, k=k, level=_LEVEL)
        recall = interval("recall_at_k", rare, scores, k=k, level=_LEVEL)
        false = Interval(*(min((1.0 - each) * k / n_rest, 1.0) for each in (value, high, low)))
        table.append(DecisionRow(f"highest {k:,}", k, precision, recall, false))
    return table


def decision_row(name: str, rare: NDArray[np.bool_], called: NDArray[np.bool_]) -> DecisionRow:
    """Return the shares of rows that are called, with exact intervals. O(n)."""
    hits, alerts, n_rare = int((called & rare).sum()), int(called.sum()), int(rare.sum())
    counts = ((hits, alerts), (hits, n_rare), (alerts - hits, len(rare) - n_rare))
    return DecisionRow(name, alerts, *(exact_interval(*each, _LEVEL) for each in counts))


def class_decisions(model: Model, classes: RareClassScores) -> list[DecisionRow]:
    """Return what comes of each class's own threshold, of classes that have rows."""
    called = model.called_class(classes.probability)
    return [
        decision_row(name, classes.which == k, called == k)
        for k, name in enumerate(model.rare_classes)
        if name in model.facts.class_rules and (classes.which == k).any()
    ]


@dataclass(frozen=True)
class ProbabilityQuality:
    """Probabilities of rows beside their labels; smaller losses are better.

    The losses of giving every row the true share say what probabilities are worth.
    """

    mean: float
    share: float  # of rare rows
    log_loss: float  # mean of -ln of the probability of the row's own class
    brier: float  # mean of (probability - label)^2
    log_loss_of_share: float  # of the true share for every row
    brier_of_share: float
    prevalence: float  # share of rare rows that probabilities are of: stated, or of training


def probability_quality(
    rare: NDArray[np.bool_], probability: NDArray[np.float64], prevalence: float
) -> ProbabilityQuality:
    r"""Log loss ``-mean(y ln p + (1 - y) ln(1 - p))`` and Brier score ``mean (p - y)^2``.

    `probability` lies strictly between 0 and 1, and both classes are there. O(n).
    """
    share = float(rare.mean())
    return ProbabilityQuality(
        float(probability.mean()),
        share,
        -float(np.log(np.where(rare, probability, 1.0 - probability)).mean()),
        float(np.square(probability - rare).mean()),
        -float(share * np.log(share) + (1.0 - share) * np.log(1.0 - share)),
        share * (1.0 - share),
        prevalence,
    )


class AlertsADay(NamedTuple):
    """Alerts of the whole days that some rows cover."""

    time: str  # column of times
    n_days: float  # whole days; a part of one where there is no whole one
    mean: float
    least: float
    most: float

    @classmethod
    def of(cls, column: str, time: NDArray[Any], called: NDArray[np.bool_]) -> Self:
        """Count the alerts of each day; part days at both ends are left out."""
        days = covered_periods(time, "day")
        if not days.has_whole:
            n_alerts = float(called.sum())
            return cls(column, days.n, n_alerts / max(days.n, 1e-9), n_alerts, n_alerts)
        whole = days.number >= 0
        counts = np.bincount(days.number[whole & called], minlength=int(days.n))
        return cls(column, days.n, *map(float, (counts.mean(), counts.min(), counts.max())))


@dataclass(frozen=True)
class EvaluatedFile:
    """Measures of a model on a file with labels, and its decisions."""

    estimate: RankingEstimate
    confusion: Confusion
    n_unlabelled: int  # rows left out because their target is empty
    seen: InputSummary
    drift: Drift
    table: list[DecisionRow]  # of a rare class: at the threshold, and the highest rows
    probabilities: ProbabilityQuality | None  # where the model has them
    budget: PeriodBudget | None = None  # alerts a day here, where the threshold limits them
    a_day: AlertsADay | None = None  # where the column of times is known
    by_class: list[DecisionRow] = field(default_factory=list)  # by the thresholds of rare classes
    corrected: MissedCaseMeasures | None = None  # for missed cases, where this is asked for

    def as_plain_data(self) -> dict[str, Any]:
        """Return the evaluation as dictionaries and numbers."""
        return {
            **self.estimate.as_plain_data(),
            **self.confusion.numbers,
            "n_rows_without_target": self.n_unlabelled,
            **self.seen.as_plain_data(),
            **self.drift.as_plain_data(),
            "decisions": [each.as_plain_data() for each in self.table],
            "probabilities": plain_data(self.probabilities),
            "alert_budget": plain_data(self.budget),
            "alerts_a_day": plain_data(self.a_day),
            "class_decisions": [each.as_plain_data() for each in self.by_class],
            "missed_cases": plain_data(self.corrected),
        }


def evaluate_file(
    content: Model,
    data: TablePlace,
    text: TextSettings = DETECTED,
    strict: bool = False,
    time: str | None = None,
    missed_cases: float | None = None,
) -> EvaluatedFile:
    """Compare the scores of a file's rows with their labels.

    `time` is the column of times that alerts a day are of; by default that of the model's alert
    budget or training, where the file has it. With `missed_cases` measures are also corrected for
    this share of rare rows with the label of the majority
    (`rareclass.metrics.missed_case_measures`).

    Raises `InputError` for anything wrong with the file; when it holds one class only; where
    `strict`, for rows unlike those of training (`refuse_drift`); for missed cases of levels.
    """
    if missed_cases is not None:
        check_missed_cases(missed_cases)
        _ = content.rare_class  # refuses a model of levels
    seen, training = InputSummary(), content.facts.training
    of_model = budget_time(content) or (None if training is None else training.time)
    file = open_table(data, text, one_pass=(time or of_model) is None)
    if time is None and isinstance(file, TableFile) and of_model in file.columns:
        time = of_model
    moments = None
    if time is not None:
        column = columns_beside(file, [time], "time")[time]
        moments = alert_times(column, np.arange(1, len(column) + 1))
    every = labelled_scores(content, file, str(data), seen)
    decision, rows = content.decision, every.labelled()
    table: list[DecisionRow] = []
    rate = quality = corrected = None
    if isinstance(decision, RareDecision):
        threshold, rare = content.threshold, rows.y == 1
        n_alerts = int((every.scores > threshold).sum())
        rate = alert_rate(content.held_out, threshold, n_alerts, len(every.scores))
        table = decision_table(rare, rows.scores, threshold)
        if missed_cases is not None:
            corrected = missed_case_measures(
                rare, rows.scores, threshold, missed_cases=missed_cases
            )
        calibration = content.rare_calibration
        if calibration is not None:
            probability = calibration(rows.scores)
            quality = probability_quality(rare, probability, calibration.prevalence)
    drift = drift_of(seen, rate)
    if strict:
        refuse_drift(drift, str(data))
    budget = a_day = None
    if time is not None and moments is not None and isinstance(decision, RareDecision):
        budget = budget_of(content, moments, every.scores)
        a_day = AlertsADay.of(time, moments, decision.decide(every.scores) == 1)
    return EvaluatedFile(
        decision.estimate(rows),
        decision.confusion(rows),
        len(every.y) - len(rows.y),
        seen,
        drift,
        table,
        quality,
        budget,
        a_day,
        [] if rows.classes is None else class_decisions(content, rows.classes),
        corrected,
    )


@dataclass(frozen=True)
class MonitoredFile:
    """The columns and scores of new rows beside those of training; no classes are needed."""

    seen: InputSummary
    drift: Drift
    n_trained: int | None  # rows of training

    def as_plain_data(self) -> dict[str, Any]:
        """Return the comparison as dictionaries and numbers."""
        return {
            "n_rows": self.seen.n_rows,
            "n_rows_of_training": self.n_trained,
            "is_far": self.drift.is_far,
            "columns_left_out": self.seen.extra_columns,
            **self.seen.as_plain_data(),
            **self.drift.as_plain_data(),
        }


def monitor_file(content: Model, data: TablePlace, text: TextSettings = DETECTED) -> MonitoredFile:
    """Compare the rows of a file of any size with those of training, a batch at a time.

    A column of the model that the file lacks is told as absent; there are no scores then. Raises
    `InputError` for cells that cannot be read, and a file with no rows or no column of the model.
    """
    file, seen = open_table(data, text, one_pass=True), InputSummary()
    there: list[Column] = []
    if not isinstance(file, SvmlightFile):
        there = [each for each in content.encoder.columns if each.name in file.columns]
    rate, n_alerts = None, 0
    if not isinstance(file, SvmlightFile) and there and len(there) < len(content.encoder.columns):
        seen.columns, names = ColumnTracker(content.trained), [each.name for each in there]
        for rows in file.batches(names, batch_rows_for(len(names))):
            seen.columns.add(read_as_trained(rows, there, seen.n_rows + 1))
            seen.n_rows += rows.height
    else:
        threshold = content.threshold if content.has_rare_class else np.inf
        for batch in content.score_batches(file, (), seen):
            n_alerts += int((batch.scores > threshold).sum())
        if content.has_rare_class:
            rate = alert_rate(content.held_out, threshold, n_alerts, seen.n_rows)
    if not seen.n_rows:
        raise no_rows(data)
    return MonitoredFile(seen, drift_of(seen, rate), content.facts.n_rows)
