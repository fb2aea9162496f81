"""A checkpoint as a model: scores and evaluates files as one made by ``rareclass fit`` does."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.threshold_rule import default_thresholds
from rareclass.encoding.column_values import KnownWords
from rareclass.encoding.schema import LearnedKind, Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.encoding.table_statistics import MOST_EXAMPLES, ExampleCells, UnlikeCells
from rareclass.errors import ErrorKind, counted, setting
from rareclass.model.columns import NumberBins, PresentOrEmpty, TrainedColumn, WordBins
from rareclass.model.facts import ModelFacts
from rareclass.model.model import Model
from rareclass.model.model_file import check_model
from rareclass.stored import finite_vector, plain_data, read_fields
from rareclass.stream.state import (
    LoadedCheckpoint,
    SavedStream,
    learner_of,
    load_checkpoint,
    load_newest,
    sound_state,
)
from rareclass.tables.columns import Column
from rareclass.tables.text_reader import Batch

_TREATMENT = {"number": "standardised", "category": "one column a value"}


class StreamEncoder:
    """The encoder of a stream for rows of a file, which it does not learn from.

    All columns are read as text, and parsed as the stream parses them.
    """

    statistics_: None = None

    def __init__(self, encoder: OnlineEncoder) -> None:
        self._encoder = encoder
        self._features = encoder.features
        self.columns = [
            _column_of(encoder.schema, name, kind) for name, kind in encoder.schema.features.items()
        ]
        # Of each category column those that have a number of their own, as they came.
        self.words: dict[str, list[str]] = {}
        for feature in self._features:
            if feature.role == "value":
                self.words.setdefault(feature.column, []).append(feature.value)

    @property
    def feature_columns(self) -> list[str]:
        """The column of the stream that each number of a row is of."""
        return [feature.column for feature in self._features]

    def read(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows as they are: the schema of the stream reads their cells."""
        return frame

    def find_unlike(self, frame: pl.DataFrame) -> UnlikeCells:
        """Find the words of each category that were not met in the stream.

        The range of its numbers is not remembered.
        """
        # Of a column whose later values share one feature is not known which of them came.
        full = {feature.column for feature in self._features if feature.role == "other"}
        unseen: dict[str, NDArray[np.bool_]] = {}
        for name, kind in self._encoder.schema.features.items():
            if kind == "category" and name not in full:
                known = frame[name].is_in(self.words.get(name, [])) | frame[name].is_null()
                unseen[name] = ~known.to_numpy()
        return UnlikeCells.of(unseen.items(), ())

    def examples(self) -> ExampleCells:
        """Return words of categories in the order that they came in."""
        return ExampleCells({name: each[:MOST_EXAMPLES] for name, each in self.words.items()}, {})

    def transform(self, frame: pl.DataFrame) -> NDArray[np.float64]:
        """Return rows of a file as the learner takes them.

        Raises `InputError` at a cell that does not fit, naming column and row, from 1 on.
        """
        raw = Batch(frame, 1 + np.arange(frame.height), "", [], frame.height, {})
        batch, rejected = self._encoder.schema.check(raw)
        if rejected:
            first = rejected[0]
            raise ErrorKind.CELL.error(
                f"{first.reason}.", "Correct that cell or leave it empty.", row=first.line
            )
        return self._encoder.encode(batch, learn=False).X


def _column_of(schema: Schema, name: str, kind: LearnedKind) -> Column:
    """A feature of the stream: its cells come as words, which the schema reads."""
    column = Column(name, kind, _TREATMENT[kind], "string")
    if kind != "category":
        return column
    reading = schema.reading_of(name)
    return replace(column, marks=reading.marks, truth=reading.truth)


def load_stream_model(path: Path) -> Model:
    """Read a checkpoint, or the newest of a folder, as a model.

    The rows of the window stand for the training rows: percentiles are among its majority, and the
    threshold calls as many of them rare as are.

    Raises `InputError` when it is damaged, or has not learned from a rare and another row.
    """
    loaded = load_newest(path) if path.is_dir() else LoadedCheckpoint(path, load_checkpoint(path))
    assert loaded is not None, "is_checkpoint() said so"
    saved, path = loaded.state, loaded.path
    newest = ", ".join(damaged.name for damaged in loaded.damaged)
    with sound_state(path):
        if saved.learner.n_features is None or not saved.counters.has_both_classes:
            n = saved.counters
            raise ErrorKind.TOO_FEW_ROWS.error(
                f"{path} has learned from {counted(n.labelled, 'row')}, {n.rare:,} of them rare: "
                "one rare row and one other are needed.",
                "Let rareclass stream go on. If the rare class has another name, give it with "
                f"{setting('positive')}, and a new {setting('folder')} folder.",
            )
        encoder, learner = StreamEncoder(saved.encoder), learner_of(saved)
        facts, counts = _facts(saved, encoder), _counted(saved, encoder)
        thresholds = np.array([_threshold(saved, float(learner.offset_))])
        notices = (f"{newest} is damaged: {path.name} was taken",) if newest else ()
        model = Model(
            encoder, learner, facts, thresholds, notices=notices, file=path, counted=counts
        )
        check_model(model)
    return model


def _counted(saved: SavedStream, encoder: StreamEncoder) -> tuple[TrainedColumn, ...]:
    """Return the columns as the stream had them, of late more than long ago."""
    numbers = saved.drift.number_counts(saved.encoder)
    counts_of = saved.drift.value_counts(saved.encoder).tolist()
    of_features = list(zip(saved.encoder.features, counts_of, strict=True))
    found = []
    for column in encoder.columns:
        own = [(feature.role, count) for feature, count in of_features if feature[0] == column.name]
        values = [count for role, count in own if role == "value"]
        n_other, n_empty = (sum(n for r, n in own if r == role) for role in ("other", "missing"))
        if column.name in numbers:
            edges, cells = numbers[column.name]
            counts = np.concatenate([cells[:-1], [0.0], cells[-1:]])
            bins: NumberBins | WordBins | PresentOrEmpty = NumberBins(edges)
        elif sum(values):
            counts = np.array([*values, 0.0, n_other, n_empty])
            bins = WordBins(KnownWords().fit(encoder.words[column.name]), len(values))
        else:  # bins of numbers are made when the first segment ends
            counts = np.array([max(saved.drift.n_rows - n_empty, 0.0), 0.0, n_empty])
            bins = PresentOrEmpty()
        finite_vector(counts, f"the cells of column {column.name!r}")
        share_empty = float(counts[-1] / max(counts.sum(), 1.0))
        found.append(TrainedColumn(column.name, column.kind, bins, counts, share_empty))
    return tuple(found)


def _threshold(saved: SavedStream, of_learner: float) -> float:
    """Return the threshold of the window, by the rule of ``rareclass fit``; else the learner's."""
    scores, rare = saved.window.rows()
    found = default_thresholds(rare, scores) if len(scores) else []
    return found[0].threshold if found else of_learner


def _facts(saved: SavedStream, encoder: StreamEncoder) -> ModelFacts:
    scores, rare = saved.window.rows()
    majority = finite_vector(scores, "the scores of the window")[~rare]
    quantiles = np.quantile(majority, np.linspace(0, 1, 1001)) if len(majority) else np.zeros(1001)
    schema = saved.encoder.schema
    unused = [name for name in schema.kinds if name not in schema.features]
    names = [*unused, *(name for name in (schema.id_column, *schema.dropped) if name is not None)]
    others = [Column(name, "beside", "not learned from", "string") for name in names]
    columns = (*encoder.columns, *others)
    for column in columns:
        column.check_parts()
    target = read_fields(type(saved.target), plain_data(saved.target))  # each of its type
    return ModelFacts("stream", target, columns, tuple(quantiles.tolist()))
