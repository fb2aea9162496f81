"""The answer of a database to a query as rows on disk."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rareclass.errors import InputError
from rareclass.files import Location
from rareclass.rows.column_types import check_types, label_type
from rareclass.rows.decoding import BatchDecoder, Decoder, checked_dtype, select_columns
from rareclass.rows.labelled import LabelledRows
from rareclass.tables.databases.address import DatabaseAddress, Query
from rareclass.tables.databases.drivers import Driver, given_connection
from rareclass.tables.databases.running_query import RunningQuery


def from_sql(
    connection: Any,
    query: str,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
) -> LabelledRows:
    """Rows that a database answers a query with, for ``fit_rows``: of any number.

    The query runs once. Its rows come in Arrow batches, never all of them in memory, and are
    decoded into a nameless scratch file as those of a file are (`from_parquet`). Needs the extra
    ``rareclass[sql]``.

    Parameters
    ----------
    connection : str or connection
        ``postgresql://user@host/database`` as libpq reads it, ``sqlite:///file.db`` or
        ``duckdb:///file.duckdb``: opened to read only, PostgreSQL in one REPEATABLE READ
        transaction. A password is taken from there, from PGPASSWORD or ~/.pgpass, and is in no
        message. Or an open connection of an ADBC driver or of DuckDB, which stays open.
    query : str
        What gives the rows, such as ``SELECT * FROM payments WHERE day < '2026-01-01'``. Without
        an ORDER BY a database may give them in another order each time: then two models of the
        same rows may differ in the last digits.
    target : str or None
        Column of the labels: numbers, truth values or strings. None for rows to be scored.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns.
    dtype : "float32", "float64" or None
        As in `from_parquet`. A NUMERIC of PostgreSQL is float64.
    scratch : path or None
        Folder for the scratch file; None means $TMPDIR, else /var/tmp, else the system's choice.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: with the database's own words when it cannot be reached, refuses the query, or
        the connection is lost on the way; on columns that are not there or not numbers, and cells
        that are empty or infinite (naming column and row); without the driver, naming what to
        install.

    Notes
    -----
    Cost: one run of the query; rows x features x 4 or 8 bytes of disk until the result is closed
    or let go of; memory of two batches (about 16 MiB each with PostgreSQL) and 1 to 8 bytes a row.
    Ctrl-C cancels the query in the database.

    Examples
    --------
    >>> import duckdb
    >>> shop = duckdb.connect()
    >>> _ = shop.execute("CREATE TABLE payments AS SELECT 0.5 AS amount, 'ok' AS class "
    ...                  "UNION ALL SELECT 9, 'fraud'")
    >>> rows = from_sql(shop, "SELECT * FROM payments ORDER BY amount", target="class")
    >>> rows.shape, rows.y.tolist()
    ((2, 1), ['ok', 'fraud'])
    """
    address, driver = _opened(connection)
    answer = RunningQuery(Query(address, query), driver)
    path = Query(address, query)
    try:
        return decoded(
            path, answer.schema, answer.batches(), target, weight, columns, dtype, scratch
        )
    finally:
        answer.close()


def decoded(
    path: Location,
    schema: pa.Schema,
    batches: Iterator[pa.RecordBatch],
    target: str | None,
    weight: str | None,
    columns: Iterable[str] | None,
    dtype: Any,
    scratch: str | Path | None,
) -> LabelledRows:
    """Batches of one schema, taken in once, as rows on disk; `path` is what messages call them."""
    chosen = select_columns([(path, schema.names)], target, weight, columns)
    is_narrow = check_types([(path, schema)], chosen)
    kind = None if target is None else label_type([(path, schema)], target)
    if dtype is None:
        dtype = np.float32 if is_narrow else np.float64
    decoder = Decoder(BatchDecoder(chosen, checked_dtype(dtype), kind), scratch)
    size = chosen.batch_rows
    pieces = (
        batch.select(chosen.all).slice(start, size)
        for batch in batches
        for start in range(0, batch.num_rows, size)
    )
    return decoder.read(path, [(path, pieces)])


def _opened(connection: Any) -> tuple[DatabaseAddress | None, Callable[[], Driver] | None]:
    if isinstance(connection, str):
        return DatabaseAddress(connection), None
    driver = given_connection(connection)
    if driver is None:
        raise InputError(
            f"A {type(connection).__name__} is no connection that gives Arrow batches.",
            "Give the address (postgresql://..., sqlite:///..., duckdb:///...), or a connection of "
            "an ADBC driver or of DuckDB.",
        )
    return None, lambda: driver
