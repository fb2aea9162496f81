"""Queries: one that runs, and its answer as a table."""

import weakref
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import TypeVar, cast

import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.machine import track
from rareclass.tables.batch import SpooledTables, plain_batch, plain_schema, unique_names
from rareclass.tables.databases import DatabaseAddress, Driver, Query, connect
from rareclass.tables.frames import category_columns, frame_of_arrow

T = TypeVar("T")


class RunningQuery:
    """Rows of a running query, each read once.

    Memory holds one batch, of about 16 MiB (PostgreSQL) or 65,536 rows. Ctrl-C cancels the query.

    `schema` has plain types and unique names. Raises `InputError`, here or on reading, with the
    database's own words and without a password: when it cannot be reached, when it refuses the
    query, when the connection is lost, and for a column that cannot be read.
    """

    def __init__(self, query: Query, driver: Callable[[], Driver] | None = None) -> None:
        self._query, self._n_rows = query, 0
        self._first: pa.RecordBatch | None = None
        self._driver = self._call(
            driver or partial(connect, cast(DatabaseAddress, query.address)),
            f"Cannot open {query.address}",
            "Check address, name and password; PostgreSQL also takes them from PGHOST, PGUSER, "
            "PGPASSWORD and ~/.pgpass.",
        )
        self._closing = weakref.finalize(self, self._driver.close)
        try:
            given = self._call(
                lambda: self._driver.execute(query.sql),
                f"{query.address or 'The database'} refuses the query",
                "Correct the query.",
            )
            self.schema, self.category_columns = plain_schema(given), category_columns(given)
            if not self.schema.names:
                raise ErrorKind.MISSING_COLUMN.error(
                    f"{query} gives no columns.", "Give one that begins with SELECT."
                )
            names = zip(self.schema, unique_names(str(query), self.schema.names), strict=True)
            self.schema = pa.schema([field.with_name(name) for field, name in names])
        except BaseException:
            self.close()
            raise

    def batches(self) -> Iterator[pa.RecordBatch]:
        """Yield the rows, and close the query at their end or when no more are asked for.

        When only rows of the first batch were asked for, reading can begin again.
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

    def _read(self) -> pa.RecordBatch | None:
        """Return the next batch with rows; None at the end."""
        try:
            while batch := self._call(
                self._driver.next_batch,
                f"{self._query} broke off after {counted(self._n_rows, 'row')}",
                "Run it again; nothing was kept of it.",
            ):
                if batch.num_rows:
                    return plain_batch(batch, self.schema)
        except BaseException:
            self.close()
            raise
        return None

    def _call(self, call: Callable[[], T], fault: str, remedy: str) -> T:
        """Call the driver; raise `InputError` with its words after the `fault`."""
        try:
            return call()
        except (InputError, MemoryError):
            raise
        except Exception as error:
            reason = self._query.without_secrets(str(error))
        # Not within `except`: the driver's own error may hold the password.
        if "Type mismatch in column" in reason:  # SQLite, whose columns hold anything
            place = int(reason.partition("column ")[2].partition(":")[0])
            name = self.schema.names[place]
            reason = f"column {name!r} holds cells of several types: {reason.partition(': ')[2]}"
            remedy = f'Make them alike in the query: CAST("{name}" AS REAL), or AS TEXT.'
        raise ErrorKind.CONNECTION.error(f"{fault}: {reason}.", remedy)


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
    index_columns: tuple[str, ...] = ()

    def __init__(
        self, query: Query, scratch: str | Path | None = None, one_pass: bool = False
    ) -> None:
        self.path = query
        self._running: RunningQuery | None = RunningQuery(query)
        self._schema = self._running.schema
        self.category_columns = self._running.category_columns
        self.columns: list[str] = list(self._schema.names)
        self._folder, self._one_pass = scratch, one_pass
        self._kept: SpooledTables | None = None
        self._n_rows: int | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes on this machine's disk."""
        return 0 if self._one_pass else self._spooled().n_bytes

    def estimate_rows(self) -> int:
        """Return the number of rows, which is exact; 0 while a table for one pass is not read."""
        if not self._one_pass:
            self._spooled()
        return self._n_rows or 0

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in the order of the query, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        for batch in self._streamed() if self._one_pass else self._spooled():
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, batch_rows):
                yield frame_of_arrow(chosen.slice(start, batch_rows))

    def _take(self) -> RunningQuery:
        running, self._running = self._running, None
        if running is None or running.is_closed:
            running = RunningQuery(self.path)
            if running.schema != self._schema:
                raise ErrorKind.ROWS.error(
                    f"{self.path} gave other columns before.", "Run it again."
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
            raise ErrorKind.ROWS.error(
                f"{self.path} gave {counted(self._n_rows or 0, 'row')} and, run again, {n_rows:,}.",
                "Read a table that nobody changes meanwhile.",
            )
        self._n_rows = n_rows

    def _spooled(self) -> SpooledTables:
        if self._kept is None:
            kept, n_rows = SpooledTables(self._folder), 0
            with track(f"Reading {self.path.name}") as advance:
                for batch in self._take().batches():
                    kept.append(batch)
                    n_rows += batch.num_rows
                    advance(batch.num_rows)
            self._kept, self._n_rows = kept, n_rows
        return self._kept
