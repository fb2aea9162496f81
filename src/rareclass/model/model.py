"""A fitted model on tables: encoder, estimator, thresholds, calibration and facts in one value.

``rareclass fit``, ``stream`` and ``hunt`` make a `Model`; `rareclass.load` opens one; scoring,
evaluation, reports, explanations, the server, ONNX and MLflow use it. A model does not change but
for the base rate of its probabilities (`Model.set_prevalence`): one with another threshold is a new
model (`Model.with_thresholds`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration import LevelCalibration
from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.encoding.target import labels_as_text
from rareclass.errors import ErrorKind, fit_of_a_rare_class, no_rows
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.metrics.intervals import WeightedRate
from rareclass.model.decisions import Decision, RareDecision, decision_of
from rareclass.model.drift import AlertRate, InputSummary, drift_of
from rareclass.model.facts import HuntFacts, RareClassScores, ScoredRows
from rareclass.model.table_scorer import Scores, TableScorer
from rareclass.model.targets import RareClassFacts
from rareclass.tables import TextSettings
from rareclass.tables.cells import are_empty
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, open_rows

# Columns of the rows of training move by less than this part of what chance explains: bins of
# copies and of long tables are not exact.
_SAME_ROWS = 0.02


@dataclass(frozen=True, eq=False, repr=False)
class Model(TableScorer):
    """A fitted ranking that scores tables; `rareclass.load` opens one.

    Attributes
    ----------
    encoder : Encoder
        Turns typed rows into what `estimator` learned from.
    estimator : estimator with ``score_samples``
        The ranking.
    facts : ModelFacts
        Target, columns, counts of the training, parameters, measures on held-out rows, versions.
    thresholds : ndarray of shape (n_classes - 1,)
        Scores at which a class ends: a row is of class k where
        ``thresholds[k - 1] < score <= thresholds[k]``. They were chosen on held-out rows.
    calibration : Calibration, LevelCalibration or None
        From scores to probabilities; None where no rows were held out, and for streams.
    held_out : ScoredRows or None
        Scores of held-out rows, by which another threshold is chosen.
    cases : RareCases or None
        Rare training rows, to compare alerts with.
    notices : tuple of str
        Oddities of the file that did not keep it from opening.
    file : Path or None
        File that the model was read from.

    Examples
    --------
    >>> import rareclass
    >>> model = rareclass.load("model.rareclass")  # doctest: +SKIP
    >>> model.score_samples(new_rows)  # doctest: +SKIP
    array([0.013, 1.204, 0.118])
    """

    def __repr__(self) -> str:
        return f"<Model of {self.target!r}: {', '.join(self.classes)}>"

    @property
    def columns(self) -> list[str]:
        """Names of the columns that a table must have, in any order; empty for svmlight rows."""
        return [column.name for column in self.encoder.columns]

    @cached_property
    def decision(self) -> Decision:
        """The rule from scores to classes."""
        return decision_of(self.facts.target, self.thresholds, self.facts.class_thresholds)

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the classes; the one ranked first comes last."""
        return tuple(self.decision.names)

    @property
    def threshold(self) -> float:
        """Score above which a row is called rare, of a model of a rare class."""
        return float(self.thresholds[0])

    @property
    def has_rare_class(self) -> bool:
        """Say whether the target is one rare class, not levels."""
        return isinstance(self.facts.target, RareClassFacts)

    @property
    def rare_class(self) -> RareClassFacts:
        """Labels of the rare class and of the rest; raises `InputError` for a model of levels."""
        if not isinstance(self.facts.target, RareClassFacts):
            raise ErrorKind.UNSUPPORTED.error(
                f"The model of {self.target!r} is for ordered levels, and has no rare class.",
                fit_of_a_rare_class(),
            )
        return self.facts.target

    def with_thresholds(self, thresholds: Any, rule: ChosenThreshold | None = None) -> Self:
        """Return the model with other thresholds, and how they were chosen."""
        values = np.atleast_1d(np.asarray(thresholds, dtype=np.float64))
        return replace(self, thresholds=values, facts=replace(self.facts, rule=rule))

    def with_class_rules(self, rules: dict[str, ChosenThreshold]) -> Self:
        """Return the model with other thresholds of some of several rare classes."""
        rules = self.facts.class_rules | rules
        return replace(self, facts=replace(self.facts, class_rules=rules))

    @property
    def prevalence(self) -> float | None:
        """Share of rare rows that probabilities are of; None without probabilities of one class."""
        return None if self.rare_calibration is None else self.rare_calibration.prevalence

    @property
    def stated_prevalence(self) -> float | None:
        """The share of rare rows that was stated for probabilities; None where none was."""
        calibration = self.rare_calibration
        return calibration.prevalence if calibration is not None and calibration.shift else None

    def set_prevalence(
        self, prevalence: float | None = None, majority_sampling_rate: float | None = None
    ) -> Self:
        """State the base rate that `predict_proba` is to be of: nothing is learned again.

        Parameters as of `rareclass.decide.at_prevalence`; without any, the base rate of the
        training rows. Returns the model itself. Scores, thresholds and classes stay as they are.

        Raises
        ------
        InputError
            On a share out of range, or both of them; where the model has no probabilities of a rare
            class.
        """
        stated = self._known_calibration().at(prevalence, majority_sampling_rate)
        object.__setattr__(self, "calibration", stated)  # the only thing of a model that changes
        return self

    def score_samples(
        self, table: Any, separator: str | None = None, encoding: str | None = None
    ) -> Scores:
        """Return a score for each row: the higher, the more like the rare class.

        For levels: the higher, the higher the level. Only the order of scores was learned;
        probabilities are `predict_proba`'s.

        Parameters
        ----------
        table : pandas, polars or pyarrow table, str or Path
            Rows with `columns`, of the types that the training table had; or a CSV, Parquet, JSON
            lines or svmlight file of any size, read a batch at a time.
        separator : str, optional
            Separator of the cells of a CSV file; detected by default.
        encoding : str, optional
            Encoding of a CSV or JSON lines file, such as "cp1251"; by default UTF-8, or cp1252,
            with a warning, where it is not UTF-8.

        Returns
        -------
        ndarray of shape (n_rows,)
            Row order kept. Values that training never saw count as empty or as no known value.
            O(rows x landmarks) time for kernel machines, O(rows x columns) for linear ones.

        Raises
        ------
        InputError
            When a column is missing, or a cell cannot be read: it names column, row and value.
        """
        return self._scores_and_classes(table, separator, encoding)[0]

    def unlike_training(
        self, table: Any, separator: str | None = None, encoding: str | None = None
    ) -> list[list[str]]:
        """Return for each row the columns with a value that training did not have.

        Numbers and dates beyond the training range, words and codes that are new, as ``rareclass
        monitor`` counts them; no empty cells. Such a row may be an alert for that alone. Takes what
        `score_samples` takes; svmlight rows have no such columns.
        """
        seen, found = InputSummary(), []
        rows_of = open_rows(table, TextSettings(separator, encoding))
        for typed, _ in self._typed_batches(rows_of, (), seen):
            rows = self.encoder.find_unlike(self.encoder.read(typed)).rows()
            found += [rows.get(k, []) for k in range(typed.shape[0])]
            seen.n_rows += typed.shape[0]
        return found

    def predict(
        self, table: Any, separator: str | None = None, encoding: str | None = None
    ) -> NDArray[Any]:
        """Return the class of each row by `thresholds`, as one of `classes`.

        Of several rare classes: one of `rare_classes` by the thresholds of the classes, as
        ``called_class`` of a file of scores, else the first of `classes`.

        Parameters
        ----------
        table, separator, encoding
            As for `score_samples`.

        Returns
        -------
        ndarray of str of shape (n_rows,)
        """
        if self.rare_classes:
            _, classes = self._scores_and_classes(table, separator, encoding)
            return self.class_names(classes)
        called = self.decision.decide(self.score_samples(table, separator, encoding))
        return np.array(self.classes)[called]

    def called_class(self, classes: NDArray[np.float64]) -> NDArray[np.intp]:
        """Return the place among `rare_classes` of what each row is called, -1 for the rest.

        `classes` are those of `score_and_classes`.
        """
        assert isinstance(self.decision, RareDecision)
        return self.decision.called_class(classes)

    def class_names(self, classes: NDArray[np.float64]) -> NDArray[Any]:
        """Return the name of what each row is called, see `called_class`."""
        names = np.array([*self.rare_classes, self.classes[0]])
        return names[self.called_class(classes)]  # -1 is the last, the rest

    def _scores_and_classes(
        self, table: Any, separator: str | None, encoding: str | None
    ) -> tuple[Scores, NDArray[np.float64]]:
        """Return `score_and_classes` of a table or file; no columns where one class is rare."""
        rows = open_rows(table, TextSettings(separator, encoding))
        scores, classes = [np.empty(0)], [np.empty((0, len(self.rare_classes)))]
        for batch in self.score_batches(rows, (), InputSummary()):
            scores.append(batch.scores)
            if batch.classes is not None:
                classes.append(batch.classes)
        return np.concatenate(scores), np.concatenate(classes)

    def predict_proba(
        self, table: Any, separator: str | None = None, encoding: str | None = None
    ) -> Scores:
        """Return the probability of each of `classes`, at the stated share of rare rows.

        Of several rare classes: of all other rows, and of each of `rare_classes`.

        That is the one of the training rows, or of ``fit --prevalence`` and `set_prevalence`.

        Parameters
        ----------
        table, separator, encoding
            As for `score_samples`.

        Returns
        -------
        ndarray of shape (n_rows, n_classes)
            The rare class, or the highest level, is the last column; several rare classes are the
            last ones.

        Raises
        ------
        InputError
            As `score_samples`; where the model has no probabilities: no rows were held out, or it
            is of a stream.
        """
        if self.rare_classes:
            classes = self.stated_classes(*self._scores_and_classes(table, separator, encoding))
            return np.column_stack([1.0 - classes.sum(axis=1), classes])
        scores = self.score_samples(table, separator, encoding)
        if isinstance(self.calibration, LevelCalibration):
            return self.calibration(scores)
        rare = self._known_calibration()(scores)
        return np.column_stack([1.0 - rare, rare])

    def percentiles(self, scores: Scores) -> Scores:
        """Return the share of the training majority, in percent, that score less.

        Of all training rows where the target has levels. Linear interpolation of the quantiles.
        """
        percents = np.linspace(0.0, 100.0, len(self.facts.quantiles))
        return np.interp(scores, self.facts.quantiles, percents)

    def stated_classes(self, scores: Scores, classes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of several rare classes at the stated share of rare rows.

        `classes` are those of `score_and_classes`; what they sum to is moved, their ratios stay.
        """
        rare = self._known_calibration()(scores)
        return rare[:, None] * classes / classes.sum(axis=1, keepdims=True)


def rows_alike(model: Model, new: ScoredRows | None = None) -> float:
    """Return how many new rows count as one, as held-out rows do that are of a group, or copies.

    1 where the groups of the new rows are known: these count them.
    """
    held = model.held_out
    if held is None or held.group is None or (new is not None and new.group is not None):
        return 1.0
    return held.cuts().alike


def held_out_rate(model: Model) -> WeightedRate | None:
    """Count alerts among the rows that the threshold was set on, of training or of a file.

    None where the model knows none.
    """
    held, rule = model.held_out, model.facts.rule
    rate = None if held is None else held.rate_above(model.threshold)
    n_held = 0.0 if rate is None else rate.n_rare + rate.n_majority
    if rule is not None and not np.isclose(n_held, rule.rows):
        return WeightedRate.counted(rule.alerts, rule.rows)
    return rate


def alert_rate(model: Model, n_alerts: int, n_rows: int) -> AlertRate | None:
    """Compare alerts with those of `held_out_rate`; None without that, or any new row."""
    held = held_out_rate(model)
    if held is None or not n_rows:
        return None
    found = WeightedRate.counted(n_alerts, n_rows).of_rows_alike(rows_alike(model))
    return AlertRate(found.interval(), held.interval())


def labelled_scores(
    model: Model,
    file: TableFile | SvmlightFile,
    name: str,
    seen: InputSummary,
    target: str | None = None,
    labels: pl.Series | None = None,
    look: Callable[[Any, NDArray[np.float64], pl.Series], None] | None = None,
) -> ScoredRows:
    """Return codes (-1: no label) and scores of a file with the target; `seen` is filled.

    `target` names another column than the model does; `labels` take its place. `look` is called
    with the rows, scores and labels of each batch. Raises `InputError` where there are no rows, and
    as `RareDecision.codes`. Warns of rows that the model was trained on.
    """
    told, scores, probability, classes, groups = [], [], [], None, []
    kept, training = [target or model.target] if labels is None else [], model.facts.training
    of_groups = [name for name in file.columns if training and name == training.groups]
    if training and training.groups and not of_groups:
        warn(
            f"{name} has no column {training.groups!r}, the groups of training: its rows count one "
            "by one, and intervals are too narrow where rows of a group are alike.",
            TableWarning,
            Finding(FindingKind.NO_GROUPS, {"column": training.groups}),
        )
    for batch in model.score_batches(file, kept + of_groups, seen, with_rows=look is not None):
        groups += [batch.kept[name] for name in of_groups]
        if labels is None:
            told.append(labels_as_text(batch.kept.to_series()))
            probability += [] if batch.classes is None else [batch.classes]
        else:
            told.append(labels[seen.n_rows - len(batch.scores) : seen.n_rows])
        if look is not None:
            look(batch.rows, batch.scores, told[-1])
        scores.append(batch.scores)
    if not told:
        raise no_rows(name)
    labels = pl.concat(told)
    codes = model.decision.codes(labels, name)
    all_scores = np.concatenate(scores)
    if kept:  # rows that a journal has verdicts on had no label in training
        _warn_of_training_rows(seen, codes, all_scores, model, name)
    which = model.facts.target.which(labels)
    if probability and which is not None:
        classes = RareClassScores(which, np.concatenate(probability))
    group = _each_alone(pl.concat(groups)) if groups else None
    return ScoredRows(codes, all_scores, classes=classes, group=group)


def _warn_of_training_rows(
    seen: InputSummary, codes: NDArray[Any], scores: NDArray[Any], model: Model, file: str
) -> None:
    """Warn where labelled rows of a file seem to be those that the model was trained on.

    They are as many, and so are the rare ones; and the columns together are so much more like those
    of training than chance leaves other rows. `codes` are 1 for rare rows, -1 without a label. A
    hunt looks at all rows, whose labels may be more by now: they have the scores of its list.
    """
    facts, alike, estimate = model.facts, "alike in every column", "rareclass show prints"
    target, n_rows = facts.target, int((codes >= 0).sum())
    if isinstance(facts.method, HuntFacts):
        alike, estimate = "with the same scores", "hunt.json has, of hidden cases,"
        order: Any = model.estimator
        is_known = seen.n_rows == facts.method.n_hunted and order.is_of(scores)
    else:
        of_training = isinstance(target, RareClassFacts) and (facts.n_rows, target.n_rare)
        is_known = (n_rows, int((codes == 1).sum())) == of_training and _are_alike(seen)
    if is_known:
        warn(
            f"{file} seems to hold the rows that the model was trained on: as many, and {alike}. "
            f"Measures on them are too good; {estimate} the estimate for new rows.",
            TableWarning,
            Finding(FindingKind.TRAINING_ROWS, {"rows": n_rows}),
        )


def _are_alike(seen: InputSummary) -> bool:
    """Say whether columns have moved by less than chance leaves other rows."""
    known = [each for each in drift_of(seen, None).compared if each.is_used and each.chance]
    moved = sum(each.stability_index or 0.0 for each in known)
    by_chance = sum(each.chance.index for each in known if each.chance)
    return bool(known) and moved <= _SAME_ROWS * by_chance


def _each_alone(groups: pl.Series) -> NDArray[Any]:
    """Return groups as text, with one of its own for a row without."""
    alone = pl.Series([f"row {k}" for k in range(len(groups))], dtype=pl.String)
    return groups.cast(pl.String).zip_with(~are_empty(groups), alone).to_numpy()
