"""Rows as they come: bounded batches, and what becomes of each row by its cells."""

import datetime as dt
import math
import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.schema import Schema, rejected_row
from rareclass.encoding.target import read_rare_or_rest
from rareclass.errors import ErrorKind, InputError, column_hint
from rareclass.model.threshold import check_days
from rareclass.stream.threshold import NO_DAY
from rareclass.stream.waiting_rows import HeldRow, LearnedLabels, WaitingRows
from rareclass.tables.batch import Batch, Rejected
from rareclass.tables.cells import is_empty
from rareclass.tables.reading import read_words

if TYPE_CHECKING:
    from rareclass.tables.sources import Source

MOST_ROWS = 16_384
# Records that are looked at for each of the first rows wanted.
_MOST_BAD = 100
_EPOCH = dt.date(1970, 1, 1).toordinal()
_LARGEST_DAY = 2.0**53
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
        return Batch({}, np.empty(0, np.int64), "", [], 0, {})
    names = dict.fromkeys(name for batch in batches for name in batch.columns)
    columns = {
        name: np.concatenate(
            [batch.columns.get(name, np.full(batch.n_rows, None, object)) for batch in batches]
        )[:n_rows]
        for name in names
    }
    first = batches[0]
    return first._replace(
        columns=columns,
        lines=np.concatenate([batch.lines for batch in batches])[:n_rows],
        rejected=[row for batch in batches for row in batch.rejected],
        n_read=sum(batch.n_read for batch in batches),
    )


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
    contradicted: list[Rejected]  # whose id had another label before


def sort_arrivals(
    batch: Batch, schema: Schema, held: WaitingRows, learned: LearnedLabels, n_before: int
) -> Arrivals:
    """Decide what becomes of each row of a batch: learned, held, a label waited for, or rejected.

    Rows are decided in their order, so that it does not matter where a batch begins or ends. `held`
    and `learned` are brought up to date; vectors and scores of rows held from now on are yet to be
    set. O(cells).
    """
    checked, faults = schema.check(batch)
    rejected = [*batch.rejected, *faults]
    lines = np.sort(np.concatenate([batch.lines, [row.line for row in batch.rejected]]))
    if schema.id_column is None:
        numbers = n_before + 1 + np.searchsorted(lines, checked.lines)
        places = np.arange(checked.n_rows)
        rejected.sort(key=lambda row: row.line)
        nobody: list[str | None] = [None] * checked.n_rows
        labels = checked.columns[schema.target]
        return Arrivals(checked, places, labels, numbers, nobody, [], [], rejected, [])
    numbers = n_before + 1 + np.searchsorted(lines, batch.lines)
    return _sorted_by_id(batch, checked, rejected, schema, held, learned, numbers)


def _sorted_by_id(
    batch: Batch,
    checked: Batch,
    rejected: list[Rejected],
    schema: Schema,
    held: WaitingRows,
    learned: LearnedLabels,
    numbers: NDArray[np.int64],
) -> Arrivals:
    ids, labels = _ids_and_labels(batch, schema)
    is_good = np.zeros(batch.n_rows, np.bool_)
    is_good[np.searchsorted(batch.lines, checked.lines)] = True
    features = [batch.columns[name] for name in schema.features if name in batch.columns]
    encoded: list[int] = []
    reached: list[int] = []
    waited_for: list[tuple[int, HeldRow]] = []
    waiting: list[tuple[int, HeldRow]] = []
    of_known: set[int] = set()
    bad: dict[int, str] = {}
    for row, (name, label, good) in enumerate(zip(ids, labels.tolist(), is_good, strict=True)):
        place = len(reached)
        if not math.isnan(label):
            known = None if name is None else held.take(name)
            if known is not None:
                waited_for.append((place, known))
                reached.append(row)
                of_known.add(int(batch.lines[row]))
                continue
            if good and all(is_empty(cells[row]) for cells in features):
                bad[row] = _why_alone(name)
        elif good and name is not None:
            if name in held:
                bad[row] = f"a row with id {name!r} is held already"
            else:
                waiting.append((place, held.hold(name, int(numbers[row]))))
        if good and row not in bad:
            encoded.append(row)
            reached.append(row)
    # A row that brings a label waited for is known by its id: its own cells do not matter.
    rejected = [each for each in rejected if each.line not in of_known]
    rejected += [rejected_row(batch, row, reason) for row, reason in bad.items()]
    rejected.sort(key=lambda row: row.line)
    return Arrivals(
        rows=_rows_at(checked, batch.lines[encoded]),
        places=np.searchsorted(np.array(reached, np.int64), np.array(encoded, np.int64)),
        labels=labels[reached],
        numbers=numbers[reached],
        ids=[ids[row] for row in encoded],
        waited_for=waited_for,
        held=waiting,
        rejected=rejected,
        contradicted=[
            rejected_row(batch, row, words)
            for row in sorted({*reached, *bad})
            if (words := _contradiction(learned, ids[row], labels[row], numbers[row], row in bad))
        ],
    )


def _contradiction(
    learned: LearnedLabels, name: str | None, label: float, number: int, is_bad: bool
) -> str | None:
    """Return what a label contradicts, in words; remember the label if its row is learned from."""
    if name is None or math.isnan(label):
        return None
    return (learned.contradiction if is_bad else learned.add)(name, label == 1.0, int(number))


def _why_alone(name: str | None) -> str:
    if name is None:
        return "a label without a row: its id is empty"
    return (
        f"a label without a row: no row with id {name!r} is held (it never came, has its label "
        "already, or was dropped for newer ones: see --hold)"
    )


def _ids_and_labels(batch: Batch, schema: Schema) -> tuple[list[str | None], NDArray[np.float64]]:
    """Read ids and labels of all rows: rows with bad features may still bring a label."""
    ids: list[str | None] = [None] * batch.n_rows
    labels = np.full(batch.n_rows, np.nan)
    if schema.id_column in batch.columns:
        ids = read_words(batch.columns[schema.id_column])[0].tolist()
    if schema.target in batch.columns:
        labels = read_rare_or_rest(batch.columns[schema.target], schema.positive)[0]
    return ids, labels


def _rows_at(batch: Batch, lines: NDArray[np.int64]) -> Batch:
    which = np.searchsorted(batch.lines, lines)
    if len(which) == batch.n_rows:
        return batch
    columns = {name: cells[which] for name, cells in batch.columns.items()}
    return batch._replace(columns=columns, lines=batch.lines[which])


class LabelNames(NamedTuple):
    """Names of the two classes in the source."""

    rare: str
    rest: str


def label_names(first: Batch, target: str, positive: str | None) -> LabelNames:
    """Return what the first rows of a stream call the rare class and the rest.

    >>> cells = {"y": np.array(["no", None], object)}
    >>> label_names(Batch(cells, np.array([2, 3]), "", [], 2, {}), "y", None)
    LabelNames(rare='yes', rest='no')
    """
    labels, _ = read_rare_or_rest(first.columns[target], positive)
    names: dict[float, str] = {}
    for label, cell in zip(labels.tolist(), first.columns[target].tolist(), strict=True):
        if label == label:
            names.setdefault(label, str(cell).strip())
    rest = names.get(0.0, "0" if positive is None else "rest")
    rare = positive if positive is not None else names.get(1.0)
    return LabelNames(rare or _OTHER_LABEL.get(rest.lower(), "1"), rest)


def days_of_cells(cells: NDArray[Any]) -> NDArray[np.int64]:
    """Return the number of the day of each cell; `NO_DAY` where the cell is empty or no time.

    Dates and text in ISO form, ``2026-03-01`` or ``2026-03-01T12:00``, count by their own clock,
    in days since 1970; a number is a number of days.

    >>> days_of_cells(np.array(["1970-01-02T23:59", "3.5", None], object)).tolist()[:2]
    [1, 3]
    """
    if cells.dtype != object:
        return np.array([_day_of_number(value) for value in cells.tolist()], np.int64)
    known: dict[Any, int] = {}
    found = np.empty(len(cells), np.int64)
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, (list, dict)):
            found[row] = NO_DAY
            continue
        is_date = isinstance(cell, str) and len(cell) > 10 and cell[4] == "-" and cell[10] in "T "
        key = cell[:10] if is_date else cell
        day = known.get(key)
        if day is None:
            day = known[key] = _day(key)
        found[row] = day
    return found


def _day(cell: Any) -> int:
    if isinstance(cell, dt.date):  # a datetime is one too
        return cell.toordinal() - _EPOCH
    if is_empty(cell) or isinstance(cell, bool):
        return NO_DAY
    if isinstance(cell, str):
        text = cell.strip()
        try:
            return dt.datetime.fromisoformat(text).toordinal() - _EPOCH
        except ValueError:
            pass
    try:
        return _day_of_number(float(cell))
    except (TypeError, ValueError):
        return NO_DAY


def _day_of_number(value: float) -> int:
    return math.floor(value) if abs(value) < _LARGEST_DAY else NO_DAY


def check_times(first: Batch, column: str) -> None:
    """Raise `InputError` where the first rows lack the column, hold no times, or count seconds."""
    if column not in first.columns:
        hint = column_hint(column, first.columns, "--time")
        message = f"{first.file} has no column {column!r}."
        raise InputError(message, hint, ErrorKind.MISSING_COLUMN, column=column)
    cells = first.columns[column]
    days = days_of_cells(cells)
    for row in np.flatnonzero(days == NO_DAY).tolist():
        cell, line = plain_cell(cells[row]), int(first.lines[row])
        if not is_empty(cell):
            raise InputError(
                f"Line {line}: column {column!r}: {cell!r} is no time.",
                "Give --time a column of dates, such as 2026-03-01 or 2026-03-01T12:00.",
                ErrorKind.CELL,
                column=column,
                row=line,
                value=cell,
            )
    known = days != NO_DAY
    if all(_is_number(cell) for cell in cells[known].tolist()):
        check_days(days[known], f"--time {column}")


def _is_number(cell: Any) -> bool:
    try:
        float(cell)
    except (TypeError, ValueError):
        return False
    return True


def plain_cell(cell: Any) -> Any:
    """Return a cell as JSON can write it."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, float) and cell != cell:
        return None
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)
