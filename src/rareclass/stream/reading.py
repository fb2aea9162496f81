"""Rows as they come: bounded batches, what becomes of each row, and rows that wait for a label."""

import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Self, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.schema import Schema, rejected_row
from rareclass.encoding.target import read_rare_or_rest
from rareclass.errors import ErrorKind, missing_column, setting
from rareclass.folds.dealing import check_days
from rareclass.machine import signals_noted
from rareclass.tables.cells import are_empty
from rareclass.tables.reading import (
    HOW_TO_WRITE_TIMES,
    not_a_time,
    read_moments,
    read_strings,
    way_of_times,
)
from rareclass.tables.text_reader import Batch, Rejected

if TYPE_CHECKING:
    from rareclass.tables.sources import Source

T = TypeVar("T")

MOST_ROWS = 16_384
# Records that are looked at for each of the first rows wanted.
_MOST_BAD = 100
_NOT_YET = np.empty(0)


class Interruption:
    """Signal to stop, if one came."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False
        self._before: dict[int, Callable[..., Any]] = {}

    @contextmanager
    def while_waiting(self) -> Iterator[None]:
        """Let the first signal raise `KeyboardInterrupt` within the block, and only there."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take over the signals that end a command; a second one does what it did before."""
        with signals_noted(self._note) as self._before:
            yield

    def _note(self, number: int, frame: FrameType | None) -> None:
        if self.signal is not None:
            self._before[number](number, frame)
        self.signal = number
        if self._waiting:
            raise KeyboardInterrupt


class BoundedReader:
    """Reads a source so that no batch goes past a multiple of any of `bounds` records."""

    def __init__(
        self, source: "Source", interruption: Interruption, bounds: tuple[int, ...], n_before: int
    ) -> None:
        self._source, self._interruption = source, interruption
        self._bounds, self._n_read = bounds, n_before
        self._ahead: deque[Batch | None] = deque()

    def read(self) -> Batch | None:
        """Return the next rows: None at the end, no rows where the source waits for more.

        Raises `KeyboardInterrupt` when a signal came.
        """
        return self._ahead.popleft() if self._ahead else self._read()

    def look_ahead(self, n_rows: int, patience: float) -> Batch:
        """Return the first rows as one batch; `read` will return them again.

        They are fewer where the stream ends, nearly all records are bad, or after `patience`
        seconds without a new row, but then one at least.
        """
        found, last_came = 0, monotonic()
        # Batches stay in memory: a bound where no record is good.
        most = self._n_read + _MOST_BAD * n_rows
        while found < n_rows and self._n_read < most:
            batch = self._read()
            if batch is None:
                self._ahead.append(None)
                break
            if batch.n_read:
                self._ahead.append(batch)
                found += batch.n_rows
                last_came = monotonic()
            elif found and monotonic() - last_came > patience:
                break
        return _joined([batch for batch in self._ahead if batch is not None], n_rows)

    def _read(self) -> Batch | None:
        limit = min(MOST_ROWS, *(bound - self._n_read % bound for bound in self._bounds))
        with self._interruption.while_waiting():
            batch = self._source.read(limit)
        if batch is not None:
            self._n_read += batch.n_read
        return batch


def _joined(batches: list[Batch], n_rows: int) -> Batch:
    """Join the first rows of several batches; only the cells of the result are of use."""
    if not batches:
        return Batch(pl.DataFrame(), np.empty(0, np.int64), "", [], 0, {})
    frames = [batch.frame for batch in batches if batch.frame.columns]
    return batches[0]._replace(
        frame=pl.concat(frames, how="diagonal_relaxed").head(n_rows) if frames else pl.DataFrame(),
        lines=np.concatenate([batch.lines for batch in batches])[:n_rows],
        rejected=[row for batch in batches for row in batch.rejected],
        n_read=sum(batch.n_read for batch in batches),
    )


@dataclass(slots=True, eq=False)
class HeldRow:
    """A row whose label is not known yet, encoded and scored as it was when it came.

    The score is NaN where rows of both classes had not been learned from by then.
    """

    vector: NDArray[np.float64] = field(default_factory=lambda: _NOT_YET)
    score: float = 0.0


class LastIds(Generic[T]):
    """Values of the last `capacity` ids; the oldest leaves for the newest. Each call is O(1).

    >>> known = LastIds[bool](capacity=2)
    >>> for number, name in enumerate("abc"):
    ...     known.add(name, number == 2)
    >>> "a" in known, known.take("c"), known.take("c"), len(known), known.n_dropped
    (False, True, None, 1, 1)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_dropped = 0
        self._values: OrderedDict[str, T] = OrderedDict()

    def __len__(self) -> int:
        return len(self._values)

    def __contains__(self, name: str) -> bool:
        return name in self._values

    def add(self, name: str, value: T) -> None:
        """Keep the value of an id in place of one before."""
        self._values.pop(name, None)
        self._values[name] = value
        if len(self._values) > self.capacity:
            self._values.popitem(last=False)
            self.n_dropped += 1

    def take(self, name: str) -> T | None:
        """Take out the value of an id; None when there is none."""
        return self._values.pop(name, None)

    def to_state(self) -> dict[str, Any]:
        """Return ids and values, the oldest first."""
        known = {"capacity": self.capacity, "n_dropped": self.n_dropped, "ids": list(self._values)}
        return known | {"values": list(self._values.values())}

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return what `to_state` described."""
        known = cls(int(state["capacity"]))
        known.n_dropped = int(state["n_dropped"])
        known._values.update(zip(state["ids"], state["values"], strict=True))
        return known


class WaitingRows(LastIds[HeldRow]):
    """Rows until their label comes: 8 bytes a feature of each, and about 300 more."""

    def to_state(self) -> dict[str, Any]:
        """Return the vectors end to end, with their widths."""
        rows = list(self._values.values())
        return super().to_state() | {
            "scores": np.array([row.score for row in rows], np.float64),
            "widths": np.array([len(row.vector) for row in rows], np.int64),
            "values": np.concatenate([_NOT_YET, *(row.vector for row in rows)]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> Self:
        """Return what `to_state` described."""
        vectors = np.split(state["values"], np.cumsum(state["widths"]))[:-1]
        of_rows = zip(vectors, state["scores"].tolist(), strict=True)
        return super().from_state(state | {"values": [HeldRow(v.copy(), s) for v, s in of_rows]})


class Memory:
    """Knowledge of ids: rows that wait for labels, labels that wait for rows, labels learned.

    Each is of at most `capacity` ids; the oldest leaves for the newest.
    """

    def __init__(self, capacity: int) -> None:
        self.held = WaitingRows(capacity)
        self.early = LastIds[bool](capacity)  # about 150 bytes each
        self.learned = LastIds[bool](capacity)


class Arrivals(NamedTuple):
    """The rows of a batch that reach the learner, in their order."""

    rows: Batch  # to be encoded
    places: NDArray[np.int64]  # of `rows` among all that reach the learner
    labels: NDArray[np.float64]  # of all those: 1 rare, 0 rest, nan not known
    numbers: NDArray[np.int64]  # of all those: the record's number in the stream, from 1
    ids: list[str | None]  # of `rows`
    waited_for: list[tuple[int, HeldRow]]  # place, and the row whose label came there
    held: list[tuple[int, HeldRow]]  # place, and the row that waits since then
    rejected: list[Rejected]
    days: NDArray[np.int64] | None = None  # of `rows`, where a column tells them


class DayColumn(NamedTuple):
    """The column that tells the day of a row, and how its cells are written: found once."""

    name: str
    day_format: str | None  # None: numbers of days

    def days_of(self, batch: Batch) -> pl.Series:
        """Return the day of each row, counted from 1970; null where its cell is no time.

        Times count by their own clock, whatever their zone is.
        """
        if self.name not in batch.frame.columns:
            return pl.repeat(None, batch.n_rows, dtype=pl.Int64, eager=True)
        times = read_moments(batch.frame[self.name], self.day_format)
        days = times.dt.date().to_physical() if self.day_format else times.floor()
        return days.cast(pl.Int64, strict=False)


def find_day_column(first: Batch, name: str) -> DayColumn:
    """Find how most of the first rows write their times.

    Raises `InputError` where they lack the column, hold no time, or count seconds.
    """
    if name not in first.frame.columns:
        raise missing_column(first.file, name, first.frame.columns)
    clock = DayColumn(name, way_of_times(first.frame[name]))
    days = clock.days_of(first).drop_nulls()
    if days.is_empty():
        row = int(first.frame[name].is_not_null().arg_max() or 0)
        cell, line = first.frame[name][row], int(first.lines[row])
        raise ErrorKind.CELL.error(
            f"Line {line}: column {name!r}: {not_a_time(cell)}.",
            f"Give {setting('time_column')} a column of dates. {HOW_TO_WRITE_TIMES}",
            column=name,
            row=line,
            value=cell,
        )
    if clock.day_format is None:
        check_days(days.to_numpy(), setting("time_column", name), name)
    return clock


def sort_arrivals(
    batch: Batch, schema: Schema, known: Memory, n_before: int, clock: DayColumn | None = None
) -> Arrivals:
    """Decide what becomes of each row of a batch: learned, held, a label waited for, or rejected.

    Rows are decided in their order, so that it does not matter where a batch begins or ends.
    `known` is brought up to date; vectors and scores of rows held from now on are yet to be set.
    A row whose `clock` cannot be read is rejected, unless it brings a label alone. O(cells).
    """
    checked, faults = schema.check(batch)
    days = None if clock is None else clock.days_of(batch)
    if clock is not None and days is not None:
        checked, more = _with_days(batch, checked, schema, clock.name, days)
        faults += more
    rejected = [*batch.rejected, *faults]
    lines = np.sort(np.concatenate([batch.lines, [row.line for row in batch.rejected]]))
    if schema.id_column is not None:
        numbers = n_before + 1 + np.searchsorted(lines, batch.lines)
        arrivals = _RowsById(batch, checked, schema, known, numbers).arrivals(rejected)
    else:
        numbers = n_before + 1 + np.searchsorted(lines, checked.lines)
        rejected.sort(key=lambda row: row.line)
        nobody: list[str | None] = [None] * checked.n_rows
        places, labels = np.arange(checked.n_rows), np.array(checked.frame[schema.target])
        arrivals = Arrivals(checked, places, labels, numbers, nobody, [], [], rejected)
    if days is None:
        return arrivals
    of_rows = np.searchsorted(batch.lines, arrivals.rows.lines)
    return arrivals._replace(days=days[of_rows].to_numpy())


def _with_days(
    batch: Batch, checked: Batch, schema: Schema, name: str, days: pl.Series
) -> tuple[Batch, list[Rejected]]:
    """Take out of checked rows those without a day."""
    is_bad = days.is_null().to_numpy()
    if schema.id_column is not None:
        is_bad = is_bad & _rows_with_cells(batch, schema)
    places = np.searchsorted(batch.lines, checked.lines)
    keep = ~is_bad[places]
    rejected = []
    for row in places[~keep].tolist():
        cell = batch.frame[name][row] if name in batch.frame.columns else None
        rejected.append(rejected_row(batch, row, f"column {name!r}: {not_a_time(cell)}"))
    return checked._replace(frame=checked.frame.filter(keep), lines=checked.lines[keep]), rejected


class _RowsById:
    """The rows of a batch whose ids tell which label belongs to which row."""

    def __init__(
        self,
        batch: Batch,
        checked: Batch,
        schema: Schema,
        known: Memory,
        numbers: NDArray[np.int64],
    ) -> None:
        self._batch, self._checked, self._known, self._numbers = batch, checked, known, numbers
        self._ids, self._labels = _ids_and_labels(batch, schema)
        self._has_cells = _rows_with_cells(batch, schema)
        self._encoded: list[int] = []
        self._reached: list[int] = []
        self._waited_for: list[tuple[int, HeldRow]] = []
        self._waiting: list[tuple[int, HeldRow]] = []
        self._bad: dict[int, str] = {}
        is_good = np.zeros(batch.n_rows, np.bool_)
        is_good[np.searchsorted(batch.lines, checked.lines)] = True
        for row, good in enumerate(is_good.tolist()):
            if math.isnan(self._labels[row]):
                self._take_without_label(row, good)
            else:
                self._take_with_label(row, good)

    def _take_without_label(self, row: int, good: bool) -> None:
        """Hold a row for its label, unless the label came before."""
        name, known = self._ids[row], self._known
        if good and name is not None and name in known.held:
            self._bad[row] = f"a row with id {name!r} is held already"
        elif good:
            early = None if name is None else known.early.take(name)
            if name is not None and early is not None:
                self._labels[row] = float(early)
                self._remember(row, name)
            elif name is not None:
                held = HeldRow()
                known.held.add(name, held)
                self._waiting.append((len(self._reached), held))
            self._learn(row)

    def _take_with_label(self, row: int, good: bool) -> None:
        """Learn from a row, from the one that waits for this label, or hold the label alone."""
        name, known = self._ids[row], self._known
        waited = None if name is None else known.held.take(name)
        if waited is not None:
            self._waited_for.append((len(self._reached), waited))
            self._reached.append(row)
        elif not good:
            return
        elif not self._has_cells[row]:
            self._hold_label(row, name)
            return
        else:
            self._learn(row)
        if name is not None:
            known.early.take(name)
            self._remember(row, name)

    def _hold_label(self, row: int, name: str | None) -> None:
        """Hold a label without a row, of an id that was neither learned from nor has a label."""
        if name is None:
            self._bad[row] = "a label without a row: its id is empty"
        elif name in self._known.learned:
            self._bad[row] = f"a label without a row: that with id {name!r} has its label already"
        else:
            if name in self._known.early:
                self._bad[row] = f"a label of id {name!r} is held already, for the row to come"
            self._known.early.add(name, bool(self._labels[row] == 1.0))

    def _learn(self, row: int) -> None:
        self._encoded.append(row)
        self._reached.append(row)

    def _remember(self, row: int, name: str) -> None:
        """Remember the label that a row is learned with."""
        self._known.learned.add(name, bool(self._labels[row] == 1.0))

    def arrivals(self, rejected: list[Rejected]) -> Arrivals:
        """Return what became of the rows; `rejected` are those that could not be read."""
        batch, checked, encoded, reached = self._batch, self._checked, self._encoded, self._reached
        # A row that brings a label waited for is known by its id: its own cells do not matter.
        alone = {*reached} - {*encoded}
        of_known = {int(batch.lines[row]) for row in alone}
        rejected = [each for each in rejected if each.line not in of_known]
        rejected += [rejected_row(batch, row, reason) for row, reason in self._bad.items()]
        rejected.sort(key=lambda row: row.line)
        if len(encoded) < checked.n_rows:
            which = np.searchsorted(checked.lines, batch.lines[encoded])
            checked = checked._replace(frame=checked.frame[which], lines=checked.lines[which])
        return Arrivals(
            rows=checked,
            places=np.searchsorted(np.array(reached, np.int64), np.array(encoded, np.int64)),
            labels=self._labels[reached],
            numbers=self._numbers[reached],
            ids=[self._ids[row] for row in encoded],
            waited_for=self._waited_for,
            held=self._waiting,
            rejected=rejected,
        )


def _ids_and_labels(batch: Batch, schema: Schema) -> tuple[list[str | None], NDArray[np.float64]]:
    """Read ids and labels of all rows: rows with bad features may still bring a label."""
    ids: list[str | None] = [None] * batch.n_rows
    labels = np.full(batch.n_rows, np.nan)
    if schema.id_column in batch.frame.columns:
        ids = read_strings(batch.frame[schema.id_column]).to_list()
    if schema.target in batch.frame.columns:
        read = read_rare_or_rest(batch.frame[schema.target], schema.positive)
        labels = read.to_numpy(writable=True)
    return ids, labels


def _rows_with_cells(batch: Batch, schema: Schema) -> NDArray[np.bool_]:
    """Say of each row whether it has a cell to learn from."""
    found = np.zeros(batch.n_rows, np.bool_)
    for cells in batch.frame.select(set(schema.features) & set(batch.frame.columns)):
        found |= ~are_empty(cells).to_numpy()
    return found
