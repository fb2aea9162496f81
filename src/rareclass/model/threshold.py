"""Thresholds of a model: a rule, the columns of times and costs that it needs, and its rows."""

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.alert_budget import AtMostAlerts, AtMostAlertsAPeriod
from rareclass.decide.chosen_threshold import ChosenThreshold, chosen_by_hand, precision_from
from rareclass.decide.constraints import LeastCost
from rareclass.decide.threshold import (
    greatest_multiples,
    threshold_for,
    thresholds_in_step,
    weights_among,
)
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.errors import ErrorKind, fit_of_a_rare_class, setting
from rareclass.folds.dealing import are_days, check_days
from rareclass.labels.spelling import label_value
from rareclass.metrics.checked import CheckedSample, checked_measures, weights_at
from rareclass.metrics.intervals import Interval
from rareclass.model.decisions import refuse_levels
from rareclass.model.facts import DatedRows, ScoredRows
from rareclass.model.model import Model, labelled_scores
from rareclass.model.targets import RareClassFacts
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.cells import are_empty, is_empty, is_text_type, shown
from rareclass.tables.reading import parse_numbers, times_of
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, fetch, named_columns, open_table
from rareclass.tables.text_columns import CellProfile, reading_of_text

# Name that stands for every rare class.
EVERY_CLASS = "all"
# Choices of a threshold, each by the weights at the one before.
_CHOICES = 20
# Measures that the checked rows say nothing of.
_UNKNOWN = Interval(float("nan"), 0.0, 1.0)


class RuleValues(NamedTuple):
    """Values of rows that a rule asks for besides their scores."""

    costs: dict[str, Any] | None = None  # by column
    time: str | None = None  # the column of times, and its values
    moments: NDArray[Any] | None = None


NO_VALUES = RuleValues()


@dataclass(frozen=True)
class DecisionRule:
    """A `ThresholdRule` whose costs are names of columns."""

    rule: ThresholdRule

    @property
    def columns(self) -> list[str]:
        """Columns with a cost for every row."""
        constraint = self.rule.constraint
        if not isinstance(constraint, LeastCost):
            return []
        values = (constraint.fp, constraint.fn, constraint.review)
        return list(dict.fromkeys(value for value in values if isinstance(value, str)))

    @property
    def needs_time(self) -> bool:
        """Say whether it speaks of hours, days or weeks."""
        return isinstance(self.rule.constraint, AtMostAlertsAPeriod)

    def check_time(self, time: str | None) -> None:
        """Raise `InputError` where it speaks of them and no column of times is known."""
        limit = self.rule.constraint
        if time is None and isinstance(limit, AtMostAlertsAPeriod):
            raise ErrorKind.COMBINATION.error(
                f"{setting('alerts', f'{limit.number}/{limit.period}')} needs to know the time of "
                "each row.",
                f"Name the column with {setting('time')}, or give alerts for so many rows, as in "
                "50/10000.",
            )

    @property
    def reads_time(self) -> bool:
        """Say whether it looks at times that are known: alerts of a day come together."""
        return self.needs_time or isinstance(self.rule.constraint, AtMostAlerts)

    def columns_of(self, file: TableFile | SvmlightFile, time: str | None) -> pl.DataFrame | None:
        """Read the columns that the rule needs; None where it needs none."""
        names = self.columns if time is None or not self.reads_time else [*self.columns, time]
        return fetch(named_columns(file, names), names) if names else None

    def values(
        self, columns: pl.DataFrame, numbers: NDArray[np.int64], time: str | None
    ) -> RuleValues:
        """Read the costs, and the times where they are needed, of rows of a file.

        `numbers` are those of the rows in the file, from 1 on. Raises `InputError` at a cell that
        is no cost or no time.
        """
        named = {name: setting("costs", name) for name in self.columns}
        costs = {name: costs_of(columns[name], numbers, named[name]) for name in named}
        if time is None or not self.reads_time:
            return RuleValues(costs)
        moments = times_of(columns[time], numbers, setting("time"))
        if self.needs_time:
            check_days(moments, setting("time", time), time)
        return RuleValues(costs, time, moments)

    def choose(self, scored: ScoredRows, values: RuleValues = NO_VALUES) -> ChosenThreshold:
        """Choose the threshold; raises `InputError` where these rows cannot judge the rule."""
        chosen = self.rule.choose(
            scored.y == 1, scored.scores, scored.weight,
            costs=values.costs, time=values.moments, groups=scored.group,
        )  # fmt: skip
        if chosen.budget is None:
            return chosen
        return replace(chosen, budget=chosen.budget._replace(time=values.time))


def _chosen(
    wanted: DecisionRule | float, rows: ScoredRows, values: RuleValues, prevalence: float | None
) -> ChosenThreshold:
    """Return the threshold of a rule, or the one that was named, with measures on these rows."""
    if isinstance(wanted, DecisionRule):
        return wanted.choose(rows, values)
    return chosen_by_hand(
        wanted, rows.y == 1, rows.scores, rows.weight, prevalence, groups=rows.group
    )


class CheckedRows(NamedTuple):
    """Rows of which only some have a known class."""

    known: ScoredRows  # these, with the number of rows that each stands for
    scores: NDArray[np.float64]  # of all rows
    sample: CheckedSample

    def choose(
        self, wanted: DecisionRule | float, values: RuleValues, prevalence: float | None
    ) -> ChosenThreshold:
        """Judge a threshold, or choose one by the weights that estimates at this threshold have.

        They depend on it: each choice is by the weights at the one before, until two are the same.
        Where choices alternate, the one of the last two whose estimate meets the rule is taken.
        """
        known = self.known
        tried = [_chosen(wanted, known, values, prevalence)]
        while len(tried) < _CHOICES:
            weight = weights_at(self.scores, self.sample, tried[-1].threshold)
            known = known._replace(weight=weight[known.places])
            tried.append(_chosen(wanted, known, values, prevalence))
            if tried[-1].threshold == tried[-2].threshold:
                break
        judged = [self.judged(wanted, each, prevalence) for each in tried[-2:]]
        return next((each for each in reversed(judged) if each.met), judged[-1])

    def judged(
        self, wanted: DecisionRule | float, chosen: ChosenThreshold, prevalence: float | None
    ) -> ChosenThreshold:
        """Return the threshold with the measures that ``rareclass evaluate`` estimates for it.

        Alerts are counted, as every score is known; a rule that is about alerts alone is therefore
        kept on all rows. A rule counts as met only where the estimate meets it as well.
        """
        rule = wanted.rule if isinstance(wanted, DecisionRule) else None
        stated = prevalence if rule is None else rule.prevalence
        if rule and isinstance(rule.constraint, AtMostAlerts) and stated is None:
            assert self.known.places is not None
            rare = np.zeros(len(self.scores), bool)
            rare[self.known.places] = self.known.y == 1
            chosen = rule.choose(rare, self.scores)
        measures = self.scores, self.sample, chosen.threshold
        found = checked_measures(*measures, level=chosen.level)
        recall, fpr = (each or _UNKNOWN for each in (found.recall, found.false_positive_rate))
        precision = found.precision or _UNKNOWN
        if stated is not None:
            each = checked_measures(*measures, level=(1.0 + chosen.level) / 2.0)
            of_classes = (each.recall or _UNKNOWN, each.false_positive_rate or _UNKNOWN)
            precision = precision_from(*of_classes, stated)
        judged = replace(
            chosen,
            precision=precision,
            recall=recall,
            false_positive_rate=fpr,
            prevalence=stated or (found.prevalence or (chosen.prevalence,))[0],
            n_rare=(found.n_rare or (chosen.n_rare,))[0],
            alerts=float(found.n_above),
            rows=float(found.n_rows),
        )
        limited = vars(judged).get(chosen.measure or "")
        if not isinstance(limited, Interval) or not chosen.met:
            return judged
        excess = limited.value - (chosen.wanted or 0.0)
        is_off = excess > 0.0 if chosen.measure == "false_positive_rate" else excess < 0.0
        return judged.failing(limited.value) if is_off else judged


def with_threshold(
    model: Model,
    wanted: DecisionRule | float,
    data: TablePlace | None = None,
    time: str | None = None,
    text: TextSettings = DETECTED,
    prevalence: float | None = None,
    rare_class: str | None = None,
    checked: CheckedRows | None = None,
) -> tuple[Model, ChosenThreshold]:
    """Return the model with the threshold that a rule chooses, or that was named.

    Rows say what is known of it: those of a file with the target, or those that were held out of
    the training, as the model file has them. A `prevalence`, the share of rare rows where the model
    will be used, is that of a named threshold's precision and of the new model's probabilities; for
    rows held out of the training it is by default the one that the model's probabilities are of.
    `rare_class` names one of several: the threshold is of its probability, against all other rows;
    or "all": each has a threshold of its own, and the rule is for rows that are called any class.
    Without it the classes keep in step (`in_step`): as many rows are called a class as score above
    the new threshold.
    `time` is the column of times, where the rule speaks of days; by default that of the model's
    alert budget or training. `checked` are the rows of the file where only some have a known class.

    Raises `InputError` for a model of levels, where there are no such rows, where the rule cannot
    be judged on them, and where the model has no such class.
    """
    rare_class = _named_class(model, rare_class, prevalence)
    refuse_levels(model.decision, "A rule", fit_of_a_rare_class())
    rule = wanted if isinstance(wanted, DecisionRule) else None
    values = NO_VALUES
    if data is None:
        own = held_out_of(model, rule)
        is_any = rare_class is None
        if is_any and rule is not None and rule.rule.prevalence is None:  # the model knows it
            at_stated = replace(rule.rule, prevalence=model.stated_prevalence)
            wanted = DecisionRule(at_stated)
        prevalence = prevalence or (model.stated_prevalence if is_any else None)
    else:
        file, columns = open_table(data, text), None
        if rule is not None:
            time = _time_of_rows(model, rule, file, time)
            columns = rule.columns_of(file, time)
        own = (
            labelled_scores(model, file, str(data), model.new_summary()).labelled()
            if checked is None
            else checked.known
        )
        if rule is not None and columns is not None and own.places is not None:
            values = rule.values(columns[own.places], own.places + 1, time)
    rows = _of_class(model, own, rare_class)
    if checked is not None:
        chosen = checked.choose(wanted, values, prevalence)
    else:
        chosen = _chosen(wanted, rows, values, prevalence)
        if data is None:
            chosen = chosen.approximately("the model learned from these rows as well")
    if rare_class == EVERY_CLASS:
        return _of_every_class(model, chosen, own), chosen
    if rare_class is not None:
        return model.with_class_rules({rare_class: chosen}), chosen
    changed = in_step(model.with_thresholds(chosen.threshold, chosen), chosen.rule, rows)
    if prevalence is not None and changed.rare_calibration is not None:
        changed.set_prevalence(prevalence)
    return changed, chosen


def _of_every_class(model: Model, chosen: ChosenThreshold, rows: ScoredRows) -> Model:
    """Return the model with the multiple of weights that was chosen, and a threshold in step."""
    assert rows.classes is not None
    weights = weights_among(model.rare_class.class_counts, rows.classes.which)
    rules = class_rules(model.rare_class, rows, chosen.threshold * weights, chosen.rule)
    # As many rows score above it as are called any class.
    above = threshold_for(rows.scores, chosen.alerts, rows.weight)
    named = _chosen(above, rows, NO_VALUES, None)
    named = replace(named, rule=f"{chosen.rule}, of rows called a class")
    return model.with_class_rules(rules).with_thresholds(named.threshold, named)


def in_step(model: Model, rule: str, rows: ScoredRows | None = None) -> Model:
    """Return the model with class thresholds that call as many rows as its own threshold does.

    `rows` have classes and scores; by default, and where they lack classes, they are those held
    out. `rule` says how the threshold was set. Without several rare classes, or rows, it is the
    model itself.
    """
    if rows is None or rows.classes is None:
        rows = model.held_out
    if not model.rare_classes or rows is None or rows.classes is None:
        return model
    return model.with_class_rules(rules_in_step(model.rare_class, rows, model.threshold, rule))


def rules_in_step(
    facts: RareClassFacts, rows: ScoredRows, threshold: float, rule: str
) -> dict[str, ChosenThreshold]:
    """Return thresholds of classes by which as many rows are called one as score above `threshold`.

    So that classes of few rows have their part of the alerts, see `class_weights`.
    """
    assert rows.classes is not None
    which, probability = rows.classes
    is_above = rows.scores > threshold
    thresholds = thresholds_in_step(probability, which, facts.class_counts, is_above, rows.weight)
    return class_rules(facts, rows, thresholds, rule)


def class_rules(
    facts: RareClassFacts, rows: ScoredRows, thresholds: NDArray[np.float64], rule: str
) -> dict[str, ChosenThreshold]:
    """Return what thresholds of classes do on these rows; a class that no row is of has none."""
    classes, rules = rows.classes, {}
    assert classes is not None
    for k, name in enumerate(facts.rare_labels):
        is_class, probability = classes.which == k, classes.probability[:, k]
        if is_class.any() and not is_class.all():
            of_class = rows._replace(y=is_class, scores=probability)
            own = _chosen(float(thresholds[k]), of_class, NO_VALUES, None)
            rules[name] = replace(own, rule=f"{rule}, shared by all classes")
    return rules


def _named_class(model: Model, name: str | None, prevalence: float | None) -> str | None:
    """Return the rare class of a model that a user names, as the model writes it; None for none."""
    if name is None:
        return None
    if prevalence is not None:
        raise ErrorKind.COMBINATION.error(
            f"{setting('prevalence')} is of any rare class, and {setting('rare_class')} names one "
            "of them.",
            "Leave one out.",
        )
    if name == EVERY_CLASS and model.rare_classes:
        return name
    found = [each for each in model.rare_classes if label_value(each) == label_value(name)]
    if not found:
        known = ", ".join(model.rare_classes)
        option = setting("rare_class")
        has = f"Its classes are {known}." if known else f"It has one: leave {option} out."
        message = f"{option}: the model has no rare class {name!r}."
        raise ErrorKind.LABELS.error(message, has, value=name)
    return found[0]


def _of_class(model: Model, rows: ScoredRows, name: str | None) -> ScoredRows:
    """Return rows with the label and the probability of one of several rare classes."""
    if name is None:
        return rows
    if name == EVERY_CLASS:
        assert rows.classes is not None
        weights = weights_among(model.rare_class.class_counts, rows.classes.which)
        return rows._replace(scores=greatest_multiples(rows.classes.probability, weights))
    k, classes = model.rare_classes.index(name), rows.classes
    y = None if classes is None else (classes.which == k).astype(np.int16)
    if classes is None or y is None or not y.any():
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"{setting('rare_class', name)}: no row to choose a threshold by is of that class.",
            "Give a file with rows of it.",
        )
    return rows._replace(y=y, scores=classes.probability[:, k], classes=None)


def held_out_of(model: Model, rule: DecisionRule | None = None) -> ScoredRows:
    """Return the held-out scores of a model file; raise `InputError` where a rule needs others."""
    has = "no scores of rows held out"
    if model.held_out is not None:
        if rule is None or not (rule.columns or rule.needs_time):
            return model.held_out
        what = f"costs by {rule.columns[0]}" if rule.columns else "alerts a day"
        has = f"scores of rows held out, and nothing on {what}"
    raise ErrorKind.UNSUPPORTED.error(
        f"The model file has {has}.",
        "Give a file with the target that the model did not learn from.",
    )


def _time_of_rows(
    model: Model, rule: DecisionRule, file: TableFile | SvmlightFile, time: str | None
) -> str | None:
    """Return the column of times that a rule reads; raises `InputError` where it lacks one."""
    if time is None and rule.needs_time:
        known = known_time(model)
        time = known if known in file.columns else None
    rule.check_time(time)
    return time


def known_time(model: Model) -> str | None:
    """Return the column of times that alerts of a day are of: the budget's, else training's."""
    rule, training = model.facts.rule, model.facts.training
    of_budget = None if rule is None or rule.budget is None else rule.budget.time
    return of_budget or (None if training is None else training.time)


def dated_rows(rows: ScoredRows, column: pl.Series, is_asked: bool) -> DatedRows:
    """Return those of a file's rows that have a time, in its `column`; all where none has one.

    An empty cell is refused where the column was asked for, and else is of no day; so are numbers
    that are no days.
    """
    places = np.arange(len(rows.y)) if rows.places is None else rows.places
    kept = np.arange(len(places))
    if not is_asked:
        kept = np.flatnonzero(~are_empty(column[places]).to_numpy())
    time = times_of(column[places[kept]], places[kept] + 1, setting("time"))
    if is_asked:
        check_days(time, setting("time", column.name), column.name)
    elif not len(kept) or not are_days(time):
        return DatedRows(rows)
    return DatedRows(rows.take(kept), time, len(places) - len(kept))


def costs_of(column: pl.Series, rows: NDArray[np.int64], option: str) -> NDArray[np.float64]:
    """Return what some rows cost; `rows` are the numbers of the cells in the file, from 1 on.

    Text is read as training reads a column of numbers: $5, 1,200.50 or 2,5. Raises `InputError` at
    the first cell that is no finite number of at least 0.
    """
    numbers, doubt = column.cast(pl.Float64, strict=False), None
    if is_text_type(column.dtype):
        profile = CellProfile()
        profile.add(column, 1)
        reading, doubt, *_ = reading_of_text(profile)
        if reading.number_format:
            numbers = parse_numbers(column, reading).values
    costs = numbers.to_numpy()
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        row, cell = int(rows[bad[0]]), column[int(bad[0])]
        what = "an empty cell" if is_empty(cell) else shown(cell)
        either = ", written with a decimal point: a comma may mean decimals or thousands"
        raise ErrorKind.CELL.error(
            f"{option}: {what} at row {row:,} is not a cost.",
            f"Costs are finite numbers of at least 0{either if doubt == 'commas' else ''}.",
            column=column.name,
            row=row,
        )
    return costs
