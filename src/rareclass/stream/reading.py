"""Rows as they come: bounded batches, what becomes of each row, and rows that wait for a label."""

import datetime as dt
import math
import signal
import threading
from collections import OrderedDict, deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.schema import Schema, rejected_row
from rareclass.encoding.target import Positive, positives, read_rare_or_rest
from rareclass.tables.batch import Batch, Rejected
from rareclass.tables.cells import are_empty
from rareclass.tables.reading import read_strings

if TYPE_CHECKING:
    from rareclass.tables.sources import Source

MOST_ROWS = 16_384
# Records that are looked at for each of the first rows wanted.
_MOST_BAD = 100
_NOT_YET = np.empty(0)
_OTHER_LABEL = {"0": "1", "-1": "1", "false": "true", "no": "yes"}


class Interruption:
    """Signal to stop, if one came."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

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
        """Take over SIGINT and SIGTERM within the block; a second one raises at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may
            return
        before: dict[int, Any] = {}
        try:
            for number in (int(signal.SIGINT), int(signal.SIGTERM)):
                before[number] = signal.signal(number, self._note)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again = self.signal is not None
        self.signal = number
        if again or self._waiting:
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
        return Batch.of_none("", {})
    frames = [batch.frame for batch in batches if batch.frame.columns]
    return batches[0]._replace(
        frame=pl.concat(frames, how="diagonal_relaxed").head(n_rows) if frames else pl.DataFrame(),
        lines=np.concatenate([batch.lines for batch in batches])[:n_rows],
        rejected=[row for batch in batches for row in batch.rejected],
        n_read=sum(batch.n_read for batch in batches),
    )


class HeldRow:
    """A row whose label is not known yet, encoded and scored as it was when it came."""

    __slots__ = ("arrival", "score", "vector")

    def __init__(
        self, arrival: int, vector: NDArray[np.float64] = _NOT_YET, score: float = 0.0
    ) -> None:
        self.arrival, self.vector, self.score = arrival, vector, score


class WaitingRows:
    """Rows by id until their label comes; when there are too many, the oldest is dropped.

    Memory is 8 bytes a feature of each of at most `capacity` rows, and about 300 more.

    Every operation costs O(1).

    >>> held = WaitingRows(capacity=2)
    >>> for number, name in enumerate("abc", start=1):
    ...     _ = held.hold(name, number)
    >>> "a" in held, held.take("b").arrival, len(held), held.n_dropped
    (False, 2, 1, 1)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_dropped = 0
        self._rows: OrderedDict[str, HeldRow] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def hold(self, name: str, arrival: int) -> HeldRow:
        """Hold a row under an id that is not held; its vector and score may be set later.

        Raises `ValueError` when a row with this id waits already.
        """
        if name in self._rows:
            raise ValueError(f"id {name!r} is held already.")
        if len(self._rows) >= self.capacity:
            self._rows.popitem(last=False)
            self.n_dropped += 1
        row = self._rows[name] = HeldRow(arrival)
        return row

    def take(self, name: str) -> HeldRow | None:
        """Take out the row with this id; None when there is none."""
        return self._rows.pop(name, None)

    def to_state(self) -> dict[str, Any]:
        """Return ids, vectors and scores as columns, oldest row first."""
        rows = self._rows.values()
        vectors = [row.vector for row in rows]
        return {
            "capacity": self.capacity,
            "n_dropped": self.n_dropped,
            "ids": list(self._rows),
            "arrivals": np.array([row.arrival for row in rows], np.int64),
            "scores": np.array([row.score for row in rows], np.float64),
            "widths": np.array([len(vector) for vector in vectors], np.int64),
            "values": np.concatenate([_NOT_YET, *vectors]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "WaitingRows":
        """Return the rows that `to_state` described."""
        held = cls(int(state["capacity"]))
        held.n_dropped = int(state["n_dropped"])
        ends = np.cumsum(state["widths"]).tolist()
        starts = [0, *ends]
        columns = (state["ids"], state["arrivals"].tolist(), state["scores"].tolist(), starts, ends)
        for name, arrival, score, start, end in zip(*columns, strict=False):
            held._rows[name] = HeldRow(arrival, np.array(state["values"][start:end]), score)
        return held


class IdLabels:
    """Labels of the last `capacity` ids: of rows learned from, or of rows that are yet to come.

    About 150 bytes an id; every operation costs O(1).

    >>> early = IdLabels(capacity=2)
    >>> early.add("a", rare=True)
    >>> "a" in early, early.take("a"), early.take("a")
    (True, True, None)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_dropped = 0
        self._labels: OrderedDict[str, bool] = OrderedDict()

    def __len__(self) -> int:
        return len(self._labels)

    def __contains__(self, name: str) -> bool:
        return name in self._labels

    def add(self, name: str, rare: bool) -> None:
        """Remember the label of an id in place of one before; the oldest id leaves."""
        self._labels.pop(name, None)
        self._labels[name] = rare
        if len(self._labels) > self.capacity:
            self._labels.popitem(last=False)
            self.n_dropped += 1

    def take(self, name: str) -> bool | None:
        """Take out the label of an id: whether it is rare; None when there is none."""
        return self._labels.pop(name, None)

    def to_state(self) -> dict[str, Any]:
        """Return ids and labels as columns, oldest first."""
        return {
            "capacity": self.capacity,
            "n_dropped": self.n_dropped,
            "ids": list(self._labels),
            "rare": np.array(list(self._labels.values()), np.bool_),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "IdLabels":
        """Return the labels that `to_state` described."""
        known = cls(int(state["capacity"]))
        known.n_dropped = int(state["n_dropped"])
        known._labels.update(zip(state["ids"], state["rare"].tolist(), strict=True))
        return known


@dataclass
class Memory:
    """Knowledge of ids: rows that wait for labels, labels that wait for rows, labels learned.

    Each is of at most `capacity` ids; the oldest leaves for the newest.
    """

    held: WaitingRows
    early: IdLabels
    learned: IdLabels

    @classmethod
    def empty(cls, capacity: int) -> "Memory":
        """Return a memory of nothing."""
        return cls(WaitingRows(capacity), IdLabels(capacity), IdLabels(capacity))


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


def sort_arrivals(batch: Batch, schema: Schema, known: Memory, n_before: int) -> Arrivals:
    """Decide what becomes of each row of a batch: learned, held, a label waited for, or rejected.

    Rows are decided in their order, so that it does not matter where a batch begins or ends.
    `known` is brought up to date; vectors and scores of rows held from now on are yet to be set.
    O(cells).
    """
    checked, faults = schema.check(batch)
    rejected = [*batch.rejected, *faults]
    lines = np.sort(np.concatenate([batch.lines, [row.line for row in batch.rejected]]))
    if schema.id_column is not None:
        numbers = n_before + 1 + np.searchsorted(lines, batch.lines)
        return _RowsById(batch, checked, schema, known, numbers).arrivals(rejected)
    numbers = n_before + 1 + np.searchsorted(lines, checked.lines)
    rejected.sort(key=lambda row: row.line)
    nobody: list[str | None] = [None] * checked.n_rows
    places, labels = np.arange(checked.n_rows), np.array(checked.frame[schema.target])
    return Arrivals(checked, places, labels, numbers, nobody, [], [], rejected)


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
                held = known.held.hold(name, int(self._numbers[row]))
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
        labels = np.array(read_rare_or_rest(batch.frame[schema.target], schema.positive).values)
    return ids, labels


def _rows_with_cells(batch: Batch, schema: Schema) -> NDArray[np.bool_]:
    """Say of each row whether it has a cell to learn from."""
    found = np.zeros(batch.n_rows, np.bool_)
    for cells in batch.frame.select(set(schema.features) & set(batch.frame.columns)):
        found |= ~are_empty(cells).to_numpy()
    return found


class LabelNames(NamedTuple):
    """Names of the two classes in the source."""

    rare: str
    rest: str


def label_names(first: Batch, target: str, positive: Positive) -> LabelNames:
    """Return what the first rows of a stream call the rare class and the rest.

    >>> cells = pl.DataFrame({"y": ["no", None]})
    >>> label_names(Batch(cells, np.array([2, 3]), "", [], 2, {}), "y", None)
    LabelNames(rare='yes', rest='no')
    """
    labels, _ = read_rare_or_rest(first.frame[target], positive)
    names: dict[float, str] = {}
    for label, cell in zip(labels.tolist(), first.frame[target], strict=True):
        if label == label:
            names.setdefault(label, str(cell).strip())
    named = positives(positive)
    rest = names.get(0.0, "rest" if named else "0")
    rare = " or ".join(named) or names.get(1.0)
    return LabelNames(rare or _OTHER_LABEL.get(rest.lower(), "1"), rest)


def plain_cell(cell: Any) -> Any:
    """Return a cell as JSON can write it."""
    if isinstance(cell, dt.date):
        return cell.isoformat()
    if isinstance(cell, float) and cell != cell:
        return None
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)
