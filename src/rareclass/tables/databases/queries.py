"""Queries: one that runs, its answer as a stream of rows, and its answer as a table."""

import hashlib
import weakref
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.machine import track
from rareclass.scratch_file import Scratch
from rareclass.tables.batch import ArrowSource, plain_batch, plain_schema, unique_names
from rareclass.tables.databases.drivers import Driver, Query, connect

if TYPE_CHECKING:
    import polars as pl

T = TypeVar("T")
# Seconds after which Ctrl-C is heeded at the latest.
_HEEDS_EVERY = 0.2


class RunningQuery:
    """The rows of a query, each once, while they come.

    The driver is asked in a thread, so that the next batch is on its way while the last one is
    worked on, and Ctrl-C is heeded while the database works. Memory holds two batches, of about
    16 MiB (PostgreSQL) or 65,536 rows.

    `schema` has plain types, and names that are told apart. Raises `InputError`, here or on
    reading, with the database's own words and without a password: when it cannot be reached, when
    it refuses the query, when the connection is lost, and for a column that cannot be read.
    """

    def __init__(self, query: Query, driver: Callable[[], Driver] | None = None) -> None:
        self._query, self._n_rows = query, 0
        self._connection = _Connection(query)
        self._closing = weakref.finalize(self, self._connection.close)
        self._first: pa.RecordBatch | None = None
        try:
            self._connection.open(driver)
            asked = self._connection.begin(lambda driver: driver.execute(query.sql))
            self._reader = self._connection.result(
                asked, f"{query.address or 'The database'} refuses the query", "Correct the query."
            )
            plain = plain_schema(self._reader.schema)
            if not plain.names:
                raise InputError(
                    f"{query} gives no columns.",
                    "Give one that begins with SELECT.",
                    ErrorKind.MISSING_COLUMN,
                )
            names = unique_names(str(query), list(plain.names))
            self.schema = pa.schema([f.with_name(n) for f, n in zip(plain, names, strict=True)])
            self._next = self._ask()
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows; it is closed at their end, and when no more are asked for.

        When only rows of the first batch were asked for, it can be begun again.
        """
        if self._first is None:
            self._first = self._read()
        if self._first is None:
            self.close()
            return
        yield self._first
        try:
            self._n_rows, self._first = self._first.num_rows, None
            while (batch := self._read()) is not None:
                yield batch
                self._n_rows += batch.num_rows
        finally:
            self.close()

    @property
    def is_closed(self) -> bool:
        """Say whether no more rows will come."""
        return not self._closing.alive

    def close(self) -> None:
        """End the query, and give the connection back."""
        self._closing()

    def _ask(self) -> "Future[Any]":
        reader = self._reader
        return self._connection.begin(lambda driver: next(reader, None))

    def _read(self) -> pa.RecordBatch | None:
        """Return the next batch with rows; None at the end."""
        while True:
            try:
                batch = self._connection.result(
                    self._next,
                    f"{self._query} broke off after {counted(self._n_rows, 'row')}",
                    "Run it again; nothing was kept of it.",
                    self.schema.names,
                )
            except BaseException:
                self.close()
                raise
            if batch is None:
                self._connection.is_done = True
                return None
            self._next = self._ask()
            if batch.num_rows:
                return plain_batch(batch, self.schema)


class _Connection:
    """A driver and the one thread that speaks with it."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._driver: Driver | None = None
        self._opened: Future[Driver] | None = None
        self._thread = ThreadPoolExecutor(1, "rareclass-query")
        self.is_done = False  # whether the last row has come

    def open(self, driver: Callable[[], Driver] | None) -> None:
        """Connect, or take the driver of a connection that is there."""
        if driver is None:
            assert self._query.address is not None
            driver = partial(connect, self._query.address)
        self._opened = self._thread.submit(driver)
        self._driver = self.result(
            self._opened,
            f"Cannot open {self._query.address}",
            "Check address, name and password; PostgreSQL also takes them from PGHOST, PGUSER, "
            "PGPASSWORD and ~/.pgpass.",
        )

    def begin(self, call: Callable[[Any], T]) -> "Future[T]":
        """Ask the driver for something."""
        return self._thread.submit(call, self._driver)

    def result(self, asked: "Future[T]", fault: str, remedy: str, columns: Sequence[str] = ()) -> T:
        """Return what the driver gives; raise `InputError` with its words after the `fault`."""
        while not wait([asked], _HEEDS_EVERY).done:
            pass  # a driver may keep a signal from ending the wait itself
        try:
            return asked.result()
        except (InputError, MemoryError):
            raise
        except Exception as error:
            reason = self._query.without_secrets(str(error))
        if columns and "Type mismatch in column" in reason:  # SQLite, whose columns hold anything
            name = columns[int(reason.partition("column ")[2].partition(":")[0])]
            reason = f"column {name!r} holds cells of several types: {reason.partition(': ')[2]}"
            remedy = f'Make them alike in the query: CAST("{name}" AS REAL), or AS TEXT.'
        # Not within `except`: the driver's own error may hold the password.
        raise InputError(f"{fault}: {reason}.", remedy, ErrorKind.CONNECTION)

    def close(self) -> None:
        """End what runs, and close."""
        if self._driver is not None and not self.is_done:
            self._driver.cancel()
        # Not closed by the thread: it takes no more work while the interpreter ends.
        self._thread.shutdown(wait=True)
        # Ctrl-C may have come while the thread connected.
        if self._opened is not None and self._opened.exception() is None:
            self._opened.result().close()


_REMEDY = "End the query with ORDER BY columns that are unique together, new rows last."


class QuerySource(ArrowSource):
    """The rows of a query in its order; cells as `ArrowSource` has them.

    From a position the query runs again, and the rows before it are passed over: they must be the
    same as then, of which the number and the last one are looked at. Raises `InputError` where they
    are not, else as `RunningQuery`.
    """

    def __init__(
        self,
        query: Query,
        position: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        exact_columns: Collection[str] = (),
    ) -> None:
        self._running = RunningQuery(query)
        row, self._last = 0, ""
        if position is not None:
            row, columns, self._last = int(position["row"]), position["columns"], position["last"]
        rows = self._after(query, row) if row else self._running.batches()
        super().__init__(str(query), self._running.schema, rows, row, columns, exact_columns)

    def close(self) -> None:
        """End the query."""
        self._running.close()

    def _position(self, table: pa.Table) -> dict[str, Any]:
        if table.num_rows:
            self._last = _mark_of(table.slice(table.num_rows - 1))
        return {**super()._position(table), "last": self._last}

    def _after(self, query: Query, n_rows: int) -> Iterator[pa.RecordBatch]:
        n_passed = 0
        for batch in self._running.batches():
            skipped = min(n_rows - n_passed, batch.num_rows)
            n_passed += skipped
            if skipped and n_passed == n_rows:
                last = pa.Table.from_batches([batch.slice(skipped - 1, 1)])
                if _mark_of(last) != self._last:
                    raise InputError(
                        f"{query} gives another row {n_rows:,} than before.",
                        _REMEDY,
                        ErrorKind.ROWS,
                    )
            if skipped < batch.num_rows:
                yield batch.slice(skipped)
        if n_passed < n_rows:
            raise InputError(
                f"{query} gives {counted(n_passed, 'row')}; {n_rows:,} had been read before.",
                _REMEDY,
                ErrorKind.ROWS,
            )


def _mark_of(row: pa.Table) -> str:
    """Return letters that tell a row from others."""
    return hashlib.blake2b(repr(row.to_pylist()).encode(), digest_size=12).hexdigest()


class QueryTable:
    """A table with named columns that a database gives.

    The query runs once: at the first need its rows go, batch by batch, to a nameless file on this
    machine's disk, from which every pass reads. So all passes see the same rows in the same order,
    and the database is not kept waiting by what is done with them. Of a table for one pass nothing
    is kept: its rows come straight from the database, and a further pass runs the query again.

    `scratch` is the folder for the file, as in `scratch_folder`. Raises `InputError` as
    `RunningQuery`; when there is no room on the disk; and when a query that is run again gives
    other rows in number.
    """

    format_name = "database"

    def __init__(
        self, query: Query, scratch: str | Path | None = None, one_pass: bool = False
    ) -> None:
        self.path = query
        self._running: RunningQuery | None = RunningQuery(query)
        self._schema = self._running.schema
        self.columns: list[str] = list(self._schema.names)
        self._folder, self._one_pass = scratch, one_pass
        self._kept: _KeptBatches | None = None
        self._n_rows: int | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes on this machine's disk."""
        return 0 if self._one_pass else self._spooled().n_bytes

    def estimate_rows(self) -> int:
        """Return the number of rows, which is exact; 0 while a table for one pass is not read."""
        return (self._n_rows or 0) if self._one_pass else self._spooled().n_rows

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> "Iterator[pl.DataFrame]":
        """Yield the rows in the order of the query, `batch_rows` or fewer at a time."""
        from rareclass.tables.frames import frame_of_arrow

        wanted = list(self.columns if columns is None else columns)
        batches = self._streamed() if self._one_pass else self._spooled().batches()
        for batch in batches:
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, batch_rows):
                yield frame_of_arrow(chosen.slice(start, batch_rows))

    def _take(self) -> RunningQuery:
        running, self._running = self._running, None
        if running is None or running.is_closed:
            running = RunningQuery(self.path)
            if running.schema != self._schema:
                raise InputError(
                    f"{self.path} gave other columns before.", "Run it again.", ErrorKind.ROWS
                )
        return running

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        running, n_rows = self._take(), 0
        try:
            for batch in running.batches():
                yield batch
                n_rows += batch.num_rows
        finally:
            if not running.is_closed:  # only the first rows were looked at
                self._running = running
        if self._n_rows not in (None, n_rows):
            raise InputError(
                f"{self.path} gave {counted(self._n_rows or 0, 'row')} and, run again, {n_rows:,}.",
                "Read a table that nobody changes meanwhile.",
                ErrorKind.ROWS,
            )
        self._n_rows = n_rows

    def _spooled(self) -> "_KeptBatches":
        if self._kept is None:
            kept = _KeptBatches(self._folder)
            with track(f"Reading {self.path.name}") as advance:
                for batch in self._take().batches():
                    kept.append(batch)
                    advance(batch.num_rows)
            self._kept = kept
        return self._kept


class _KeptBatches:
    """Arrow batches in a nameless file."""

    def __init__(self, folder: str | Path | None) -> None:
        self._file = Scratch(folder)
        self._ends = [0]
        self.n_rows = 0

    @property
    def n_bytes(self) -> int:
        return self._ends[-1]

    def append(self, batch: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self._file.append(sink.getvalue())
        self._ends.append(self._file.size)
        self.n_rows += batch.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        for start, end in zip(self._ends, self._ends[1:], strict=False):
            content = np.empty(end - start, np.uint8)
            self._file.read_into(content, start)
            with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
                yield reader.read_next_batch()
