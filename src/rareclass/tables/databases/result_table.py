"""A table of a database that is written whole or not at all."""

import re
import uuid
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from rareclass.errors import ErrorKind, InputError
from rareclass.files import check_writable
from rareclass.later import pq
from rareclass.tables.databases.drivers import (
    DUCKDB,
    POSTGRESQL,
    SQLITE,
    DatabaseAddress,
    check_file,
    driver_of,
)

_BATCH_ROWS = 1 << 16
# A name as it stands, or in quotes, in which a quote is doubled.
_NAME = re.compile(r'(?:"((?:[^"]|"")+)"|([^".]+))')
# Bytes of a name that PostgreSQL looks at.
_LONGEST_NAME = 63
_CANCELLED = "57014"


def quoted(name: str) -> str:
    '''A name in SQL, whatever is in it.

    >>> print(quoted('a "b"'))
    "a ""b"""
    '''
    return '"' + name.replace('"', '""') + '"'


@dataclass(frozen=True)
class ResultTable:
    """A table to be written, which takes the place of one of its name only where that may be.

    As a file that `replacing` writes it takes whole files of Parquet.
    """

    address: DatabaseAddress
    schema: str | None
    table: str
    may_replace: bool = False
    suffix = ".parquet"

    @classmethod
    def named(cls, address: DatabaseAddress, name: str, may_replace: bool = False) -> "ResultTable":
        """The table called ``table`` or ``schema.table``; names with dots stand in quotes.

        Raises `InputError` for what is no such name.
        """
        found = [part[0].replace('""', '"') or part[1] for part in _NAME.findall(name)]
        if not re.fullmatch(rf"{_NAME.pattern}(?:\.{_NAME.pattern})?", name):
            raise InputError(
                f"--out-table {name} is not a table name.",
                "Give one such as scores or risk.scores; a name with dots stands in quotes: "
                "'\"a.b\"'.",
                ErrorKind.COLUMN_NAMES,
            )
        if address.kind == SQLITE and len(found) > 1:
            raise InputError(
                f"--out-table {name}: SQLite has no schemas.",
                "Give the name of the table alone; one with dots stands in quotes: '\"a.b\"'.",
                ErrorKind.CONNECTION,
            )
        longest = max(len(part.encode()) for part in found)
        if "\0" in name or (address.kind == POSTGRESQL and longest > _LONGEST_NAME):
            raise InputError(
                f"--out-table {name!r} has {longest} bytes, or a zero among them.",
                f"Names of {address.kind} have {_LONGEST_NAME} at most.",
                ErrorKind.COLUMN_NAMES,
            )
        return cls(address, found[0] if len(found) > 1 else None, found[-1], may_replace)

    @property
    def name(self) -> str:
        """Short name."""
        return f"{self.schema}.{self.table}" if self.schema else self.table

    def __str__(self) -> str:
        return f"the table {self.name} of {self.address}"

    def check(self) -> None:
        """Raise `InputError` now when it could not be written later, as far as can be told."""
        if self._is_new_file:
            check_writable(self.address.file, "--out")
            return
        with self._transaction() as session:
            self._check(session)

    def put(self, file: Path) -> None:
        """Write the rows of a Parquet file, in one transaction.

        Until its end others see what was there before; when it fails, or this process is killed,
        they go on seeing it. Raises `InputError` with the database's own words.
        """
        is_new = self._is_new_file
        try:
            with self._transaction() as session, pq.ParquetFile(file) as rows:
                is_there = self._check(session)
                # Under a name of its own until it takes the other's place, so that this one can be
                # read all the while.
                new = f"rareclass {uuid.uuid4().hex}"
                session.write(self.schema, new, file, _plain_rows(rows, self.address))
                if is_there:
                    session.run(f"DROP TABLE {_full_name(self.schema, self.table)}")
                made = _full_name(self.schema, new)
                session.run(f"ALTER TABLE {made} RENAME TO {quoted(self.table)}")
                session.commit()
        except BaseException:
            if is_new:
                self.address.file.unlink(missing_ok=True)
            raise

    @property
    def _is_new_file(self) -> bool:
        return self.address.kind != POSTGRESQL and not self.address.file.exists()

    def _check(self, session: "_Session") -> bool:
        """Say whether a table is there; refuses one that is not to be replaced."""
        kind = session.kind_of(self.schema, self.table)
        if kind is None:
            return False
        if kind != "table":
            raise InputError(f"{self} is a {kind}.", "Give another name.", ErrorKind.EXISTING_FILE)
        if not self.may_replace:
            raise InputError(
                f"--out-table {self.name} exists already in {self.address}.",
                "Give another name, or --overwrite to replace it.",
                ErrorKind.EXISTING_FILE,
            )
        return True

    @contextmanager
    def _transaction(self) -> Iterator["_Session"]:
        """A transaction, taken back unless it was committed; faults in the database's words."""
        try:
            with closing(_open(self.address)) as session:
                yield session
            return
        except (InputError, MemoryError):
            raise
        except Exception as error:
            # The driver takes Ctrl-C for itself, and cancels.
            state = vars(error).get("sqlstate")
            stopped = state == _CANCELLED and "timeout" not in str(error)
            reason = self.address.without_secrets(str(error))
        if stopped:
            raise KeyboardInterrupt
        # Not within `except`: the driver's own error may hold the password.
        raise InputError(
            f"Cannot write {self}: {reason}.",
            "Check the address and your rights there; nothing was changed.",
            ErrorKind.UNWRITABLE,
        )


class _Session:
    """A connection with a transaction, of an ADBC driver."""

    def __init__(self, connection: Any, address: DatabaseAddress) -> None:
        self._connection, self._cursor = connection, connection.cursor()
        self._is_sqlite = address.kind == SQLITE

    def run(self, sql: str) -> None:
        self._cursor.execute(sql)

    def kind_of(self, schema: str | None, table: str) -> str | None:
        """Return "table", or what else has that name; None for nothing."""
        if self._is_sqlite:
            found = self._first(
                f"SELECT type FROM sqlite_master WHERE lower(name) = lower({_literal(table)})"
            )
            return None if found is None else str(found)
        if (
            schema is not None
            and self._first(f"SELECT 1 FROM pg_namespace WHERE nspname = {_literal(schema)}")
            is None
        ):
            raise InputError(
                f"There is no schema {schema!r}.",
                f"CREATE SCHEMA {quoted(schema)} makes it.",
                ErrorKind.CONNECTION,
            )
        name = _full_name(schema, table)
        kind = self._first(
            f"SELECT relkind::text FROM pg_class WHERE oid = to_regclass({_literal(name)})::oid"
        )
        names = {"r": "table", "v": "view", "m": "materialized view", "p": "partitioned table"}
        return None if kind is None else names.get(str(kind), "relation of another kind")

    def write(self, schema: str | None, table: str, file: Path, rows: pa.RecordBatchReader) -> None:
        self._cursor.adbc_ingest(table, rows, mode="create", db_schema_name=schema)

    def commit(self) -> None:
        self._connection.commit()

    def close(self) -> None:
        with suppress(Exception):
            self._cursor.close()
        with suppress(Exception):
            self._connection.close()

    def _first(self, sql: str) -> Any:
        self._cursor.execute(sql)
        row = self._cursor.fetchone()
        return None if row is None else row[0]


class _DuckDBSession:
    """A connection of DuckDB with a transaction."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection
        connection.execute("BEGIN")

    def run(self, sql: str) -> None:
        self._connection.execute(sql)

    def kind_of(self, schema: str | None, table: str) -> str | None:
        found = self._connection.execute(
            "SELECT table_type FROM information_schema.tables WHERE lower(table_name) = lower(?) "
            "AND table_schema = coalesce(?, current_schema()) AND table_catalog = "
            "current_database()",
            [table, schema],
        ).fetchone()
        return None if found is None else "table" if found[0] == "BASE TABLE" else "view"

    def write(self, schema: str | None, table: str, file: Path, rows: pa.RecordBatchReader) -> None:
        rows_of = f"SELECT * FROM read_parquet({_literal(str(file))})"
        self._connection.execute(f"CREATE TABLE {_full_name(schema, table)} AS {rows_of}")

    def commit(self) -> None:
        self._connection.execute("COMMIT")

    def close(self) -> None:
        self._connection.close()


def _full_name(schema: str | None, table: str) -> str:
    return f"{quoted(schema)}.{quoted(table)}" if schema else quoted(table)


def _open(address: DatabaseAddress) -> Any:
    driver = driver_of(address)
    if address.kind == POSTGRESQL:
        return _Session(driver.connect(address.for_driver), address)
    if address.file.exists():
        check_file(address)
    if address.kind == DUCKDB:
        return _DuckDBSession(driver.connect(str(address.file)))
    return _Session(driver.connect(str(address.file)), address)


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _plain_rows(file: "pq.ParquetFile", address: DatabaseAddress) -> pa.RecordBatchReader:
    """Return the rows in types that the driver takes."""
    schema = pa.schema([_plain_field(field, address) for field in file.schema_arrow])

    def batches() -> Iterator[pa.RecordBatch]:
        for batch in file.iter_batches(_BATCH_ROWS):
            yield pa.RecordBatch.from_arrays(
                [column.cast(f.type) for column, f in zip(batch.columns, schema, strict=True)],
                schema=schema,
            )

    return pa.RecordBatchReader.from_batches(schema, batches())


def _plain_field(field: pa.Field, address: DatabaseAddress) -> pa.Field:
    kind = field.type
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        kind = pa.string()
    if pa.types.is_unsigned_integer(kind):
        kind = pa.int64()
    if pa.types.is_decimal(kind) and address.kind == SQLITE:  # which has none
        kind = pa.float64()
    return pa.field(field.name, kind)
