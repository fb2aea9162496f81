"""The loop over a stream: read, score, learn, report, save."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from rareclass.encoding.schema import find_schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import InputError, column_hint, counted
from rareclass.metrics.column_drift import ColumnShift
from rareclass.stream.alerts import check_times
from rareclass.stream.arrivals import Arrivals, sort_arrivals
from rareclass.stream.best_windows import BestWindows, Fall
from rareclass.stream.checkpoint import load_newest, save_checkpoint, sound_state
from rareclass.stream.drift_alarm import DriftAlarm
from rareclass.stream.learners import make_learner, standings
from rareclass.stream.learning import learn
from rareclass.stream.log import log_parts, score_parts
from rareclass.stream.options import StreamOptions
from rareclass.stream.reading import BoundedReader, Interruption
from rareclass.stream.rejects import CONTRADICTED, RejectedFile
from rareclass.stream.state import (
    Counters,
    StreamState,
    alerts_of,
    from_checkpoint,
    label_names,
    new_drift,
    to_checkpoint,
)
from rareclass.stream.waiting_rows import LearnedLabels, WaitingRows
from rareclass.stream.window import Window, WindowMeasures
from rareclass.tables.batch import Batch, columns_fault
from rareclass.tables.sources import Source, open_source

if TYPE_CHECKING:
    from rareclass.online.mixture import Standing

# Rows that the kinds of the columns are found from.
FIRST_ROWS = 1000
# With --follow: seconds without a row after which what is there is enough to begin with, and after
# which what has been learned is saved though no checkpoint is due.
PATIENCE = 5.0
# With --strict: share of the recent cells of a column that may lie outside of what was seen.
MOST_OUTSIDE = 0.10
# Scores of rows without a label that are kept in memory before they go to disk.
_MOST_WAITING = 200_000


class Report(NamedTuple):
    """What is known at a row of the stream."""

    counters: Counters  # a copy
    held: int  # rows that wait for a label
    dropped: int  # that waited too long
    rejected: int
    contradicted: int
    features: int  # columns of the learner
    measures: WindowMeasures
    rows_per_second: float  # since the report before
    moved: list[ColumnShift] = []  # noqa: RUF012 (never changed)
    falls: list[Fall] = []  # noqa: RUF012
    alerts: int = 0
    resets: int = 0  # how often steps were made long again
    last_reset: int | None = None  # records when they were last
    members: "list[Standing]" = []  # noqa: RUF012


class Event(NamedTuple):
    """Something that whoever watches may want to show."""

    kind: Literal["note", "went on", "batch", "report", "saved", "waiting"]
    rows: int
    report: Report | None = None
    text: str = ""


class StreamLoop:
    """A stream that is learned from, in a claimed folder; has its state from the first event on."""

    state: StreamState

    def __init__(self, options: StreamOptions, folder: Path, interruption: Interruption) -> None:
        self.options, self.folder, self._interruption = options, folder, interruption
        self._log, self._scores = log_parts(folder), score_parts(folder)
        self._saved_rows = -1
        self._in_hand = False
        self._reported: Report | None = None
        self._last_rate = (0, monotonic())

    def run(self) -> Iterator[Event]:
        """Go through the stream, from the last checkpoint if there is one, and tell on the way.

        It ends at the end of the source or when a signal came; the last "saved" says where a
        restart goes on.

        Raises `InputError` for anything wrong with options, source or folder; more rejected rows
        than allowed. What was learned before is saved.
        """
        try:
            yield from self._begin_and_learn()
        except KeyboardInterrupt:
            if self._in_hand:  # a second signal: what was half learned must not be saved
                raise
        if hasattr(self, "state") and self.state.counters.rows > self._saved_rows:
            yield self._save()

    def report(self) -> Report:
        """Return what is known now; the rate is since the last row of the log."""
        state = self.state
        rows_before, then = self._last_rate
        return Report(
            counters=Counters(**vars(state.counters)),
            held=len(state.held),
            dropped=state.held.n_dropped,
            rejected=state.rejected.count,
            contradicted=state.contradicted.count,
            features=state.encoder.n_features,
            measures=state.window.measures(),
            rows_per_second=(state.counters.rows - rows_before) / max(monotonic() - then, 1e-9),
            moved=state.drift.moves(state.encoder),
            falls=state.best.falls(state.window),
            alerts=0 if state.alerts is None else state.alerts.count,
            resets=0 if state.alarm is None else state.alarm.count,
            last_reset=None if state.alarm is None else state.alarm.last,
            members=standings(state.learner, self.options.window, self.options.top),
        )

    def close(self) -> None:
        """Close what is open."""
        if hasattr(self, "state"):
            self.state.rejected.close()
            self.state.contradicted.close()
            if self.state.alerts is not None:
                self.state.alerts.close()

    # -- beginning ---------------------------------------------------------------------------

    def _begin_and_learn(self) -> Iterator[Event]:
        loaded = load_newest(self.folder)
        if loaded is None:
            yield from self._begin()
            return
        with sound_state(loaded.path):
            self.options.check_same(loaded.state["options"], self.folder)
            n_before = loaded.state["counters"]["rows"]
            n_reported = loaded.state["counters"]["reported"]
        with closing(self._open(loaded.state["position"], loaded.state["columns"])) as source:
            for path in loaded.damaged:
                path.unlink()
                note = f"{path.name} was damaged and removed: going on from the one before."
                yield Event("note", n_before, text=note)
            self._forget_after(n_before, n_reported)
            with sound_state(loaded.path):
                self.state = from_checkpoint(loaded.state, self.folder, self.options)
            self._saved_rows = n_before
            yield Event("went on", n_before)
            if self.state.alerts is not None and "alerts" not in loaded.state:
                yield self._save()  # at once: from here on their file is this stream's
            yield from self._learn_all(self._reader(source, n_before))

    def _begin(self) -> Iterator[Event]:
        yield Event("waiting", 0)
        columns: list[str] | None = None
        while True:
            with closing(self._open(None, columns)) as source:
                reader = self._reader(source, 0)
                first = reader.look_ahead(FIRST_ROWS, PATIENCE)
                if not self._lacks_target(first):
                    yield from self._found(first, columns)
                    yield from self._learn_all(reader)
                    return
            columns = [*first.columns, self.options.target]

    def _lacks_target(self, first: Batch) -> bool:
        """Whether the first object of JSON lines lacks the target and others have it.

        Its keys are the columns: the source is opened again with the target among them.
        """
        target = self.options.target
        unknown = columns_fault([], [target])
        if target in first.columns or all(row.reason != unknown for row in first.rejected):
            return False
        if self.options.source == "-":
            raise InputError(
                f"The first row of standard input has no {target!r}, others have.",
                f'Write "{target}": null there: the first row names the columns.',
            )
        return True

    def _found(self, first: Batch, columns: list[str] | None) -> Iterator[Event]:
        """Decide from the first rows what the columns hold, and keep that for good."""
        options = self.options
        if not first.n_read:
            raise InputError(f"{options.source} has no rows.", "Give a source with rows.")
        schema = find_schema(
            first,
            options.target,
            id_column=options.id_column,
            drop=options.drop,
            category=options.categories,
            positive=options.positive,
        )
        self._check_time_column(first)
        alerts = alerts_of(options, None)
        self._forget_after(-1, -1)
        self.state = StreamState(
            encoder=OnlineEncoder(schema, options.max_categories, options.half_life, options.tails),
            learner=make_learner(options.learner, options.parameters),
            held=WaitingRows(options.hold),
            window=Window(options.window, options.top),
            counters=Counters(),
            rejected=RejectedFile(self.folder),
            learned=LearnedLabels(options.hold),
            contradicted=RejectedFile(self.folder, name=CONTRADICTED),
            labels=label_names(first, options.target, options.positive),
            columns=columns,
            drift=new_drift(options),
            best=BestWindows(),
            alarm=DriftAlarm() if options.on_drift == "reset" else None,
            alerts=alerts,
        )
        # At once: how many rows were there to find it from may be chance.
        yield self._save()
        for note in schema.notes:
            yield Event("note", 0, text=note)

    def _check_time_column(self, first: Batch) -> None:
        name = self.options.time_column
        if name is None:
            return
        if name not in first.columns:
            hint = column_hint(name, first.columns, "--time")
            raise InputError(f"{first.file} has no column {name!r}.", hint)
        check_times(first.columns[name], first.lines, name)

    def _open(self, position: dict[str, Any] | None, columns: list[str] | None) -> Source:
        options = self.options
        with self._interruption.while_waiting():
            return open_source(
                options.source,
                position,
                options.follow,
                columns=columns,
                separator=options.separator,
                exact_columns=() if options.id_column is None else (options.id_column,),
            )

    def _reader(self, source: Source, n_before: int) -> BoundedReader:
        segment = (self.state.drift if hasattr(self, "state") else new_drift(self.options)).size
        bounds = (self.options.report_every, self.options.every, segment)
        return BoundedReader(source, self._interruption, bounds, n_before)

    def _forget_after(self, rows: int, reported: int) -> None:
        """Remove what was written after the checkpoint that is gone on from."""
        self._log.forget_after(reported)
        self._scores.forget_after(rows)

    # -- learning ----------------------------------------------------------------------------

    def _learn_all(self, reader: BoundedReader) -> Iterator[Event]:
        options, counters = self.options, self.state.counters
        self._check_rejected()
        last_came = monotonic()
        self._last_rate = (counters.rows, last_came)
        while self._interruption.signal is None:
            try:
                batch = reader.read()
            except InputError:
                if counters.rows > self._saved_rows:
                    yield self._save()
                raise
            if batch is None:
                break
            if not batch.n_read:
                yield Event("waiting", counters.rows)
                if monotonic() - last_came > PATIENCE and counters.rows > self._saved_rows:
                    yield self._save()
                continue
            last_came = monotonic()
            known = self.state.contradicted.count
            first = self._take(batch)
            if first is not None and not known:
                yield Event("note", counters.rows, text=f"{first}.")
            yield Event("batch", counters.rows)
            if counters.rows % options.report_every == 0:
                yield self._log_report()
            if counters.rows % options.every == 0:
                yield self._save()
            self._check_rejected()
            self._check_outside()
        else:
            return
        yield from self._last_report()
        self._check_outside()

    def _take(self, batch: Batch) -> str | None:
        """Learn from a batch; the state is of no use while that goes on.

        Returns what the first label says that contradicts an earlier one.
        """
        self._in_hand = True
        state, counters = self.state, self.state.counters
        arrivals = sort_arrivals(
            batch, state.encoder.schema, state.held, state.learned, counters.rows
        )
        scores, encoded = learn(state, arrivals)
        self._keep_scores(arrivals, scores)
        if state.alerts is not None:
            usual = state.drift.usual(state.encoder)
            state.alerts.take(
                arrivals,
                encoded,
                scores[arrivals.places],
                state.encoder.features,
                lambda row, weights: state.learner.raises(row, usual, weights),
            )
        state.rejected.add(arrivals.rejected)
        state.contradicted.add(arrivals.contradicted)
        labelled = ~np.isnan(arrivals.labels)
        counters.rows += batch.n_read
        if counters.rows % state.drift.size == 0:
            state.drift.end_segment(state.encoder)
            self._heed_drift()
        counters.labelled += int(labelled.sum())
        counters.rare += int((arrivals.labels == 1.0).sum())
        counters.unlabelled += int((~labelled).sum())
        state.position = batch.position
        self._in_hand = False
        return arrivals.contradicted[0].reason if arrivals.contradicted else None

    def _heed_drift(self) -> None:
        """At the end of a segment: where drift has begun, let the learner learn quickly again."""
        state = self.state
        if state.alarm is None or not hasattr(state.learner, "state_"):
            return
        moved, falls = state.drift.moves(state.encoder), state.best.falls(state.window)
        n_columns = len(state.encoder.schema.features)
        if state.alarm.rings(state.counters.rows, moved, falls, n_columns):
            state.learner.reset_steps()

    def _keep_scores(self, arrivals: Arrivals, scores: Any) -> None:
        of_rows = np.isnan(arrivals.labels[arrivals.places])
        if not of_rows.any():
            return
        places = arrivals.places[of_rows]
        which = np.flatnonzero(of_rows)
        self._scores.add(
            {
                "row": arrivals.numbers[places],
                "id": [arrivals.ids[row] for row in which],
                "score": scores[places],
                "file": [arrivals.rows.file] * len(which),
                "line": arrivals.rows.lines[of_rows],
            }
        )
        if self._scores.n_waiting >= _MOST_WAITING:
            self._scores.write(self.state.counters.rows + 1)

    def _check_rejected(self) -> None:
        """Stop at more bad rows than allowed, with what was learned saved."""
        most, rejected = self.options.max_rejected, self.state.rejected
        if most is None or rejected.count <= most or rejected.last is None:
            return
        if self.state.counters.rows > self._saved_rows:
            self._save()
        last = rejected.last
        raise InputError(
            f"{counted(rejected.count, 'row was', 'rows were')} rejected, --max-rejected allows "
            f"{most:,}. The last: {last.file}, line {last.line}: {last.reason}.",
            f"{rejected.path} has them all. Correct the source or allow more; the same command "
            "goes on after them.",
        )

    def _check_outside(self) -> None:
        """With --strict: stop at a report with too much of a column outside of what was seen."""
        report, self._reported = self._reported, None
        if not self.options.strict or report is None or not report.moved:
            return
        worst = max(report.moved, key=lambda each: each.outside)
        if worst.outside <= MOST_OUTSIDE:
            return
        if report.counters.rows > self._saved_rows:
            self._save()
        raise InputError(
            f"{worst.outside:.1%} of the last cells of column {worst.column!r} lie outside of what "
            f"was seen before row {report.counters.rows:,}, more than {MOST_OUTSIDE:.0%}.",
            "Look whether the column still means the same. What came so far is learned and saved; "
            "the same command goes on.",
        )

    # -- reports and checkpoints -------------------------------------------------------------

    def _log_report(self) -> Event:
        report, counters = self.report(), self.state.counters
        self._log.add(
            {
                name: [value]
                for name, value in {
                    **vars(counters),
                    **report.measures._asdict(),
                    "moved": [each._asdict() for each in report.moved],
                    "falls": [each._asdict() for each in report.falls],
                    "members": [each._asdict() for each in report.members],
                    "resets": report.resets,
                    "last_reset": report.last_reset,
                    "held": report.held,
                    "dropped": report.dropped,
                    "rejected": report.rejected,
                    "features": report.features,
                    "rows_per_second": report.rows_per_second,
                    "time": datetime.now(UTC),
                }.items()
            }
        )
        counters.reported = counters.rows
        self._reported = report
        self._last_rate = (counters.rows, monotonic())
        return Event("report", counters.rows, report)

    def _last_report(self) -> Iterator[Event]:
        """At the end of the source: a report of what came after the last one, if anything."""
        counters = self.state.counters
        if counters.rows > counters.reported:
            yield self._log_report()
            yield self._save()

    def _save(self) -> Event:
        """Write all there is, the checkpoint last: it alone says what counts."""
        rows = self.state.counters.rows
        self.state.rejected.sync()
        self.state.contradicted.sync()
        if self.state.alerts is not None:
            self.state.alerts.sync()
        # Two checkpoints may stand at one row, the second one with the last report: a part of the
        # log is named after its own last row, so that it never takes the place of another.
        self._log.write(self.state.counters.reported)
        self._scores.write(rows)
        save_checkpoint(self.folder, rows, to_checkpoint(self.state, self.options))
        self._saved_rows = rows
        return Event("saved", rows)
