"""A model on other rows: ``rareclass evaluate`` with known classes, ``monitor`` without them."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy import special

from rareclass.decide.alert_budget import A_PERIOD, AlertsAPeriod, PeriodBudget, covered_periods
from rareclass.decide.calibration import weights_at_prevalence
from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.encoding.typed_table import read_as_trained
from rareclass.errors import counted, no_rows
from rareclass.metrics import Interval, interval
from rareclass.metrics.intervals import (
    difference_interval,
    exact_interval,
    normal_quantile,
    widened,
)
from rareclass.metrics.missed_cases import (
    MissedCaseMeasures,
    check_missed_cases,
    missed_case_measures,
)
from rareclass.model.decisions import Confusion, DecisionRow, RareDecision, decision_row
from rareclass.model.drift import AlertRate, Drift, drift_of, refuse_drift
from rareclass.model.facts import DatedRows, RankingEstimate, ScoredRows
from rareclass.model.model import Model, alert_rate, held_out_rate, labelled_scores, rows_alike
from rareclass.model.threshold import dated_rows, known_time
from rareclass.stored import plain_data
from rareclass.table_block import TableBlock
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.table_file import TablePlace, batch_rows_for, fetch, named_columns, open_table

# Chance that one of so many promises, the most there are, is called broken though all are kept.
ERROR, MOST_PROMISES = 0.05, 4
AtLevel = Callable[[float], Interval]
"""An estimate with its interval at a confidence level."""
_TOPS = (10, 100)
_LEVEL = 0.95
_AMOUNT = ",.3g"
OF_ALERTS = " of the counts of alerts"


def decision_table(rows: ScoredRows, threshold: float) -> list[DecisionRow]:
    """Return the threshold, then the 10, 100 and as many highest rows as are rare; O(n log n)."""
    rare = rows.y == 1
    n_rare = int(rare.sum())
    n_rest = len(rare) - n_rare
    table = [decision_row("threshold", rows, threshold)]
    measured = partial(interval, y=rare, scores=rows.scores, level=_LEVEL, groups=rows.group)
    for k in sorted({k for k in (*_TOPS, n_rare) if k < len(rare)}):
        value, low, high = precision = measured("precision_at_k", k=k)
        recall = measured("recall_at_k", k=k)
        false = Interval(*(min((1.0 - each) * k / n_rest, 1.0) for each in (value, high, low)))
        table.append(DecisionRow(f"highest {k:,}", k, precision, recall, false))
    return table


def class_decisions(model: Model, rows: ScoredRows) -> list[DecisionRow]:
    """Return what comes of each class's own threshold, of classes that have rows."""
    classes = rows.classes
    assert classes is not None
    called = model.called_class(classes.probability)
    return [
        decision_row(name, ScoredRows(classes.which == k, called == k, group=rows.group), 0.5)
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


class PromiseVerdict(StrEnum):
    """Answer of new rows to a promise."""

    KEPT = "kept"
    BROKEN = "broken"
    UNKNOWN = "cannot tell"


class Advice(StrEnum):
    """Action after all verdicts."""

    NOTHING = "No promise is broken: these rows give no reason to train again."
    MORE_ROWS = "No promise is broken, but these rows are too few to tell if the ranking holds."
    THRESHOLD = "Set the threshold again on rows like these: rareclass threshold."
    TRAIN = "Train again with rows like these: the model ranks worse than promised."


@dataclass(frozen=True)
class Promise:
    """Promised and measured value, each with its 95 % interval, and the verdict."""

    name: str
    promised: Interval  # without width where it is a limit
    measured: Interval
    verdict: PromiseVerdict
    digits: str  # _AMOUNT: of a quantity
    is_of_ranking: bool

    @classmethod
    def judged(
        cls, name: str, promised: AtLevel | float, measured: AtLevel, lowest: float = -np.inf,
        highest: float = np.inf, digits: str = ".3f", is_of_ranking: bool = False,
    ) -> Self:  # fmt: skip
        """Judge a promise that is kept where `measured` is from `lowest` to `highest`."""
        limit = promised if isinstance(promised, int | float) else 0.0
        of_level = promised if callable(promised) else lambda level: Interval(limit, limit, limit)
        here, level = measured(_LEVEL), 1.0 - ERROR / MOST_PROMISES
        apart = difference_interval(measured(level), of_level(level), 0.0)
        verdict = PromiseVerdict.UNKNOWN
        if (lowest > -np.inf and apart.high < 0.0) or (highest < np.inf and apart.low > 0.0):
            verdict = PromiseVerdict.BROKEN
        elif lowest <= here.low and here.high <= highest:
            verdict = PromiseVerdict.KEPT
        return cls(name, of_level(_LEVEL), here, verdict, digits, is_of_ranking)

    @property
    def cells(self) -> tuple[str, ...]:
        """The row of the table of promises."""
        is_limit = self.promised.low == self.promised.high
        promised, measured = (
            each.amounts() if self.digits == _AMOUNT else each.text(self.digits)
            for each in (self.promised, self.measured)
        )
        promised = f"{self.promised.value:g}" if is_limit else promised
        return self.name, str(self.verdict), promised, measured


@dataclass(frozen=True)
class Promises:
    """All promises of a model that new rows say something of."""

    rows: tuple[Promise, ...] = ()

    @property
    def broken(self) -> list[Promise]:
        """Promises that these rows show to be broken."""
        return [each for each in self.rows if each.verdict is PromiseVerdict.BROKEN]

    @property
    def advice(self) -> Advice:
        """Train again where the ranking is worse; else set the threshold where anything is."""
        if any(each.is_of_ranking for each in self.broken):
            return Advice.TRAIN
        if self.broken:
            return Advice.THRESHOLD
        of_ranking = [each.verdict for each in self.rows if each.is_of_ranking]
        holds = not self.rows or PromiseVerdict.KEPT in of_ranking
        return Advice.NOTHING if holds else Advice.MORE_ROWS

    def block(self) -> TableBlock:
        """Return the table of what was promised and what was measured."""
        heads = ("Promise", "Verdict", "Promised", "Measured")
        return TableBlock("", heads, tuple(each.cells for each in self.rows))

    def sentence(self) -> str:
        """Say what to do, and how seldom a verdict is wrong."""
        return (
            f"{self.advice} ({counted(len(self.rows), 'test')}; a model that is as promised fails "
            f"one of them in {ERROR:.0%} of files at most.)"
        )

    def as_plain_data(self) -> dict[str, Any]:
        """Return promises and advice as dictionaries and numbers."""
        return {"promises": plain_data(self.rows), "advice": self.advice.name.lower()}


def judge_promises(model: Model, rows: ScoredRows, every: DatedRows) -> Promises:
    """Compare what a model of a rare class promised with labelled rows and the alerts of all.

    Broken: significantly worse, at 5 % over all promises together (Bonferroni). Kept: the 95 %
    interval of these rows lies within the limit, above the lower end of what was promised of the
    ranking, or between half and twice the promised rate of alerts. A rate is promised where the
    threshold has no limit of its own and no share of rare rows is stated. The ranking is measured
    at the share of rare rows that the estimate had. Labelled `rows` may be more than all, where
    some have no time.
    """
    rule = model.facts.rule
    found = [*_of_ranking(model, rows)]
    if rule is not None and rule.wanted is not None:
        if rule.met:
            found += _of_rule(rule, rule.wanted, rows, every)
    elif model.stated_prevalence is None:
        found += _of_alerts(model, every)
    return Promises(tuple(found))


def _of_ranking(model: Model, rows: ScoredRows) -> Iterator[Promise]:
    """Yield the promises of AUC and average precision."""
    training, rare = model.facts.training, rows.y == 1
    estimate = None if training is None else training.held_out
    if estimate is None or not estimate.n_rare:
        return
    share = estimate.n_rare / estimate.n_rows
    weight, there = weights_at_prevalence(rare, None, share), f" at {100.0 * share:.2g}% rare"
    named = (("AUC", "roc_auc", ""), ("average precision", "average_precision", there))
    for name, measure, where in named:
        promised = estimate.measures[name]
        measured = partial(interval, measure, rare, rows.scores, weight, groups=rows.group)
        words, before = f"{name[0].upper()}{name[1:]}{where}", partial(_at_level, promised)
        yield Promise.judged(words, before, measured, promised.low, is_of_ranking=True)


def _at_level(found: Interval, level: float) -> Interval:
    """Return a 95 % interval of a share at another level, on the logit scale."""
    return widened(found, normal_quantile(level) / normal_quantile(_LEVEL))


def _of_alerts(model: Model, every: DatedRows) -> Iterator[Promise]:
    """Yield the promise of as many alerts as on the rows that the threshold was set on."""
    held = held_out_rate(model)
    if held is not None:
        often, now = 1e4 * held.value, _share_of_alerts(every, model.threshold)
        then, after = (partial(_times, 1e4, each) for each in (held.interval, now))
        yield Promise.judged("Alerts in 10,000 rows", then, after, often / 2, 2 * often, _AMOUNT)


def _by_day(alerts: NDArray[Any], size: NDArray[Any], level: float) -> Interval:
    """Student's interval of alerts a row, by days; of Poisson's variance at least."""
    n, rate = len(alerts), float(alerts.sum() / size.sum())
    variance = max(float(np.square(alerts - rate * size).sum()) / (n - 1), float(alerts.mean()))
    reach = float(special.stdtrit(n - 1, 0.5 + level / 2.0) * np.sqrt(variance / n) / size.mean())
    return Interval(rate, max(rate - reach, 0.0), rate + reach)


def _share_of_alerts(every: DatedRows, threshold: float) -> AtLevel:
    """Interval of the share of alerts: of rows or groups and, where times are known, of days."""
    rate, called = every.rate_above(threshold), every.rows.scores > threshold
    day = np.zeros(1) if every.time is None else covered_periods(every.time, "day").place

    def at_level(level: float) -> Interval:
        exact = rate.interval(level)
        if not day.any():
            return exact
        alike = _by_day(np.bincount(day, called), np.bincount(day), level)
        return Interval(exact.value, min(exact.low, alike.low), max(exact.high, alike.high))

    return at_level


def _times(factor: float, share: AtLevel, level: float) -> Interval:
    return Interval(*(factor * each for each in share(level)))


def _of_rule(
    rule: ChosenThreshold, limit: float, rows: ScoredRows, every: DatedRows
) -> Iterator[Promise]:
    """Yield the promises of the threshold's rule."""
    budget, measure = rule.budget, rule.measure
    called = every.rows.scores > rule.threshold
    if budget is not None and every.time is not None:
        held, here = every.cuts(), budget.on(every.time, called)
        alerts = AlertsAPeriod.of(held, every.time[held.rows], budget.period)
        if alerts.periods.has_whole and alerts.periods.n > 1:
            name = f"Alerts {A_PERIOD[budget.period]}, at most"
            mean = partial(alerts.interval, held, held.at(rule.threshold))
            yield Promise.judged(name, limit, mean, highest=limit, digits=_AMOUNT)
        if budget.allowed:
            share, most = partial(exact_interval, here.n_above, here.n_periods), budget.allowed
            yield Promise.judged(f"Share of {budget.period}s over", most, share, highest=most)
    elif rule.batch is not None:
        name = f"Alerts in {rule.batch:,} rows, at most"
        found = partial(_times, rule.batch, _share_of_alerts(every, rule.threshold))
        yield Promise.judged(name, limit, found, highest=limit, digits=_AMOUNT)
    elif measure is not None:
        of_rows = partial(decision_row, "", rows, rule.threshold)
        name, at_most = measure.replace("_", " ").capitalize(), measure == "false_positive_rate"
        words = f"{name}, at {'most' if at_most else 'least'}"
        bounds = (-np.inf, limit) if at_most else (limit, np.inf)
        yield Promise.judged(words, limit, lambda level: vars(of_rows(level))[measure], *bounds)


@dataclass(frozen=True)
class EvaluatedFile:
    """Measures of a model on a file with labels, and its decisions."""

    estimate: RankingEstimate
    confusion: Confusion
    n_unlabelled: int  # rows left out because their target is empty
    drift: Drift
    table: list[DecisionRow]  # of a rare class: at the threshold, and the highest rows
    probabilities: ProbabilityQuality | None  # where the model has them
    budget: PeriodBudget | None = None  # alerts a day here, where the threshold limits them
    by_class: list[DecisionRow] = field(default_factory=list)  # by the thresholds of rare classes
    corrected: MissedCaseMeasures | None = None  # for missed cases, where this is asked for
    promises: Promises = field(default_factory=Promises)
    n_undated: int = 0  # rows that no count of alerts has, as they have no time

    def as_plain_data(self) -> dict[str, Any]:
        """Return the evaluation as dictionaries and numbers."""
        return {
            **self.estimate.as_plain_data(),
            **self.confusion.numbers,
            "n_rows_without_target": self.n_unlabelled,
            "n_rows_without_time": self.n_undated,
            **self.drift.as_plain_data(),
            "decisions": [each.as_plain_data() for each in self.table],
            "probabilities": plain_data(self.probabilities),
            "alert_budget": plain_data(self.budget),
            "class_decisions": [each.as_plain_data() for each in self.by_class],
            "missed_cases": plain_data(self.corrected),
            **self.promises.as_plain_data(),
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
    seen, of_model = content.new_summary(), known_time(content)
    file = open_table(data, text, one_pass=(time or of_model) is None)
    is_asked, column = time is not None, None
    if time is None and of_model in file.columns:
        time = of_model
    if time is not None:
        column = fetch(named_columns(file, [time], "time"), [time])[time]
    every = labelled_scores(content, file, str(data), seen)
    dated = DatedRows(every) if column is None else dated_rows(every, column, is_asked)
    decision, rows = content.decision, every.labelled()
    table: list[DecisionRow] = []
    rate = quality = corrected = budget = None
    promises = Promises()
    if isinstance(decision, RareDecision):
        threshold, rare, rule = content.threshold, rows.y == 1, content.facts.rule
        called = dated.rows.scores > threshold
        dated = dated._replace(alike=rows_alike(content, every))
        held = held_out_rate(content)
        if held is not None:
            found = _share_of_alerts(dated, threshold)(_LEVEL)
            rate = AlertRate(found, held.interval(_LEVEL))
        promises = judge_promises(content, rows, dated)
        if dated.time is not None and rule is not None and rule.budget is not None:
            budget = rule.budget.on(dated.time, called)
        table = decision_table(rows, threshold)
        if missed_cases is not None:
            corrected = missed_case_measures(
                rare, rows.scores, threshold, missed_cases=missed_cases, groups=rows.group
            )
        calibration = content.rare_calibration
        if calibration is not None:
            probability = calibration(rows.scores)
            quality = probability_quality(rare, probability, calibration.prevalence)
    drift = drift_of(seen, rate)
    if strict:
        refuse_drift(drift, str(data))
    return EvaluatedFile(
        decision.estimate(rows),
        decision.confusion(rows),
        len(every.y) - len(rows.y),
        drift,
        table,
        quality,
        budget,
        [] if rows.classes is None else class_decisions(content, rows),
        corrected,
        promises,
        dated.n_undated,
    )


@dataclass(frozen=True)
class MonitoredFile:
    """The columns and scores of new rows beside those of training; no classes are needed."""

    drift: Drift
    n_trained: int | None  # rows of training

    def as_plain_data(self) -> dict[str, Any]:
        """Return the comparison as dictionaries and numbers."""
        return {
            "n_rows": self.drift.seen.n_rows,
            "n_rows_of_training": self.n_trained,
            "is_far": self.drift.is_far,
            "columns_left_out": self.drift.seen.extra_columns,
            **self.drift.as_plain_data(),
        }


def monitor_file(content: Model, data: TablePlace, text: TextSettings = DETECTED) -> MonitoredFile:
    """Compare the rows of a file of any size with those of training, a batch at a time.

    A column of the model that the file lacks is told as absent; there are no scores then. Raises
    `InputError` for cells that cannot be read, and a file with no rows or no column of the model.
    """
    file, seen = open_table(data, text, one_pass=True), content.new_summary()
    there = [each for each in content.encoder.columns if each.name in file.columns]
    rate, n_alerts = None, 0
    if there and len(there) < len(content.encoder.columns):
        names = [each.name for each in there]
        for rows in named_columns(file, names).batches(names, batch_rows_for(len(names))):
            seen.columns.add(read_as_trained(rows, there, seen.n_rows + 1))
            seen.n_rows += rows.height
    else:
        threshold = content.threshold if content.has_rare_class else np.inf
        for batch in content.score_batches(file, (), seen):
            n_alerts += int((batch.scores > threshold).sum())
        if content.has_rare_class:
            rate = alert_rate(content, n_alerts, seen.n_rows)
    if not seen.n_rows:
        raise no_rows(data)
    return MonitoredFile(drift_of(seen, rate), content.facts.n_rows)
