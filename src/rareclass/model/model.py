"""A fitted model on tables: encoder, estimator, thresholds, calibration and facts in one value.

``rareclass fit``, ``stream`` and ``hunt`` make a `Model`; `rareclass.load` opens one; scoring,
evaluation, reports, explanations, the server, ONNX and MLflow use it. A model does not change but
for the base rate of its probabilities (`Model.set_prevalence`): one with another threshold is a new
model (`Model.with_thresholds`).
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Self

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration.calibration import (
    Calibration,
    LevelCalibration,
    shift_probability,
)
from rareclass.decide.calibration.isotonic import ProbabilityInterval, VennAbersMap
from rareclass.decide.chosen_threshold import ChosenThreshold
from rareclass.encoding.encoders import TableEncoder, TypedColumns
from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import ErrorKind, InputError
from rareclass.machine import track
from rareclass.model.archive import naming_file
from rareclass.model.class_probability import class_probability
from rareclass.model.columns import ColumnTracker, TrainedColumn, check_columns, trained_columns
from rareclass.model.decisions import Decision, RareDecision, decision_of
from rareclass.model.drift import InputSummary
from rareclass.model.facts import (
    CombinationFacts,
    ModelFacts,
    RareCases,
    RareClassFacts,
    ScoredRows,
)
from rareclass.model.parts import Encoder, Ranker, Scores
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, batch_rows_for, open_rows


class ScoredBatch(NamedTuple):
    """Scores of consecutive rows of a file."""

    scores: Scores
    kept: pl.DataFrame  # the columns asked for, as they stand in the file
    rows: Any = None  # typed columns or a sparse matrix, where they were asked for
    classes: NDArray[np.float64] | None = None  # P(k | x) of several rare classes


@dataclass(frozen=True, eq=False, repr=False)
class Model:
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

    encoder: Encoder
    estimator: Ranker
    facts: ModelFacts
    thresholds: NDArray[np.float64]
    calibration: Calibration | LevelCalibration | None = None
    held_out: ScoredRows | None = None
    cases: RareCases | None = None
    notices: tuple[str, ...] = ()
    file: Path | None = None
    counted: tuple[TrainedColumn, ...] = ()  # columns as a stream had them

    def __repr__(self) -> str:
        return f"<Model of {self.target!r}: {', '.join(self.classes)}>"

    @property
    def target(self) -> str:
        """Name of the column whose classes were learned; a table to be scored need not have it."""
        return self.facts.target.target

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
    def rare_calibration(self) -> Calibration | None:
        """The map from scores to probabilities of the rare class; None for levels or no map."""
        return self.calibration if isinstance(self.calibration, Calibration) else None

    @property
    def level_calibration(self) -> LevelCalibration | None:
        """The map from scores to probabilities of levels; None for a rare class or no map."""
        return self.calibration if isinstance(self.calibration, LevelCalibration) else None

    @property
    def threshold(self) -> float:
        """Score above which a row is called rare, of a model of a rare class."""
        return float(self.thresholds[0])

    @property
    def statistics(self) -> TableStatistics | None:
        """Statistics of the training table by column; None for sparse rows, hunts and streams."""
        if isinstance(self.encoder, TypedColumns):
            return self.estimator.statistics_  # type: ignore[attr-defined]
        return self.encoder.statistics_ if isinstance(self.encoder, TableEncoder) else None

    @cached_property
    def trained(self) -> list[TrainedColumn]:
        """The columns and the scores as training had them."""
        facts, used = self.facts, self.encoder.columns
        if self.counted:
            return list(self.counted)
        with self.naming_file():
            return trained_columns(
                facts.columns, used, facts.n_rows, self.statistics, self.held_out
            )

    @property
    def has_rare_class(self) -> bool:
        """Say whether the target is one rare class, not levels."""
        return isinstance(self.facts.target, RareClassFacts)

    @property
    def rare_class(self) -> RareClassFacts:
        """Labels of the rare class and of the rest; raises `InputError` for a model of levels."""
        if not isinstance(self.facts.target, RareClassFacts):
            raise InputError(
                f"The model of {self.target!r} is for ordered levels, and has no rare class.",
                "Fit one of a rare class: --method auto --positive LEVEL.",
                ErrorKind.UNSUPPORTED,
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

    def score_samples(self, table: Any, separator: str | None = None) -> Scores:
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
        rows = open_rows(table, separator)
        batches = self.score_batches(rows, (), InputSummary(counts_cells=False))
        return np.concatenate([np.empty(0), *(batch.scores for batch in batches)])

    def predict(self, table: Any, separator: str | None = None) -> NDArray[Any]:
        """Return the class of each row by `thresholds`, as one of `classes`.

        Of several rare classes: one of `rare_classes` by the thresholds of the classes, as
        ``called_class`` of a file of scores, else the first of `classes`.

        Parameters
        ----------
        table, separator
            As for `score_samples`.

        Returns
        -------
        ndarray of str of shape (n_rows,)
        """
        if self.rare_classes:
            _, classes = self._scores_and_classes(table, separator)
            return self.class_names(classes)
        called = self.decision.decide(self.score_samples(table, separator))
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
        self, table: Any, separator: str | None
    ) -> tuple[Scores, NDArray[np.float64]]:
        """Return `score_and_classes` of a table or file, where several classes are rare."""
        rows = open_rows(table, separator)
        found = list(self.score_batches(rows, (), InputSummary(counts_cells=False)))
        none = np.empty((0, len(self.rare_classes)))
        classes = [each.classes for each in found if each.classes is not None]
        scores = np.concatenate([np.empty(0), *(each.scores for each in found)])
        return scores, np.concatenate([none, *classes])

    def predict_proba(self, table: Any, separator: str | None = None) -> Scores:
        """Return the probability of each of `classes`, at the stated share of rare rows.

        Of several rare classes: of all other rows, and of each of `rare_classes`.

        That is the one of the training rows, or of ``fit --prevalence`` and `set_prevalence`.

        Parameters
        ----------
        table, separator
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
            classes = self.stated_classes(*self._scores_and_classes(table, separator))
            return np.column_stack([1.0 - classes.sum(axis=1), classes])
        scores = self.score_samples(table, separator)
        if self.level_calibration is not None:
            return self.level_calibration(scores)
        rare = self._known_calibration()(scores)
        return np.column_stack([1.0 - rare, rare])

    def predict_proba_interval(
        self, table: Any, separator: str | None = None
    ) -> ProbabilityInterval:
        """Return bounds of the probability of the rare class, by how few rows were held out.

        One of the two bounds, the one that goes by the true label, is calibrated for rows drawn as
        those of training (Venn-Abers prediction). The bounds are at the prevalence of
        `predict_proba`, whose probability lies between them.

        Parameters
        ----------
        table, separator
            As for `score_samples`.

        Returns
        -------
        ProbabilityInterval
            ``low`` and ``high``, each of shape (n_rows,).

        Raises
        ------
        InputError
            As `score_samples`; where the model holds no scores of held-out rows, or is of levels.
        """
        _ = self.venn_abers  # before the rows are read
        scores = self.score_samples(table, separator)
        return self.probability_interval(scores, self._known_calibration()(scores))

    @cached_property
    def venn_abers(self) -> VennAbersMap:
        """Venn-Abers pairs, learned from the scores of held-out rows. O(n log n).

        Raises `InputError` where there are no such scores, and for a model of levels.
        """
        if not self.has_rare_class:
            raise InputError(
                "A model of levels has no probability of a rare class, and no interval of it.",
                "Leave --probability-interval out.",
                ErrorKind.UNSUPPORTED,
            )
        if self.held_out is None:
            raise InputError(
                "The model file has no scores of held-out rows, from which intervals of "
                "probabilities are learned.",
                "rareclass fit makes models that have them, without --holdout 0.",
                ErrorKind.UNSUPPORTED,
            )
        held_out = self.held_out
        return VennAbersMap.fit(held_out.y == 1, held_out.scores, held_out.weight)

    def probability_interval(
        self, scores: Scores, probability: Scores | None = None
    ) -> ProbabilityInterval:
        """Return the Venn-Abers bounds of scores, widened where a `probability` lies beyond them.

        At another prevalence than that of training both odds are multiplied as those of the
        probability are, which another map has learned. Raises `InputError` as `venn_abers`.
        """
        calibration = self.rare_calibration
        shift = 0.0 if calibration is None else calibration.shift
        low, high = (shift_probability(p, shift) for p in self.venn_abers.interval(scores))
        if probability is not None:
            low, high = np.minimum(low, probability), np.maximum(high, probability)
        return ProbabilityInterval(low, high)

    def _known_calibration(self) -> Calibration:
        """Return the map to probabilities of the rare class; raises `InputError` without one."""
        if self.rare_calibration is None:
            raise InputError(
                f"This model of {self.target!r} has no probabilities: no rows were held out to "
                "learn them from.",
                "rareclass fit makes models that have them, of tables with enough rare rows.",
                ErrorKind.UNSUPPORTED,
            )
        return self.rare_calibration

    def percentiles(self, scores: Scores) -> Scores:
        """Return the share of the training majority, in percent, that score less.

        Of all training rows where the target has levels. Linear interpolation of the quantiles.
        """
        percents = np.linspace(0.0, 100.0, len(self.facts.quantiles))
        return np.interp(scores, self.facts.quantiles, percents)

    def encode(self, typed: Any, n_before: int = 0) -> Any:
        """Return typed rows as the estimator takes them; `n_before` rows came before them."""
        try:
            with self.naming_file():
                return self.encoder.transform(typed)
        except InputError as error:
            if error.row is None:
                raise
            row = n_before + error.row
            message = f"Row {row}: {error.message}"
            raise InputError(message, error.remedy, error.kind, row=row) from error

    @property
    def rare_classes(self) -> tuple[str, ...]:
        """Names of several rare classes that the model tells apart; empty where it does not."""
        facts = self.facts
        if not isinstance(facts.target, RareClassFacts) or self.rare_calibration is None:
            return ()
        return facts.target.rare_labels if isinstance(facts.method, CombinationFacts) else ()

    def score_encoded(self, X: Any, n_before: int = 0) -> Scores:
        """Return scores of encoded rows; `n_before` rows of the table came before them.

        Raises `InputError` where the estimator gives no score, or one that is no finite number.
        """
        with self.naming_file():
            scores = self.estimator.score_samples(X)
        return self._checked(scores, X.shape[0], n_before)

    def score_and_classes(
        self, X: Any, n_before: int = 0
    ) -> tuple[Scores, NDArray[np.float64] | None]:
        """Return `score_encoded`, and P(k | x) of several rare classes, None where one is rare.

        The probabilities are at the share of rare rows of training, as thresholds are.
        """
        names = self.rare_classes
        if not names:
            return self.score_encoded(X, n_before), None
        with self.naming_file():
            scores, which = self.estimator.score_and_classes(X)  # type: ignore[attr-defined]
        scores = self._checked(scores, X.shape[0], n_before)
        trained = self._known_calibration().at()
        return scores, class_probability(self.estimator, trained, scores, which, len(names))

    def stated_classes(self, scores: Scores, classes: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return probabilities of several rare classes at the stated share of rare rows.

        `classes` are those of `score_and_classes`; what they sum to is moved, their ratios stay.
        """
        rare = self._known_calibration()(scores)
        return rare[:, None] * classes / classes.sum(axis=1, keepdims=True)

    def _checked(self, scores: Any, n_rows: int, n_before: int) -> Scores:
        """Return scores; raise `InputError` where there is not a finite number for each row."""
        name = "The model" if self.file is None else f"The model file {self.file}"
        if np.shape(scores) != (n_rows,) or scores.dtype.kind != "f":
            raise InputError(
                f"{name} does not score each row: it is damaged.",
                "Fit again.",
                ErrorKind.DAMAGED_FILE,
            )
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            row = n_before + int(wrong[0]) + 1
            raise InputError(
                f"{name} gives row {row} the score {scores[wrong[0]]}.",
                "The numbers of that row are too large, or the model is damaged: fit again.",
                ErrorKind.NOT_FINITE,
                row=row,
            )
        return scores

    def score_batches(
        self,
        file: TableFile | SvmlightFile,
        keep: Sequence[str],
        summary: InputSummary,
        with_rows: bool = False,
    ) -> Iterator[ScoredBatch]:
        """Score a file batch by batch; `summary` is filled on the way.

        `keep` names columns to hand on as they stand in the file. Batches hold the typed rows only
        on request; such batches are not to be collected.
        """
        is_sparse = isinstance(file, SvmlightFile)
        if is_sparse != (self.facts.format == "svmlight"):
            trained_on = "table with named columns" if is_sparse else "svmlight file"
            raise InputError(
                f"{file.path} is a {file.format_name} file, but the model was trained on a "
                f"{trained_on}.",
                f"Give a {trained_on}.",
                ErrorKind.FILE_FORMAT,
            )
        if isinstance(file, SvmlightFile):
            yield from self._score_sparse(file, bool(keep), summary, with_rows)
            return
        columns = list(self.encoder.columns)
        used = [column.name for column in columns]
        check_columns(file, used, keep)
        known = {column.name for column in self.facts.columns} | {self.target, *keep}
        summary.extra_columns = [name for name in file.columns if name not in known]
        unused = self._track(summary) & set(file.columns)
        summary.n_columns = len(columns)
        names = list(dict.fromkeys([*used, *keep, *sorted(unused)]))
        with track("Scoring", total=file.estimate_rows() or None) as advance:
            for batch in file.batches(names, batch_rows_for(len(names))):
                n_before = summary.n_rows
                typed = read_as_trained(batch, columns, n_before + 1)
                summary.n_rows += batch.height
                X = self.encode(typed, n_before)
                if summary.counts_cells:
                    with self.naming_file():
                        self.count_unlike(typed, X, summary)
                scores, classes = self.score_and_classes(X, n_before)
                if summary.columns is not None:
                    summary.columns.add_unused(batch.select(sorted(unused)))
                    summary.columns.add_scores(scores)
                rows = typed if with_rows else None
                yield ScoredBatch(scores, batch.select(keep), rows, classes)
                advance(batch.height)

    def _track(self, summary: InputSummary) -> set[str]:
        """Let a summary compare with training; return columns to be read for that alone."""
        if not summary.counts_cells:
            return set()
        if summary.columns is None:
            summary.columns = ColumnTracker(self.trained)
        return {each.name for each in self.trained if each.reading is not None}

    def count_unlike(self, typed: pl.DataFrame, X: Any, summary: InputSummary) -> None:
        """Count cells that are unlike training; `X` are the same rows, encoded."""
        summary.unseen_values.update(self.encoder.count_unseen(typed))
        summary.outside.update(self.encoder.count_outside(typed))
        self._track(summary)
        assert summary.columns is not None
        summary.columns.add(typed)
        if isinstance(self.encoder, TypedColumns):  # the estimator knows its values
            words = {each.name for each in self.encoder.columns if each.reads_as == "string"}
            for name, count in self.estimator.outside(X).items():  # type: ignore[attr-defined]
                counts = summary.unseen_values if name in words else summary.outside
                counts[name] += count

    def _score_sparse(
        self, file: SvmlightFile, keep_labels: bool, summary: InputSummary, with_rows: bool
    ) -> Iterator[ScoredBatch]:
        encoder: Any = self.encoder
        with track("Scoring") as advance:
            for batch in file.batches(encoder.zero_based, encoder.n_features_):
                n_before = summary.n_rows
                summary.n_rows += len(batch.labels)
                scores = self.score_encoded(self.encode(batch.X), n_before)
                self._track(summary)
                if summary.columns is not None:
                    summary.columns.add_scores(scores)
                labels = pl.DataFrame({"label": batch.labels} if keep_labels else {})
                yield ScoredBatch(scores, labels, batch.X if with_rows else None)
                advance(len(batch.labels))

    @contextmanager
    def naming_file(self) -> Iterator[None]:
        """Re-raise errors from inside a loaded model with the file's name.

        Parts of a file that each look sound may still be of different models. A model that was
        just fitted has no file: its errors are left as they are.
        """
        with naming_file(self.file):
            yield
