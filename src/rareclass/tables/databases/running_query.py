"""A query that runs: its rows in Arrow batches, one read ahead, until it is closed."""

import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any, TypeVar

import pyarrow as pa

from rareclass.errors import InputError, counted
from rareclass.tables.databases.address import Query
from rareclass.tables.databases.cells import plain_batch, plain_schema
from rareclass.tables.databases.drivers import Driver, connect
from rareclass.tables.dialect import unique_names

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
        try:
            self._connection.open(driver)
            self._reader = self._connection.result(
                self._connection.begin(lambda driver: driver.execute(query.sql)),
                self._refused,
            )
            self.schema = self._plain(self._reader.schema)
            self._next = self._ask()
        except BaseException:
            self.close()
            raise
        self._first: pa.RecordBatch | None = None

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
        """Whether no more rows will come."""
        return not self._closing.alive

    def close(self) -> None:
        """End the query, and give the connection back."""
        self._closing()

    def _plain(self, schema: pa.Schema) -> pa.Schema:
        title = str(self._query)
        plain = plain_schema(schema, title)
        if not plain.names:
            raise InputError(f"{title} gives no columns.", "Give one that begins with SELECT.")
        names = unique_names(title, list(plain.names))
        return pa.schema([f.with_name(name) for f, name in zip(plain, names, strict=True)])

    def _ask(self) -> "Future[Any]":
        reader = self._reader
        return self._connection.begin(lambda driver: next(reader, None))

    def _read(self) -> pa.RecordBatch | None:
        """The next batch with rows; None at the end."""
        while True:
            try:
                batch = self._connection.result(self._next, self._broken_off)
            except BaseException:
                self.close()
                raise
            if batch is None:
                self._connection.is_done = True
                return None
            self._next = self._ask()
            if batch.num_rows:
                return plain_batch(batch, self.schema)

    def _refused(self, reason: str) -> InputError:
        return InputError(
            f"{self._query.address or 'The database'} refuses the query: {reason}.",
            "Correct the query.",
        )

    def _broken_off(self, reason: str) -> InputError:
        remedy = "Run it again; nothing was kept of it."
        if "Type mismatch in column" in reason:  # SQLite, whose columns hold anything
            place = int(reason.partition("column ")[2].partition(":")[0])
            name = self.schema.names[place]
            reason = f"column {name!r} holds cells of several types: {reason.partition(': ')[2]}"
            remedy = f'Make them alike in the query: CAST("{name}" AS REAL), or AS TEXT.'
        return InputError(
            f"{self._query} broke off after {counted(self._n_rows, 'row')}: {reason}.",
            remedy,
        )


class _Connection:
    """A driver and the one thread that speaks with it."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._driver: Driver | None = None
        self._thread = ThreadPoolExecutor(1, "rareclass-query")
        self.is_done = False  # whether the last row has come

    def open(self, driver: Callable[[], Driver] | None) -> None:
        """Connect, or take the driver of a connection that is there."""
        address = self._query.address

        def cannot(reason: str) -> InputError:
            return InputError(
                f"Cannot open {address}: {reason}.",
                "Check address, name and password; PostgreSQL also takes them from PGHOST, PGUSER, "
                "PGPASSWORD and ~/.pgpass.",
            )

        if driver is None:
            assert address is not None
            driver = partial(connect, address)
        opened = self._thread.submit(driver)
        self._driver = self.result(opened, cannot)

    def begin(self, call: Callable[[Any], T]) -> "Future[T]":
        """Ask the driver for something."""
        return self._thread.submit(call, self._driver)

    def result(self, asked: "Future[T]", fault: Callable[[str], InputError]) -> T:
        """What the driver gives; what it raises becomes the `fault` of its words."""
        while not wait([asked], _HEEDS_EVERY).done:
            pass  # a driver may keep a signal from ending the wait itself
        try:
            return asked.result()
        except (InputError, MemoryError):
            raise
        except Exception as error:
            reason = self._query.without_secrets(str(error))
        # Not within `except`: the driver's own error may hold the password.
        raise fault(reason)

    def close(self) -> None:
        """End what runs, and close."""
        driver = self._driver
        if driver is not None and not self.is_done:
            driver.cancel()
        # Not closed by the thread: it takes no more work while the interpreter ends.
        self._thread.shutdown(wait=True)
        if driver is not None:
            driver.close()
