"""Database queries, polars LazyFrames and other readers of batches, decoded to rows on disk."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import narwhals as nw
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError
from rareclass.files import Location
from rareclass.rows.decoding import BatchDecoder, Batches, ColumnRoles, decode_to_disk
from rareclass.rows.labelled import LabelledRows
from rareclass.tables.batch import plain_batch, plain_schema
from rareclass.tables.databases.drivers import DatabaseAddress, Query, given_connection
from rareclass.tables.databases.queries import RunningQuery


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
    """Rows of a database query, for ``fit_rows``: of any number.

    The query runs once. Its rows come in Arrow batches, never all of them in memory, and are
    decoded into a nameless scratch file as in `from_parquet`. Needs the extra ``rareclass[sql]``.

    Parameters
    ----------
    connection : str or connection
        ``postgresql://user@host/database`` as libpq reads it, ``sqlite:///file.db`` or
        ``duckdb:///file.duckdb``: opened to read only, PostgreSQL in one REPEATABLE READ
        transaction. A password is taken from there, from PGPASSWORD or ~/.pgpass, and is in no
        message. Or an open connection of an ADBC driver or of DuckDB, which stays open.
    query : str
        Such as ``SELECT * FROM payments WHERE day < '2026-01-01'``. Without
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
        A ValueError: with the database's own words when the database cannot be reached, refuses
        the query, or loses the connection on the way; on columns that are missing or not numbers,
        and cells that are empty or infinite (naming column and row); without the driver, naming
        the package to install.

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
    roles = ColumnRoles.of(target, weight, columns, dtype)
    driver = None
    if isinstance(connection, str):
        path = Query(DatabaseAddress(connection), query)
    else:
        path, driver = Query(None, query), given_connection(connection)
    running = RunningQuery(path, driver)
    try:
        return _decoded(path, running.schema, running.batches(), roles, scratch)
    finally:
        running.close()


def _decoded(
    path: Location,
    schema: pa.Schema,
    batches: Batches,
    roles: ColumnRoles,
    scratch: str | Path | None,
) -> LabelledRows:
    """Decode batches of one schema, read once; messages name them by `path`."""
    decoder = BatchDecoder.of_schemas([(path, schema)], roles)
    names, size = decoder.chosen.all, decoder.chosen.batch_rows
    pieces = (
        batch.select(names).slice(start, size)
        for batch in batches
        for start in range(0, batch.num_rows, size)
    )
    return decode_to_disk(path, [(path, pieces)], decoder, scratch)


# Rows of a batch.
_BATCH_ROWS = 1 << 16


def from_lazy(
    frame: Any,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
) -> LabelledRows:
    """Rows of a polars LazyFrame or a DuckDB relation, for ``fit_rows``: of any number.

    The frame is computed once, in parts that are decoded as they come into a nameless scratch file
    (`from_parquet`), and never collected whole.

    Parameters
    ----------
    frame : polars.LazyFrame, duckdb.DuckDBPyRelation or pyarrow.RecordBatchReader
        Also a narwhals LazyFrame of one of the first two. A reader is read to its end.
    target : str or None
        Column of the labels: numbers, truth values or strings. None for rows to be scored.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns. Of a LazyFrame only those needed
        are computed.
    dtype : "float32", "float64" or None
        As in `from_parquet`.
    scratch : path or None
        Folder for the scratch file; None means $TMPDIR, else /var/tmp, else the system's choice.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: for other types; on columns that are missing or not numbers, cells that are
        empty or infinite (naming column and row), no rows, and a full disk. Errors of polars or
        DuckDB, such as for a missing file, are raised unchanged.

    Notes
    -----
    Cost: one computation of the frame; rows x features x 4 or 8 bytes of disk until the result
    is closed or let go of; in memory a few parts of 65,536 rows, what the frame's own steps hold (a
    sort holds all rows) and 1 to 8 bytes a row.

    Examples
    --------
    >>> import polars as pl
    >>> payments = pl.LazyFrame({"amount": [0.5, 9.0, 1.5], "class": ["ok", "fraud", "ok"]})
    >>> rows = from_lazy(payments.with_columns(log=pl.col("amount").log()), target="class")
    >>> rows.shape, rows.feature_names
    ((3, 2), ('amount', 'log'))
    """
    native = nw.to_native(frame, pass_through=True)
    package = type(native).__module__.partition(".")[0]
    kind = type(native).__name__
    roles = ColumnRoles.of(target, weight, columns, dtype)
    needed = None
    if roles.features is not None:
        labels = (name for name in (target, weight) if name)
        needed = list(dict.fromkeys([*roles.features, *labels]))
    if package == "polars" and kind == "LazyFrame":
        title = Path("the LazyFrame")
        schema, batches = _of_polars(native, needed)
    elif package in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        title = Path("the relation")
        schema, batches = _of_reader(native.to_arrow_reader(_BATCH_ROWS), title)
    elif isinstance(native, pa.RecordBatchReader):
        title = Path("the reader")
        schema, batches = _of_reader(native, title)
    else:
        raise InputError(
            f"A {kind} is no table that is read in parts.",
            "Give a polars LazyFrame, a DuckDB relation or a pyarrow RecordBatchReader; arrays in "
            "memory go to fit(X, y) or rareclass.rows.from_arrays.",
            ErrorKind.SETTING,
        )
    return _decoded(title, schema, batches, roles, scratch)


def _of_polars(frame: Any, needed: list[str] | None) -> tuple[pa.Schema, Batches]:
    import polars as pl

    known = frame.collect_schema()
    schema = pl.DataFrame(schema=known).to_arrow().schema
    if needed is not None and set(needed) <= set(known):
        frame = frame.select(needed)
        schema = pa.schema([schema.field(name) for name in needed])

    def batches() -> Batches:
        parts = frame.collect_batches(chunk_size=_BATCH_ROWS, lazy=True, engine="streaming")
        for part in parts:
            yield from part.to_arrow().cast(schema).to_batches()

    plain = plain_schema(schema, "the LazyFrame")
    return plain, (plain_batch(batch, plain) for batch in batches())


def _of_reader(reader: pa.RecordBatchReader, title: Path) -> tuple[pa.Schema, Batches]:
    schema = plain_schema(reader.schema, str(title))

    def batches() -> Batches:
        with reader:
            for batch in reader:
                yield plain_batch(batch, schema)

    return schema, batches()
