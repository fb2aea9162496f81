"""``rareclass score``: a table of any size to a file of scores."""

import tempfile
from collections.abc import Generator, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import IO, Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.encoding.table_statistics import UnlikeCells
from rareclass.errors import ErrorKind, counted, no_rows, setting
from rareclass.files import TABLE_SUFFIXES, check_output, csv_bytes, replacing
from rareclass.model import ScoreSettings
from rareclass.model.decisions import Decision, refuse_levels
from rareclass.model.drift import Drift, InputSummary, drift_of, refuse_drift
from rareclass.model.explained import Explain, explainer_of, told_columns
from rareclass.model.facts import HuntFacts
from rareclass.model.model import Model, alert_rate
from rareclass.model.table_scorer import ScoredBatch
from rareclass.model.threshold import in_step
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.cells import type_name
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, TablePlace, named_columns, open_table

_UNLIKE = "unlike_training"
# Levels that get a column of probabilities each.
_MOST_LEVELS = 20
_NO_CASES = "this model keeps no rare training rows, so the reasons come without similar cases."
_NOT_IN_CSV = (pl.Binary, pl.Duration, pl.Object)
# Rows of a waiting file that are read at a time.
_READ_ROWS = 50_000


@dataclass(frozen=True)
class Scoring:
    """The outcome of scoring a file."""

    n_rows: int
    called: dict[str, int]  # rows of each class or level
    threshold: float | None  # score above which a row is called rare; None where none decides
    sentence: str  # how many rows were called what
    drift: Drift
    notes: list[str] = field(default_factory=list)  # what was asked for and is not there

    def as_plain_data(self) -> dict[str, Any]:
        """Return the outcome as dictionaries and numbers."""
        return {
            "n_rows": self.n_rows,
            "called": self.called,
            "threshold": self.threshold,
            "columns_left_out": self.drift.seen.extra_columns,
            **self.drift.as_plain_data(),
        }


class Part(NamedTuple):
    """Consecutive rows of a file of scores, before it is known what they are called."""

    columns: pl.DataFrame  # those of the user, the score, ..., the percentile
    rows: Any = None  # what they were scored from, where something is to be said of called rows


@dataclass(frozen=True)
class ScoreWriter:
    """Writes rows with what they are called: by the model's decision, or so many of the highest.

    Rows called rare get the columns of `explain` as well.
    """

    decision: Decision
    settings: ScoreSettings
    explain: Explain | None = None

    def write(self, parts: Iterable[Part], path: Path) -> NDArray[np.intp]:
        """Write rows as CSV or Parquet, and return how many were called each code.

        Of alerts only, these are held in memory, to be sorted. The so many highest of all rows are
        known at the end: until then rows wait in a nameless file in the folder of `path`.
        """
        n_called = np.zeros(self.decision.n_codes, dtype=np.intp)
        frames = self._above(parts, n_called)
        if self.settings.top is not None:
            frames = self._highest(parts, self.settings.top, path.parent, n_called)
        with closing(frames):
            written: Iterable[pl.DataFrame] = frames
            if self.settings.alerts_only:
                called = [frame.filter(pl.col(self.decision.column)) for frame in frames]
                written = [pl.concat(called).sort("score", descending=True, maintain_order=True)]
            _write_frames(written, path, len(self.settings.id_columns) or 1)
        return n_called

    def _above(
        self, parts: Iterable[Part], n_called: NDArray[np.intp]
    ) -> Generator[pl.DataFrame, None, None]:
        """Call rows by their own scores, so that every part is written as it comes."""
        for columns, rows in parts:
            scores = columns["score"].to_numpy()
            called = self.decision.decide(scores)
            told = self.explain and self.explain(rows.filter(pl.Series(called == 1)))
            n_called += np.bincount(called, minlength=len(n_called))
            yield self._with_calls(columns, called, told)

    def _highest(
        self, parts: Iterable[Part], top: int, folder: Path, n_called: NDArray[np.intp]
    ) -> Generator[pl.DataFrame, None, None]:
        best = _Best(top)

        def seen() -> Iterator[pl.DataFrame]:
            for columns, rows in parts:
                best.add(columns["score"].to_numpy(), rows)
                yield columns

        # Without a name: nothing stays of it, however the process ends.
        with tempfile.TemporaryFile(dir=folder) as waiting:
            _write_parquet(seen(), waiting)
            n_called[:] = best.n_seen - len(best.places), len(best.places)
            if not best.n_seen:
                return
            order = np.argsort(best.places)
            places, told = best.places[order], None
            if self.explain is not None and best.rows is not None:
                told = self.explain(best.rows[order])
            first = 0
            with pq.ParquetFile(waiting) as file:
                for batch in file.iter_batches(_READ_ROWS):
                    begin, end = np.searchsorted(places, [first, first + batch.num_rows])
                    called = np.zeros(batch.num_rows, dtype=np.intp)
                    called[places[begin:end] - first] = 1
                    own = None if told is None else told[begin:end]
                    yield self._with_calls(pl.DataFrame(pl.from_arrow(batch)), called, own)
                    first += batch.num_rows

    def _with_calls(
        self, columns: pl.DataFrame, called: NDArray[np.intp], told: pl.DataFrame | None
    ) -> pl.DataFrame:
        """Put the decisions before the percentile; `told` has a row for each row called rare."""
        place = columns.get_column_index("percentile")
        frame = columns.insert_column(place, self.decision.cells(called))
        if told is None:
            return frame
        places = np.where(called == 1, np.cumsum(called == 1) - 1, -1)
        index = pl.Series(places).replace(-1, None)
        return frame.hstack([column.gather(index) for column in told])

    def sentence(self, n_called: NDArray[np.intp]) -> str:
        """Say how many rows were called what."""
        if self.settings.top is None:
            return self.decision.sentence(n_called)
        n_rows, n_rare = int(n_called.sum()), int(n_called[1])
        scored = f"Scored {counted(n_rows, 'row')}"
        if n_rare == n_rows:
            return f"{scored}; all are among the {self.settings.top:,} highest."
        return f"{scored}; the {n_rare:,} highest are called rare."


def _write_frames(frames: Iterable[pl.DataFrame], path: Path, n_own: int) -> None:
    """Write rows as CSV or Parquet, by the suffix; Parquet has the types of the first rows."""
    if path.suffix.lower() == ".csv":
        with path.open("wb") as file:
            for number, frame in enumerate(frames):
                ours = [name for name in frame.columns[n_own:] if frame[name].dtype == pl.Boolean]
                frame = frame.with_columns(
                    pl.col(ours).cast(pl.Int8), pl.col(pl.List(pl.String)).list.join(", ")
                )
                file.write(csv_bytes(frame, include_header=not number))
    else:
        _write_parquet(frames, path)


def _write_parquet(frames: Iterable[pl.DataFrame], file: Path | IO[bytes]) -> None:
    writer: pq.ParquetWriter | None = None
    try:
        for frame in frames:
            table: pa.Table = frame.to_arrow()
            writer = writer or pq.ParquetWriter(file, table.schema)
            writer.write_table(table.cast(writer.schema))
    finally:
        if writer is not None:
            writer.close()


class _Best:
    """The so many highest scores so far, where they stand, and their rows."""

    def __init__(self, size: int) -> None:
        self._size, self.n_seen = size, 0
        self.scores, self.places = np.empty(0), np.empty(0, dtype=np.intp)
        self.rows: pl.DataFrame | None = None

    def add(self, scores: NDArray[np.float64], rows: pl.DataFrame | None) -> None:
        """Take in the next rows; O(size + rows) memory."""
        is_full = len(self.scores) == self._size
        # A later row of equal score is no better.
        better = np.flatnonzero(scores > self.scores[-1]) if is_full else np.arange(len(scores))
        places = np.concatenate([self.places, self.n_seen + better])
        self.n_seen += len(scores)
        found = np.concatenate([self.scores, scores[better]])
        order = np.lexsort((places, -found))[: self._size]
        self.scores, self.places = found[order], places[order]
        if rows is not None:
            kept = rows[better]
            self.rows = (kept if self.rows is None else pl.concat([self.rows, kept]))[order]


def score_rows(
    content: Model,
    data: TablePlace,
    out: Path,
    settings: ScoreSettings,
    text: TextSettings = DETECTED,
) -> Scoring:
    """Score every row of a file of any size into a new file, row order kept.

    Parquet or CSV by its suffix. Columns: those to be carried over (or ``row``, counted from 1),
    those of `score_columns` with what each row is called (``called_rare``, or ``level``) before the
    last of them, `Model.unlike_training`, and why rows are called rare (`explainer_of`), as
    `settings` ask for. With ``settings.top`` memory holds as many scores (`ScoreWriter.write`).
    Where ``settings.strict`` refuses rows (`refuse_drift`), `out` is not touched.
    """
    inputs = {"the file to be scored": data}
    check_output(out, setting("out"), True, inputs, suffixes=TABLE_SUFFIXES)
    settings = replace(settings, id_columns=tuple(dict.fromkeys(settings.id_columns)))
    _check_called(settings, content.decision)
    file, seen = open_table(data, text, one_pass=True), content.new_summary()
    if settings.threshold is not None:
        words = f"score > {settings.threshold:g}"
        content = in_step(content.with_thresholds(settings.threshold), words)
    explain: Explain | None = None
    if settings.explain is not None:
        with content.naming_file():
            explain = content.naming_file()(explainer_of(content, settings.explain))
    writer = ScoreWriter(content.decision, settings, explain)
    for name in settings.id_columns:
        _check_id(name, content, settings, file, out)
    with replacing(out) as temporary:
        batches = content.score_batches(file, settings.id_columns, seen, explain is not None)
        n_called = writer.write(_parts(content, batches, seen, settings.unlike), temporary)
        if not seen.n_rows:
            raise no_rows(data)
        rate = threshold = None
        if settings.top is None and content.has_rare_class:
            threshold = content.threshold
            rate = alert_rate(content, int(n_called[1]), seen.n_rows)
        drift = drift_of(seen, rate)
        if settings.strict:
            refuse_drift(drift, str(data))
    named = {name: int(n) for name, n in zip(content.decision.names, n_called, strict=True)}
    notes = [_NO_CASES] if explain is not None and content.cases is None else []
    return Scoring(seen.n_rows, named, threshold, writer.sentence(n_called), drift, notes)


def _check_called(settings: ScoreSettings, decision: Decision) -> None:
    """Raise `InputError` where settings contradict each other or the model's decision."""
    top, threshold = settings.top, settings.threshold
    if settings.alerts_only:
        refuse_levels(decision, setting("alerts_only"), "Leave it out, and sort the scores.")
    if top is None and threshold is None:
        return
    if top is not None and threshold is not None:
        raise ErrorKind.COMBINATION.error(
            f"{setting('top')} and {setting('threshold')} both set the rows called rare.",
            "Give one of them.",
        )
    option = setting("threshold") if top is None else setting("top")
    remedy = "Leave it out: a row's level is between the model's thresholds."
    refuse_levels(decision, option, remedy)
    if top is not None and top < 1:
        raise ErrorKind.SETTING.error(
            f"{setting('top', top)} is not a number of rows.", "Give 1 or more."
        )
    if threshold is not None and not np.isfinite(threshold):
        raise ErrorKind.SETTING.error(
            f"{setting('threshold', threshold)} is not a score.", "Give a finite number."
        )


def _check_id(
    name: str, content: Model, settings: ScoreSettings, file: TableFile | SvmlightFile, out: Path
) -> None:
    """Raise `InputError` where a column to carry over cannot stand in `out`."""
    file = named_columns(file, [name], "id_column")
    classes = np.ones((1, len(content.rare_classes))) if content.rare_classes else None
    ours = [column.name for column in score_columns(content, np.zeros(1), classes)]
    reasons = () if settings.explain is None else told_columns(content, settings.explain)
    if name in (*ours, content.decision.column, _UNLIKE, *reasons):
        raise ErrorKind.COLUMN_NAMES.error(
            f"{setting('id_column', name)}: a column of the scores has that name.", ""
        )
    for first in islice(file.batches([name], batch_rows=1), 1):
        dtype = first[name].dtype
        no_csv = dtype.is_nested() or dtype in _NOT_IN_CSV
        if type_name(dtype) != str(dtype) or (out.suffix.lower() == ".csv" and no_csv):
            raise ErrorKind.CELL.error(
                f"{setting('id_column', name)}: cells of type {type_name(dtype)} cannot be "
                f"written to {out.suffix or out}.",
                "Choose a column of words, numbers or times; .parquet holds lists and bytes.",
                column=name,
            )


def _parts(
    content: Model, batches: Iterator[ScoredBatch], seen: InputSummary, with_unlike: bool
) -> Iterator[Part]:
    """Yield the columns of rows that do not depend on what they are called."""
    for scores, kept, rows, classes, unlike in batches:
        with content.naming_file():
            columns = score_columns(content, scores, classes)
        if with_unlike and unlike is not None:
            columns.append(unlike_column(unlike, len(scores)))
        own = kept.get_columns()
        if not own:
            last = seen.n_rows + 1
            own = [pl.Series("row", np.arange(last - len(scores), last))]
        yield Part(pl.DataFrame([*own, *columns]), rows)


def score_columns(
    model: Model, scores: NDArray[np.float64], classes: NDArray[np.float64] | None = None
) -> list[pl.Series]:
    """Return the columns of some scores, in the order of a file of scores.

    ``score`` (higher is rarer, or a higher level); ``probability`` of the rare class, or
    ``probability_LEVEL`` of each level, where the model has a calibration; ``sure`` for a hunt of
    which a case was held out (`ListOrder.sure`); for several rare `classes` a
    ``probability_CLASS`` of each, ``likely_class``, the most probable of them, and
    ``called_class``, by the thresholds of the classes; ``percentile`` (the share of the training
    majority, or of all training rows where the target has levels, with a lower score, in percent).
    """
    columns = [pl.Series("score", scores)]
    if isinstance(model.calibration, Calibration):
        columns.append(pl.Series("probability", model.calibration(scores)))
    if isinstance(model.facts.method, HuntFacts):
        sure = model.estimator.sure(scores)  # type: ignore[attr-defined]
        columns += [] if sure is None else [pl.Series("sure", sure)]
    if isinstance(model.calibration, LevelCalibration) and len(model.classes) <= _MOST_LEVELS:
        columns += _probabilities(model.classes, model.calibration(scores))
    if classes is not None:
        stated = model.stated_classes(scores, classes)
        columns += _probabilities(model.rare_classes, stated)
        of_place = pl.Series(model.rare_classes, dtype=pl.String)
        columns.append(of_place.gather(classes.argmax(axis=1)).alias("likely_class"))
        called = pl.Series(model.called_class(classes)).replace(-1, None)
        columns.append(of_place.gather(called).alias("called_class"))
    return [*columns, pl.Series("percentile", model.percentiles(scores))]


def unlike_column(cells: UnlikeCells, n_rows: int) -> pl.Series:
    """Return the lists of `Model.unlike_training` as a column."""
    rows = cells.rows()
    return pl.Series(_UNLIKE, [rows.get(k, []) for k in range(n_rows)], pl.List(pl.String))


def _probabilities(names: Sequence[str], values: NDArray[np.float64]) -> Iterator[pl.Series]:
    """Return the columns of probabilities of levels, or of several rare classes."""
    return map(pl.Series, (f"probability_{name}" for name in names), values.T)
