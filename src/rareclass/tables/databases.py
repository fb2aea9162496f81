"""Databases: an address said without its password, and a query that runs on one."""

import os
import re
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from signal import SIGINT, raise_signal
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, unquote, urlsplit

import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, counted, needed_for
from rareclass.machine import available_memory
from rareclass.scratch_file import scratch_folder
from rareclass.tables import unique_names
from rareclass.tables.frames import category_columns, plain_batch, plain_schema

T = TypeVar("T")

POSTGRESQL, SQLITE, DUCKDB = "PostgreSQL", "SQLite", "DuckDB"
_KINDS = {"postgresql": POSTGRESQL, "postgres": POSTGRESQL, "sqlite": SQLITE, "duckdb": DUCKDB}
# A scheme, of which SQLAlchemy's driver is no part: postgresql+psycopg://
_SCHEME = re.compile(r"([a-z]+)(?:\+\w+)?:", re.IGNORECASE)
_SECRET_PARAMETERS = re.compile(r"pass|secret|token|key", re.IGNORECASE)
_HIDDEN = "***"
_FORMS = "postgresql://user@host/database, sqlite:///file.db, duckdb:///file.duckdb"
# What drivers put before and after the database's own words.
_BEFORE = re.compile(
    r"^(?:[A-Z_]+: )?(?:\[(?:libpq|SQLite|PostgreSQL)\] )?"
    r"(?:Failed to \w+(?: query)?(?: '.*?')?: |Execution error \[\w+\]: )?"
    r"(?:could not begin COPY: )?(?:ERROR:\s+)?",
    re.DOTALL,
)
_AFTER = re.compile(r"\s*\n\s*(?:Query was|query): .*|\s*\.? SQLSTATE: \w+\s*$", re.DOTALL)


def is_database(text: str) -> bool:
    """Say whether a text is the URI of a database.

    >>> is_database("postgresql://localhost/shop"), is_database("shop.db"), is_database("s3://b/k")
    (True, False, False)
    """
    scheme = _SCHEME.match(text)
    return scheme is not None and scheme[1].lower() in _KINDS


def message_of(text: str) -> str:
    """The database's own words in what a driver says, on one line.

    >>> message_of("NOT_FOUND: Failed to prepare query: ERROR:  no x\\n\\nQuery was: a.")
    'no x'
    """
    words = _AFTER.sub("", _BEFORE.sub("", text.strip()))
    return re.sub(r"\s+", " ", words).strip().rstrip(".")


@dataclass(frozen=True)
class DatabaseAddress:
    """A database by its URI; as text it never shows the password.

    ``postgresql://user:password@host:port/database?option=value`` as libpq reads it;
    ``sqlite:///file.db`` and ``duckdb:///file.duckdb``, with a fourth slash for a path from the
    root. Raises `InputError` for any other, and for a password that would be taken apart at a
    letter which is not percent-encoded; the message does not hold the URI then.

    >>> print(DatabaseAddress("postgresql://me:hush@db.example/shop"))
    postgresql://me:***@db.example/shop
    >>> print(DatabaseAddress("sqlite:////data/shop.db").file)
    /data/shop.db
    """

    uri: str = field(repr=False)

    def __post_init__(self) -> None:
        if not is_database(self.uri):
            raise ErrorKind.SETTING.error(
                "The address is not one of a database.", f"Give one such as {_FORMS}."
            )
        if self.kind == POSTGRESQL:
            # Else a driver would name a part of the password for a host or a port.
            rest = self.uri.partition(":")[2]
            if rest.count("@") > 1 or ("@" in rest and "@" not in urlsplit(self.uri).netloc):
                raise ErrorKind.SETTING.error(
                    "The address of the database has an @ in its name or password, or one of "
                    "/ ? #, as they are.",
                    "Write them as %40, %2F, %3F and %23, or give the password in PGPASSWORD or "
                    "~/.pgpass.",
                )
        elif not re.match(r"\w+(\+\w+)?:///.", self.uri):
            scheme = self.uri.partition(":")[0]
            raise ErrorKind.SETTING.error(
                f"{self} names no file.",
                f"Write {scheme}:///file for one here, {scheme}:////folder/file for one from the "
                "root.",
            )

    @property
    def kind(self) -> str:
        """Kind of database: "PostgreSQL", "SQLite" or "DuckDB"."""
        scheme = _SCHEME.match(self.uri)
        assert scheme is not None
        return _KINDS[scheme[1].lower()]

    @property
    def file(self) -> Path:
        """The file of SQLite or DuckDB."""
        return Path(unquote(self.uri.partition(":///")[2].partition("?")[0]))

    @property
    def for_driver(self) -> str:
        """The URI for libpq, which is not kept waiting by a host that never answers."""
        scheme, _, rest = self.uri.partition(":")
        uri = f"{scheme.partition('+')[0]}:{rest}"
        if "connect_timeout=" in uri:
            return uri
        return f"{uri}{'&' if '?' in uri else '?'}connect_timeout=15"

    def __str__(self) -> str:
        parts = urlsplit(self.uri)
        user, at, host = parts.netloc.rpartition("@")
        name, colon, _ = user.partition(":")
        shown = f"{parts.scheme}://{name}{colon and f':{_HIDDEN}'}{at}{host}{parts.path}"
        options = [
            f"{key}={_HIDDEN if _SECRET_PARAMETERS.search(key) else value}"
            for key, value in parse_qsl(parts.query)
        ]
        return f"{shown}?{'&'.join(options)}" if options else shown

    def without_secrets(self, message: str) -> str:
        """A driver's message, of which what belongs to the driver and all secrets are left out."""
        message = message_of(message).replace(self.uri, str(self))
        for secret in self._secrets():
            message = message.replace(secret, _HIDDEN)
        return message

    def _secrets(self) -> list[str]:
        parts = urlsplit(self.uri)
        password = parts.netloc.rpartition("@")[0].partition(":")[2]
        options = [p.partition("=") for p in parts.query.split("&")]
        found = [password, *(v for key, _, v in options if _SECRET_PARAMETERS.search(key))]
        # The longest first: one may be a part of another.
        return sorted({*found, *map(unquote, found)} - {""}, key=len, reverse=True)


@dataclass(frozen=True)
class Query:
    """The answer of a database to a query: a table, as a file is one."""

    address: DatabaseAddress | None  # None for a `connection` that somebody has opened
    sql: str
    connection: Any = None

    @property
    def name(self) -> str:
        """Short name."""
        return "the query"

    def __str__(self) -> str:
        return f"the query on {self.address}" if self.address else "the query"

    def without_secrets(self, message: str) -> str:
        """Return a driver's message as the address does."""
        return message_of(message) if not self.address else self.address.without_secrets(message)


# Rows that SQLite's driver looks at before it says what a column holds, and gives at a time.
_SQLITE_ROWS = 1 << 16
_DUCKDB_ROWS = 1 << 16
# Bytes that DuckDB may keep of a file, and of what a query is worked out with.
_DUCKDB_MEMORY = 1 << 30
# What a file begins with, from which byte on.
_MAGIC = {SQLITE: (0, b"SQLite format 3\0"), DUCKDB: (8, b"DUCK")}
# What a driver runs first, so that a query only reads. Rows of a large table of PostgreSQL would
# else begin anywhere, and have another order each time.
_FIRST = {
    POSTGRESQL: (
        "SET synchronize_seqscans = off",
        "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY",
    ),
    SQLITE: ("PRAGMA query_only = ON",),
}


def connect(query: Query) -> "Driver":
    """Connect to the database of a query, to read from it only.

    A connection that somebody has opened stays open, and is nobody else's while the query runs.
    Raises `InputError` when the driver is not installed, a file does not exist, or an object is no
    connection we know; else what the driver raises.
    """
    address = query.address
    if address is None:
        return _of_open_connection(query.connection)
    if address.kind == POSTGRESQL:
        return _Adbc(driver_of(address).connect(address.for_driver), _FIRST[POSTGRESQL])
    check_file(address)
    if address.kind == SQLITE:
        # Opened to be written where that may be: what a process that was killed had half written
        # is taken back by the next one that opens the file.
        connection = driver_of(address).connect(f"{address.file.absolute().as_uri()}?mode=rw")
        batch_rows = {"adbc.sqlite.query.batch_rows": str(_SQLITE_ROWS)}
        return _Adbc(connection, _FIRST[SQLITE], batch_rows)
    connection = driver_of(address).connect(str(address.file), read_only=True)
    # Its cache would grow to most of the machine's memory; what does not fit goes to disk.
    connection.execute(f"SET memory_limit = '{min(_DUCKDB_MEMORY, available_memory() // 4)}B'")
    connection.execute("SET temp_directory = ?", [str(scratch_folder())])
    return _DuckDB(connection)


def _of_open_connection(connection: Any) -> "Driver":
    kind = type(connection)
    if kind.__module__.partition(".")[0] in ("duckdb", "_duckdb"):
        return _DuckDB(connection, is_ours=False)
    if kind.__module__.startswith("adbc_driver_"):
        return _Adbc(connection, is_ours=False)
    raise ErrorKind.SETTING.error(
        f"A {kind.__name__} is not a connection that gives Arrow batches.",
        "Give the address (postgresql://..., sqlite:///..., duckdb:///...), or a connection of "
        "an ADBC driver or of DuckDB.",
    )


def driver_of(address: DatabaseAddress) -> Any:
    """The module of a database's driver. Raises `InputError` where it is not installed."""
    package = {POSTGRESQL: "adbc-driver-postgresql", SQLITE: "adbc-driver-sqlite"}
    name = package.get(address.kind, "duckdb")
    is_adbc = address.kind in package
    with needed_for(address.kind, "rareclass[sql]"):
        return import_module(f"{name.replace('-', '_')}.dbapi" if is_adbc else name)


def check_file(address: DatabaseAddress) -> None:
    """Raise `InputError` when a database that is a file is not there."""
    if not os.path.isfile(address.file):
        what = "is a folder" if os.path.isdir(address.file) else "does not exist"
        raise ErrorKind.MISSING_FILE.error(
            f"The file {address.file} of {address} {what}.",
            "Three slashes stand before a path from here, four before one from the root.",
        )
    place, magic = _MAGIC[address.kind]
    with address.file.open("rb") as file:
        start = file.read(place + len(magic))
    if start and start[place:] != magic:
        raise ErrorKind.CONNECTION.error(
            f"The file {address.file} of {address} is not a database of {address.kind}.",
            "Give the name of one, or no database where it is a table: rareclass reads CSV, JSON "
            "lines and Parquet as they are.",
        )


def _end_all(*steps: Callable[[], None] | None) -> None:
    for step in steps:
        with suppress(Exception):  # SQLite cannot cancel; the connection may be lost
            if step is not None:
                step()


class _Adbc:
    """A connection of an ADBC driver, which runs one query and is closed if it is ours.

    The query sees the rows of PostgreSQL as of its beginning, and changes nothing. `first` runs
    before it; `options` are of its statement.
    """

    def __init__(
        self,
        connection: Any,
        first: Sequence[str] = (),
        options: dict[str, str] | None = None,
        is_ours: bool = True,
    ) -> None:
        self._cursor, self._end = connection.cursor(), connection.close if is_ours else None
        self._first, self._options = first, options
        self._reader: Any = None  # pa.RecordBatchReader, from `execute` on
        self._is_done = False

    def execute(self, sql: str) -> pa.Schema:
        """Begin the query; return the columns of its rows."""
        if self._options:
            self._cursor.adbc_statement.set_options(**self._options)
        for setting in self._first:
            self._run(setting).close()
        # A driver may put it into brackets: it may end with ; or with -- words.
        self._reader = reader = self._run(f"{sql.rstrip().rstrip(';')}\n")
        return reader.schema

    def next_batch(self) -> pa.RecordBatch | None:
        """Return the next rows; None at the end."""
        batch: pa.RecordBatch | None = self._interruptible(lambda: next(self._reader, None))
        self._is_done = batch is None
        return batch

    def close(self) -> None:
        """Cancel the query where it still runs, and give the connection back."""
        cancel = None if self._is_done else self._cursor.adbc_cancel
        _end_all(cancel, self._reader and self._reader.close, self._cursor.close, self._end)

    def _run(self, sql: str) -> pa.RecordBatchReader:
        statement = self._cursor.adbc_statement
        statement.set_sql_query(sql)
        stream, _ = self._interruptible(statement.execute_query)
        return pa.RecordBatchReader._import_from_c(stream.address)

    def _interruptible(self, call: Callable[[], Any]) -> Any:
        """Wait for the database as the driver's own cursor does: Ctrl-C cancels the query."""
        is_stopped = False

        def cancel() -> None:
            nonlocal is_stopped
            is_stopped = True
            self._cursor.adbc_cancel()

        driver = import_module("adbc_driver_manager.dbapi")
        try:
            return driver._blocking_call(call, (), {}, cancel)
        finally:
            if is_stopped:
                raise_signal(SIGINT)  # it reached the driver in place of this process


class _DuckDB:
    """A connection of DuckDB, which is closed if it is ours."""

    def __init__(self, connection: Any, is_ours: bool = True) -> None:
        self._connection, self._end = connection, connection.close if is_ours else None
        self._reader: Any = None

    def execute(self, sql: str) -> pa.Schema:
        relation = self._connection.sql(sql)
        if relation is None:
            raise ErrorKind.TOO_FEW_ROWS.error(
                "The query gives no rows.", "Give one that begins with SELECT."
            )
        self._reader = relation.to_arrow_reader(_DUCKDB_ROWS)
        schema: pa.Schema = self._reader.schema
        return schema

    def next_batch(self) -> pa.RecordBatch | None:
        """Return the next rows; None at the end."""
        return next(self._reader, None)

    def close(self) -> None:
        _end_all(self._reader and self._reader.close, self._end)


Driver: TypeAlias = _Adbc | _DuckDB


class RunningQuery:
    """Rows of a running query, each read once.

    Memory holds one batch, of about 16 MiB (PostgreSQL) or 65,536 rows. Ctrl-C cancels the query.

    `schema` has plain types and unique names. Raises `InputError`, here or on reading, with the
    database's own words and without a password: when it cannot be reached, when it refuses the
    query, when the connection is lost, and for a column that cannot be read.
    """

    def __init__(self, query: Query) -> None:
        self._query, self._n_rows = query, 0
        self._first: pa.RecordBatch | None = None
        self._driver = self._call(
            lambda: connect(query),
            f"Cannot open {query.address or 'a query on the given connection'}",
            "Check address, name and password; PostgreSQL also takes them from PGHOST, PGUSER, "
            "PGPASSWORD and ~/.pgpass."
            if query.address
            else "Open the connection again.",
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
