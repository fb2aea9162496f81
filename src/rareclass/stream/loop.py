"""The loop over a stream: read, score, learn, report, save."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rareclass.encoding.schema import find_schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import ErrorKind, InputError, counted, no_rows, setting
from rareclass.metrics.column_drift import ColumnShift
from rareclass.model.targets import stream_target
from rareclass.stored import plain_data
from rareclass.stream.drift import (
    BestWindows,
    ColumnCounts,
    DriftAlarm,
    Fall,
    Window,
    WindowMeasures,
    segment_size,
)
from rareclass.stream.log import LOG_SCHEMA, SCORES_SCHEMA, FileMark, ParquetParts
from rareclass.stream.options import StreamOptions
from rareclass.stream.reading import BoundedReader, Interruption, Memory, find_day_column
from rareclass.stream.state import (
    Counters,
    LoadedCheckpoint,
    SavedStream,
    StreamState,
    load_newest,
    save_checkpoint,
    sound_state,
)
from rareclass.tables import TextSettings, columns_fault
from rareclass.tables.jsonl import NAMING_ROWS
from rareclass.tables.sources import open_source
from rareclass.tables.text_reader import Batch, Rejected

if TYPE_CHECKING:
    from rareclass.online.mixture import MemberStanding

# Rows that the kinds of the columns are found from.
FIRST_ROWS = 1000
# With --follow: seconds without a row after which the first rows are enough to begin with, and
# after which the state is saved though no checkpoint is due.
PATIENCE = 5.0
# With --strict: share of the recent cells of a column that may lie outside of what was seen.
MOST_OUTSIDE = 0.10
# Scores of rows without a label that are kept in memory before they go to disk.
_MOST_WAITING = 200_000


class StreamReport(NamedTuple):
    """Counts and measures at a row of the stream."""

    counters: Counters  # a copy
    held: int  # rows that wait for a label
    dropped: int  # that waited too long
    early_labels: int  # labels that wait for their row
    early_labels_dropped: int
    rejected: int
    features: int  # columns of the learner
    measures: WindowMeasures
    rows_per_second: float  # since the report before
    moved: list[ColumnShift] = []  # noqa: RUF012 (never changed)
    falls: list[Fall] = []  # noqa: RUF012
    alerts: int = 0
    resets: int = 0  # how often steps were made long again
    last_reset: int | None = None  # records when they were last
    members: "list[MemberStanding]" = []  # noqa: RUF012

    def as_plain_data(self) -> dict[str, Any]:
        """Return the report as dictionaries and numbers."""
        plain = plain_data(self)
        return plain.pop("counters") | plain


class Event(NamedTuple):
    """Something that whoever watches may want to show."""

    kind: Literal["note", "went on", "batch", "report", "saved", "waiting"]
    rows: int
    report: StreamReport | None = None
    text: str = ""


class StreamLoop:
    """A stream that is learned from, in a claimed folder; `has_begun` once columns are known."""

    state: StreamState

    def __init__(self, options: StreamOptions, folder: Path, interruption: Interruption) -> None:
        self.options, self.folder, self._interruption = options, folder, interruption
        self.has_begun = False
        self._log = ParquetParts(folder / "log", LOG_SCHEMA)
        self._scores = ParquetParts(folder / "scores", SCORES_SCHEMA)
        self._saved_rows = -1
        self._in_hand = False
        self._reported: StreamReport | None = None
        self._last_rate = (0, monotonic())

    def run(self) -> Iterator[Event]:
        """Go through the stream, from the last checkpoint if there is one, and yield events.

        The loop ends at the end of the source or when a signal came; the last "saved" says where a
        restart goes on.

        Raises `InputError` for anything wrong with options, source or folder; more rejected rows
        than allowed. What was learned before is saved.
        """
        error = None
        try:
            loaded = load_newest(self.folder)
            yield from self._begin() if loaded is None else self._go_on(loaded)
        except (KeyboardInterrupt, InputError) as stop:
            if self._in_hand:  # what was half learned must not be saved
                raise
            error = stop if isinstance(stop, InputError) else None
        if self._has_unsaved():
            yield self._save()
        if error is not None:
            raise error

    def report(self) -> StreamReport:
        """Return counts and measures as they are now; the rate is since the last row of the log."""
        state, known, options = self.state, self.state.saved, self.options
        rows_before, then = self._last_rate
        begun = state.learner.has_begun
        return StreamReport(
            counters=replace(known.counters),
            held=len(known.ids.held),
            dropped=known.ids.held.n_dropped,
            early_labels=len(known.ids.early),
            early_labels_dropped=known.ids.early.n_dropped,
            rejected=state.rejected.mark.n_rows,
            features=known.encoder.n_features,
            measures=known.window.measures(),
            rows_per_second=(known.counters.rows - rows_before) / max(monotonic() - then, 1e-9),
            moved=known.drift.moves(known.encoder),
            falls=known.best.falls(known.window),
            alerts=0 if state.alerts is None else state.alerts.mark.n_rows,
            resets=0 if known.alarm is None else known.alarm.count,
            last_reset=None if known.alarm is None else known.alarm.last,
            members=state.learner.standing(options.window, options.top) if begun else [],
        )

    def close(self) -> None:
        """Close the files that are open."""
        for file in self.state.files if self.has_begun else ():
            file.close()

    def _go_on(self, loaded: LoadedCheckpoint) -> Iterator[Event]:
        """Go on from a checkpoint: rows and files behind it are taken back."""
        saved, options = loaded.state, self.options
        n_before, n_reported = saved.counters.rows, saved.counters.reported
        with sound_state(loaded.path):
            options.check_same(saved.options, self.folder)
        with self._reading(saved.position, saved.columns, n_before) as reader:
            if options.time_column is not None and saved.clock is None:
                first = reader.look_ahead(FIRST_ROWS, PATIENCE)
                if first.n_rows:
                    saved.clock = find_day_column(first, options.time_column)
            for path in loaded.damaged:
                path.unlink()
                note = f"{path.name} was damaged and removed: going on from the one before."
                yield Event("note", n_before, text=note)
            self._log.forget_after(n_reported)
            self._scores.forget_after(n_before)
            with sound_state(loaded.path):
                self.state = StreamState(saved, self.folder, options)
            self.has_begun, self._saved_rows = True, n_before
            yield Event("went on", n_before)
            if self.state.alerts is not None and saved.alerts is None:
                yield self._save()  # at once: from here on their file is this stream's
            yield from self._learn_all(reader)

    def _begin(self) -> Iterator[Event]:
        """Begin a stream: its first rows say what the columns hold, for good."""
        yield Event("waiting", 0)
        columns: list[str] | None = None
        while True:
            with self._reading(None, columns, 0) as reader:
                first = reader.look_ahead(FIRST_ROWS, PATIENCE)
                if not self._lacks_target(first):
                    notes = self._find_columns(first, columns)
                    # At once: how many rows were there to find the columns from may be chance.
                    yield self._save()
                    yield from (Event("note", 0, text=note) for note in notes)
                    yield from self._learn_all(reader)
                    return
            columns = [*first.frame.columns, self.options.target]

    def _lacks_target(self, first: Batch) -> bool:
        """Return whether the first rows of JSON lines lack the target and others have it."""
        target = self.options.target
        unknown = columns_fault([], [target])
        if target in first.frame.columns or all(row.reason != unknown for row in first.rejected):
            return False
        if self.options.source == "-":
            raise ErrorKind.MISSING_COLUMN.error(
                f"The first {NAMING_ROWS:,} rows of the input lack {target!r}; others have it.",
                f'Write "{target}": null there: those rows name the columns.',
                column=target,
            )
        return True

    def _find_columns(self, first: Batch, columns: list[str] | None) -> tuple[str, ...]:
        """Start a state from the first rows; return notes on how columns are read."""
        options = self.options
        if not first.n_read:
            raise no_rows(options.source)
        schema = find_schema(
            first,
            options.target,
            id_column=options.id_column,
            drop=options.drop,
            keep=options.keep,
            categories=options.categories,
            positive=options.positive,
            time_column=options.time_column,
        )
        clock = None if options.time_column is None else find_day_column(first, options.time_column)
        encoder = OnlineEncoder(schema, options.max_categories, options.half_life, options.tails)
        saved = SavedStream(
            options=options.lasting(),
            target=stream_target(first.frame[options.target], options.positive),
            encoder=encoder,
            ids=Memory(options.hold),
            window=Window(options.window, options.top),
            rejected=FileMark(),
            drift=ColumnCounts(segment_size(options.window), options.half_life),
            best=BestWindows(),
            alarm=DriftAlarm() if options.on_drift == "reset" else None,
            clock=clock,
            columns=columns,
        )
        self.state = StreamState(saved, self.folder, options)
        for parts in (self._log, self._scores):
            parts.forget_after(-1)
        self.has_begun = True
        return schema.notes

    @contextmanager
    def _reading(
        self, position: dict[str, Any] | None, columns: list[str] | None, n_before: int
    ) -> Iterator[BoundedReader]:
        """Open the source at a position, `n_before` records from its beginning."""
        options = self.options
        with self._interruption.while_waiting():
            place = options.source, position, options.follow
            text = TextSettings(options.separator, options.encoding)
            source = open_source(*place, columns=columns, text=text)
        with closing(source):
            bounds = (options.report_every, options.every, segment_size(options.window))
            yield BoundedReader(source, self._interruption, bounds, n_before)

    def _learn_all(self, reader: BoundedReader) -> Iterator[Event]:
        options, counters = self.options, self.state.saved.counters
        self._check_limits()
        last_came = monotonic()
        self._last_rate = (counters.rows, last_came)
        while self._interruption.signal is None:
            batch = reader.read()
            if batch is None:
                break
            if not batch.n_read:
                yield Event("waiting", counters.rows)
                if monotonic() - last_came > PATIENCE and self._has_unsaved():
                    yield self._save()
                continue
            last_came = monotonic()
            self._take(batch)
            yield Event("batch", counters.rows)
            if counters.rows % options.report_every == 0:
                yield self._log_report()
            if counters.rows % options.every == 0:
                yield self._save()
            self._check_limits()
        else:
            return
        if counters.rows > counters.reported:  # rows after the last report
            yield self._log_report()
            yield self._save()
        self._check_limits()

    def _take(self, batch: Batch) -> None:
        """Learn from a batch; keep the scores of rows without a label."""
        self._in_hand = True  # the state is of no use until the batch is learned
        arrivals, scores = self.state.take(batch)
        which = np.flatnonzero(np.isnan(arrivals.labels[arrivals.places]))
        if len(which):
            places = arrivals.places[which]
            self._scores.add(
                {
                    "row": arrivals.numbers[places],
                    "id": [arrivals.ids[row] for row in which],
                    "score": scores[places],
                    "file": [arrivals.rows.file] * len(which),
                    "line": arrivals.rows.lines[which],
                }
            )
        if self._scores.n_waiting >= _MOST_WAITING:
            self._scores.write(self.state.saved.counters.rows)
        self._in_hand = False

    def _check_limits(self) -> None:
        """Raise `InputError` at too many bad rows or, with --strict, at drift."""
        options, rejected = self.options, self.state.rejected.mark
        report, self._reported = self._reported, None
        if options.max_rejected is not None and rejected.n_rows > options.max_rejected:
            file, line, reason, _ = rejected.last or Rejected("", 0, "", "")
            raise ErrorKind.ROWS.error(
                f"{counted(rejected.n_rows, 'row was', 'rows were')} rejected, "
                f"{setting('max_rejected')} "
                f"allows {options.max_rejected:,}. The last: {file}, line {line}: {reason}.",
                f"{self.state.rejected.path} has them all. Correct the source or allow more; the "
                "same command continues after them.",
            )
        if options.strict and report is not None and report.moved:
            worst = max(report.moved, key=lambda each: each.outside)
            if worst.outside > MOST_OUTSIDE:
                raise ErrorKind.REFUSED.error(
                    f"{worst.outside:.1%} of the last cells of column {worst.column!r} lie outside "
                    f"the range seen before row {report.counters.rows:,}, more than "
                    f"{MOST_OUTSIDE:.0%}.",
                    "Check whether the column still means the same. The rows so far are learned "
                    "and saved; the same command continues.",
                    column=worst.column,
                )

    def _log_report(self) -> Event:
        report, counters = self.report(), self.state.saved.counters
        row = report.as_plain_data() | report.measures._asdict() | {"time": datetime.now(UTC)}
        self._log.add({name: [value] for name, value in row.items()})
        counters.reported = counters.rows
        self._reported = report
        self._last_rate = (counters.rows, monotonic())
        return Event("report", counters.rows, report)

    def _has_unsaved(self) -> bool:
        return self.has_begun and self.state.saved.counters.rows > self._saved_rows

    def _save(self) -> Event:
        """Write all files, the checkpoint last: only the checkpoint says how far they count."""
        rows = self.state.saved.counters.rows
        for file in self.state.files:
            file.sync()
        # Two checkpoints may stand at one row, the second one with the last report: a part of the
        # log is named after its own last row, so that it never takes the place of another.
        self._log.write(self.state.saved.counters.reported)
        self._scores.write(rows)
        save_checkpoint(self.folder, rows, self.state.snapshot())
        self._saved_rows = rows
        return Event("saved", rows)
