"""Parts of a fitted model, and how they score rows: of tables in memory and of files."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.encoding.table_statistics import ExampleCells, TableStatistics, UnlikeCells
from rareclass.encoding.typed_table import check_all_there, read_as_trained
from rareclass.errors import ErrorKind, InputError, missing_column
from rareclass.machine import track
from rareclass.model.archive import damaged, in_brief
from rareclass.model.columns import TrainedColumn, trained_columns
from rareclass.model.drift import ColumnTracker, InputSummary
from rareclass.model.facts import CombinationFacts, ModelFacts, RareCases, ScoredRows
from rareclass.model.targets import RareClassFacts
from rareclass.stored import finite_vector
from rareclass.tables.columns import Column
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, batch_rows_for


def class_probability(
    estimator: Any,
    calibration: Calibration,
    scores: NDArray[np.float64],
    which: NDArray[np.float64],
    n_classes: int,
) -> NDArray[np.float64]:
    """Return P(k | x) = P(rare | score) P(k | rare, x) of shape (n_rows, n_classes).

    `which` are the shares P(k | rare, x) of the classes that the estimator learned. A class without
    a row among those that it learned from has the probability 0.
    """
    probability = np.zeros((len(scores), n_classes))
    number = [code - 1 for code in class_codes(estimator)]
    probability[:, number] = calibration(scores)[:, None] * which
    return probability


def class_codes(estimator: Any) -> list[int]:
    """Return the codes of the rare classes that an estimator learned, from 1 on."""
    labels = estimator.pos_label_
    return [int(code) for code in (labels if isinstance(labels, tuple) else (labels,))]


Scores = NDArray[np.float64]


@runtime_checkable
class Encoder(Protocol):
    """Turns typed rows of a table into what the estimator learned from.

    An `InputError` of a cell has the number of the row among those that were given, from 1.
    """

    @property
    def statistics_(self) -> TableStatistics | None:
        """Numbers and words of each column in training; None where they were not kept."""

    @property
    def columns(self) -> Sequence[Column]:
        """Columns that are learned from; none for sparse rows."""

    @property
    def feature_columns(self) -> Sequence[str] | None:
        """The column that each feature comes from; None where the estimator takes columns."""

    def read(self, rows: Any) -> Any:
        """Return typed rows in the form that the other methods take."""

    def transform(self, rows: Any) -> Any:
        """Return encoded rows."""

    def find_unlike(self, rows: Any) -> UnlikeCells:
        """Find the cells that are unlike all of training."""

    def examples(self) -> ExampleCells:
        """Return cells of training as examples."""


@runtime_checkable
class Ranker(Protocol):
    """A fitted estimator: the higher the score, the more like the rare class."""

    def score_samples(self, X: Any) -> Scores:
        """Return a score for each row."""


class ScoredBatch(NamedTuple):
    """Scores of consecutive rows of a file."""

    scores: Scores
    kept: pl.DataFrame  # the columns asked for, as they stand in the file
    rows: Any = None  # typed columns or a sparse matrix, where they were asked for
    classes: NDArray[np.float64] | None = None  # P(k | x) of several rare classes
    unlike: UnlikeCells | None = None  # where cells are looked at


@dataclass(frozen=True, eq=False, repr=False)
class TableScorer:
    """Encoder, estimator and what is known of their training: scores, and what is unlike it.

    `Model` adds decisions and probabilities, and says what each part is.
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

    @property
    def target(self) -> str:
        """Name of the column whose classes were learned; a table to be scored need not have it."""
        return self.facts.target.target

    @property
    def rare_calibration(self) -> Calibration | None:
        """The map from scores to probabilities of the rare class; None for levels or no map."""
        return self.calibration if isinstance(self.calibration, Calibration) else None

    def _known_calibration(self) -> Calibration:
        """Return the map to probabilities of the rare class; raises `InputError` without one."""
        if self.rare_calibration is None:
            raise ErrorKind.UNSUPPORTED.error(
                f"This model of {self.target!r} has no probabilities: no rows were held out to "
                "learn them from.",
                "rareclass fit makes models that have them, of tables with enough rare rows.",
            )
        return self.rare_calibration

    @cached_property
    def trained(self) -> list[TrainedColumn]:
        """The columns as training had them; raises `InputError` where the file is damaged."""
        facts, used = self.facts, self.encoder.columns
        if self.counted:
            return list(self.counted)
        with self.naming_file():
            statistics = self.encoder.statistics_
            grouped = {} if facts.training is None else facts.training.grouped
            found = trained_columns(facts.columns, used, facts.n_rows, statistics, grouped)
            for each in found:
                if each.counts is not None:
                    finite_vector(each.counts, f"column {each.name!r}", each.bins.n_bins + 2)
            return found

    def new_summary(self) -> InputSummary:
        """Return a summary of no rows that compares what it is given with training."""
        return InputSummary(columns=ColumnTracker(self.trained))

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
            raise error.kind.error(message, error.remedy, row=row) from error

    @property
    def rare_classes(self) -> tuple[str, ...]:
        """Names of several rare classes that the model tells apart; empty where it does not."""
        facts = self.facts
        if not isinstance(facts.target, RareClassFacts) or self.rare_calibration is None:
            return ()
        return facts.target.rare_labels if isinstance(facts.method, CombinationFacts) else ()

    def score_and_classes(
        self, X: Any, n_before: int = 0
    ) -> tuple[Scores, NDArray[np.float64] | None]:
        """Return scores of encoded rows, and P(k | x) of several rare classes, None where one is.

        `n_before` rows of the table came before them. The probabilities are at the share of rare
        rows of training, as thresholds are. Raises `InputError` where the estimator gives no score,
        or one that is no finite number.
        """
        names, which = self.rare_classes, None
        with self.naming_file():
            if names:
                scores, which = self.estimator.score_and_classes(X)  # type: ignore[attr-defined]
            else:
                scores = self.estimator.score_samples(X)
        name = "The model" if self.file is None else f"The model file {self.file}"
        if np.shape(scores) != (X.shape[0],) or scores.dtype.kind != "f":
            raise ErrorKind.DAMAGED_FILE.error(
                f"{name} does not score each row: it is damaged.", "Fit again."
            )
        wrong = np.flatnonzero(~np.isfinite(scores))
        if len(wrong):
            row = n_before + int(wrong[0]) + 1
            raise ErrorKind.NOT_FINITE.error(
                f"{name} gives row {row} the score {scores[wrong[0]]}.",
                "The numbers of that row are too large, or the model is damaged: fit again.",
                row=row,
            )
        if which is None:
            return scores, None
        trained = self._known_calibration().at()
        return scores, class_probability(self.estimator, trained, scores, which, len(names))

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
        total = None if isinstance(file, SvmlightFile) else file.estimate_rows() or None
        with track("Scoring", total=total) as advance:
            for typed, batch in self._typed_batches(file, keep, summary):
                n_before = summary.n_rows
                summary.n_rows += typed.shape[0]
                with self.naming_file():
                    read = self.encoder.read(typed)
                scores, classes = self.score_and_classes(self.encode(read, n_before), n_before)
                unlike = self.count_unlike(typed, read, summary, n_before)
                if unlike is not None:
                    summary.columns.add_unused(batch)
                rows = typed if with_rows else None
                yield ScoredBatch(scores, batch.select(keep), rows, classes, unlike)
                advance(typed.shape[0])

    def _typed_batches(
        self, file: TableFile | SvmlightFile, keep: Sequence[str], summary: InputSummary
    ) -> Iterator[tuple[Any, pl.DataFrame]]:
        """Yield rows as training typed them, and their columns as they stand in the file."""
        is_sparse = isinstance(file, SvmlightFile)
        if is_sparse != (self.facts.format == "svmlight"):
            trained_on = "table with named columns" if is_sparse else "svmlight file"
            raise ErrorKind.FILE_FORMAT.error(
                f"{file.path} is a {file.format_name} file, but the model was trained on a "
                f"{trained_on}.",
                f"Give a {trained_on}.",
            )
        columns = list(self.encoder.columns)
        used = [column.name for column in columns]
        if isinstance(file, SvmlightFile):
            encoder: Any = self.encoder
            for rows in file.batches(encoder.zero_based, encoder.n_features_):
                yield rows.X, pl.DataFrame(dict.fromkeys(keep, rows.labels))
            return
        check_all_there(str(file.path), used, file.columns)
        for name in keep:
            if name not in file.columns:
                raise missing_column(f"Target: {file.path}", name, file.columns)
        known = {column.name for column in self.facts.columns} | {self.target, *keep}
        summary.extra_columns = [name for name in file.columns if name not in known]
        summary.n_columns = len(columns)
        compared = sorted(summary.columns.unused & {*file.columns})
        names = list(dict.fromkeys([*used, *keep, *compared]))
        for batch in file.batches(names, batch_rows_for(len(names))):
            yield read_as_trained(batch, columns, summary.n_rows + 1), batch

    def count_unlike(
        self, typed: Any, read: Any, summary: InputSummary, n_before: int = 0
    ) -> UnlikeCells | None:
        """Compare rows with training, where `summary` asks; `read` by the encoder."""
        if not summary.columns.is_wanted:
            return None
        with self.naming_file():
            unlike = self.encoder.find_unlike(read)
        summary.add_unlike(unlike, n_before)
        if self.encoder.columns:  # sparse rows have none to compare
            summary.columns.add(typed)
        return unlike

    @contextmanager
    def naming_file(self) -> Iterator[None]:
        """Re-raise errors from inside a loaded model with the file's name."""
        try:
            yield
        except (InputError, MemoryError, OSError):
            raise
        except Exception as error:  # parts that do not fit can fail in any way
            if self.file is None:
                raise
            raise damaged(self.file, f"it cannot score: {in_brief(error)}") from error
