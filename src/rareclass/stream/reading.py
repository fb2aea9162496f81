"""Batches that end where reports and checkpoints are due, or where the process is to stop."""

import signal
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from rareclass.tables.batch import Batch

if TYPE_CHECKING:
    from rareclass.tables.sources import Source

MOST_ROWS = 16_384
# Records that are looked at for each of the first rows wanted.
_MOST_BAD = 100


class Interruption:
    """Whether the process was asked to stop."""

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    @contextmanager
    def while_waiting(self) -> Iterator[None]:
        """Within the block, and only there, the first signal raises `KeyboardInterrupt`."""
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
        """Return the first rows as one batch, without taking them from those to be read.

        Fewer where the stream ends, nearly all records are bad, or after `patience` seconds without
        a new row, but then one at least.
        """
        found, last_came = 0, monotonic()
        # All of them stay in memory: where none is good, no more are looked at than that.
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
    """The first rows of several batches as one; only its cells are of use."""
    if not batches:
        return Batch({}, np.empty(0, np.int64), "", [], 0, {})
    names = dict.fromkeys(name for batch in batches for name in batch.columns)
    columns = {
        name: np.concatenate([_cells(batch, name) for batch in batches])[:n_rows] for name in names
    }
    first = batches[0]
    return first._replace(
        columns=columns,
        lines=np.concatenate([batch.lines for batch in batches])[:n_rows],
        rejected=[row for batch in batches for row in batch.rejected],
        n_read=sum(batch.n_read for batch in batches),
    )


def _cells(batch: Batch, name: str) -> Any:
    if name in batch.columns:
        return batch.columns[name]
    return np.full(batch.n_rows, None, object)
