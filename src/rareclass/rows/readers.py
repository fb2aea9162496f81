"""Files, queries and lazy frames as rows with labels: decoded to disk, or batch by batch."""

from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind, InputError, bad_cell, no_rows
from rareclass.files import Location
from rareclass.parameters import is_whole
from rareclass.remote import path_of
from rareclass.rows.decoding import (
    BatchDecoder,
    Batches,
    ColumnRoles,
    decode_to_disk,
    select_columns,
)
from rareclass.rows.memory import read_ahead
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import RowSource
from rareclass.tables.batch import plain_batch, plain_schema
from rareclass.tables.byte_streams import StoredFile
from rareclass.tables.databases import DatabaseAddress, Query, given_connection
from rareclass.tables.folders import FolderPart, find_parts, numbers_of_folders
from rareclass.tables.frames import frame_of_arrow
from rareclass.tables.parquet import ParquetFile
from rareclass.tables.queries import RunningQuery
from rareclass.tables.reading import parse_numbers
from rareclass.tables.table_file import text_file


def from_parquet(
    path: str | Path,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
) -> LabelledRows:
    """Rows of a Parquet file, or of a folder of them, for ``fit_rows``: of any size.

    The file is decoded once, batch by batch, into a nameless scratch file of plain floats, from
    which every pass of a fit reads. Only labels and weights are held in memory. Use ``with`` to
    delete the scratch file at its end.

    Parameters
    ----------
    path : path
        A file, or a folder: then all ``*.parquet`` and ``*.pq`` in it and below, sorted by name,
        one after the other. Names that start with a dot or an underscore are passed over.
    target : str or None
        Column of the labels: numbers, truth values or strings. None for rows to be scored.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns as the first part has them.
    dtype : "float32", "float64" or None
        Type of the stored features; None means float32 when all are float32 or narrower, else
        float64. float32 halves the scratch file.
    scratch : path or None
        Folder for the scratch file; None means $TMPDIR, else /var/tmp, else the system's choice.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: on a file that is missing, may not be read, is cut short or damaged (naming
        file and row group), parts that differ (naming part and column), columns that are not
        numbers, cells that are empty or infinite (naming file, column and row), and a full disk.

    Notes
    -----
    Cost: one decoding; rows x features x 4 or 8 bytes of disk until the result is closed or let go
    of, or the process is killed; 1 to 8 bytes of memory a row. Damage within a page is only
    noticed where the file has checksums or the compression shows it.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> table = pa.table({"a": [0.5, 1.5, 9.0], "b": [1.0, 2.0, 3.0], "y": ["ok", "ok", "fraud"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/part-0.parquet")
    ...     rows = from_parquet(folder, target="y")
    >>> rows.shape, rows.feature_names
    ((3, 2), ('a', 'b'))
    """
    parts = _ParquetParts(path, ColumnRoles.of(target, weight, columns, dtype))
    return decode_to_disk(parts.path, parts.batches(), parts.decoder, scratch, parts.n_rows)


def parquet_batches(
    path: str | Path,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    batch_rows: int | None = None,
) -> Iterator[LabelledRows]:
    """Rows of a Parquet file, or of a folder of them, read once: for models that learn in parts.

    Consecutive rows come as arrays in memory, in their order, and nothing is written to disk.
    A thread decodes the next batch while the caller works on the last one.

    Parameters
    ----------
    path, target, weight, columns, dtype
        As in `from_parquet`.
    batch_rows : int or None
        Most rows that come at once; None means as many as fit 16 MiB, 65,536 at most. Where a
        row group of the file ends, fewer come.

    Returns
    -------
    iterator of LabelledRows
        Each with ``y``, ``sample_weight`` and ``feature_names`` as `from_parquet` gives them:
        labels of one kind throughout. Its ``close`` ends the thread and closes the file, as does
        the end of the last reference to it, such as leaving a ``for`` loop.

    Raises
    ------
    InputError
        As `from_parquet`: here and now for what the footers of the files show, on the way for
        cells and for files that cannot be read to their end. Rows before a bad one came already.

    Notes
    -----
    Cost: one decoding; memory of four batches, whatever the size of the file.

    Examples
    --------
    >>> import pyarrow as pa, pyarrow.parquet as pq, tempfile
    >>> table = pa.table({"a": [0.5, 1.5, 9.0], "y": ["ok", "ok", "fraud"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     pq.write_table(table, f"{folder}/payments.parquet")
    ...     for rows in parquet_batches(f"{folder}/payments.parquet", "y", batch_rows=2):
    ...         print(rows.source.take(slice(None)).tolist(), rows.y.tolist())
    [[0.5], [1.5]] ['ok', 'ok']
    [[9.0]] ['fraud']
    """
    if batch_rows is not None and not is_whole(batch_rows):
        raise ValueError(f"batch_rows={batch_rows!r} is not a number of rows above 0.")
    parts = _ParquetParts(path, ColumnRoles.of(target, weight, columns, dtype))
    if not parts.n_rows:
        raise no_rows(parts.path)
    return read_ahead(parts.decoded(batch_rows))


def from_csv(
    path: str | Path,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
    separator: str | None = None,
) -> LabelledRows:
    """Rows of a CSV file, or of a folder of them, for ``fit_rows``: of any size.

    The text is read once; otherwise as `from_parquet`.

    Parameters
    ----------
    path : path
        A file with a header line, plain or compressed with gzip or bzip2, in UTF-8, UTF-16 or
        cp1252; or a folder: then all ``*.csv``, ``*.tsv`` and ``*.txt`` in it and below, plain or
        compressed, sorted by name. Names that start with a dot or an underscore are passed over.
    target : str or None
        Column of the labels: numbers where all of them are numbers, else strings. None for rows
        to be scored.
    weight, columns, scratch
        As in `from_parquet`.
    dtype : "float32", "float64" or None
        Type of the stored features; None means float64. float32 halves the scratch file.
    separator : str or None
        Character between cells; None detects it. Where it is no comma and numbers are written
        with a decimal comma, they are read as such.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: as `from_parquet`, naming file, column, row and value of a bad cell.

    Warns
    -----
    TableWarning
        When columns of one name were told apart: the later ones are called ``name.1`` and so on.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile("w", suffix=".csv") as file:
    ...     n = file.write("a,b,y\\n0.5,1,ok\\n2.5,3,fraud\\n")
    ...     file.flush()
    ...     rows = from_csv(file.name, target="y")
    >>> rows.shape, rows.y.tolist()
    ((2, 2), ['ok', 'fraud'])
    """
    roles = ColumnRoles.of(target, weight, columns, dtype)
    parts = []
    for name in find_parts(path_of(path), "csv"):
        parts.append(FolderPart(text_file(StoredFile(name), "csv", separator), path_of(path)))
        parts[-1].file.release()  # a folder may hold more files than may be open
    chosen = select_columns([(part.file.path, part.columns) for part in parts], roles)
    decoder = BatchDecoder(chosen, roles.dtype or np.float64, None)
    batches = ((part.file.path, _csv_batches(part, decoder)) for part in parts)
    return decode_to_disk(path_of(path), batches, decoder, scratch)


class _ParquetParts:
    """Parquet file, or folder of them, after a look at the footers: no rows are read yet."""

    def __init__(self, path: str | Path, roles: ColumnRoles) -> None:
        self.path = path_of(path)
        self._parts: list[FolderPart] = []
        for name in find_parts(self.path, "parquet"):
            self._parts.append(FolderPart(ParquetFile(name), self.path))
            self._parts[-1].file.release()  # a folder may hold more files than may be open
        self._numbers = numbers_of_folders(self._parts) - {roles.target}
        schemas = [(part.file.path, part.schema(self._numbers)) for part in self._parts]
        is_text = all(roles.target in part.keys for part in self._parts)
        self.decoder = BatchDecoder.of_schemas(schemas, roles, is_text)
        self.n_rows = sum(part.file.n_rows for part in self._parts)

    def batches(self, batch_rows: int | None = None) -> Iterator[tuple[Path, Batches]]:
        """Every part with its batches, of `batch_rows` rows or of as many as fit 16 MiB."""
        chosen = self.decoder.chosen
        size = chosen.batch_rows if batch_rows is None else batch_rows
        for part in self._parts:
            yield part.file.path, part.batches(chosen.all, size, self._numbers, by_group=True)
            part.file.release()

    def decoded(self, batch_rows: int | None) -> Generator[LabelledRows, None, None]:
        """Decode the batches one by one, as rows in memory."""
        decoder = self.decoder
        for path, batches in self.batches(batch_rows):
            first_row = 1
            for batch in batches:
                X, codes, weights = decoder.decode(batch, path, first_row)
                labels = None if codes is None else decoder.label_values()[codes]
                yield LabelledRows(RowSource.of_array(X), labels, weights, decoder.features)
                first_row += batch.num_rows


def _csv_batches(part: FolderPart, decoder: BatchDecoder) -> Batches:
    chosen, target = decoder.chosen, decoder.chosen.target
    n_rows = 0
    for batch in part.batches(chosen.all, chosen.batch_rows):
        frame = frame_of_arrow(batch)
        numbers = [frame[name] for name in chosen.all if name != target]
        frame = frame.with_columns(_as_numbers(c, part.file.path, n_rows + 1) for c in numbers)
        if target is not None:
            labels = pl.col(target)
            frame = frame.with_columns(pl.when(labels != "").then(labels).alias(target))
        n_rows += len(frame)
        yield from frame.to_arrow().to_batches()
    part.file.release()


def _as_numbers(cells: pl.Series, path: Path, first_row: int) -> pl.Series:
    numbers, is_text, _ = parse_numbers(cells)
    if not is_text.any():
        return numbers
    place = int(is_text.arg_max() or 0)
    raise bad_cell(
        f"{path}: column {cells.name!r} holds {cells[place]!r} at row {first_row + place:,} (the "
        "first row is 1), which is not a number.",
        "Correct that cell, leave the column out with columns=, or use the command line, which "
        "encodes tables.",
        cells.name,
        first_row + place,
        cells[place],
    )


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
        Such as ``SELECT * FROM payments WHERE day < '2026-01-01'``. Without an ORDER BY a database
        may give its rows in another order each time: then two models of the same rows may differ
        in the last digits.
    target, weight, columns, dtype, scratch
        As in `from_parquet`. A NUMERIC of PostgreSQL is float64.

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
    or let go of; memory of one batch (about 16 MiB with PostgreSQL) and 1 to 8 bytes a row.
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
    target, weight, columns, dtype, scratch
        As in `from_parquet`. Of a LazyFrame only the columns needed are computed.

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
            f"A {kind} is not a table that can be read in parts.",
            "Give a polars LazyFrame, a DuckDB relation or a pyarrow RecordBatchReader; arrays in "
            "memory go to fit(X, y) or rareclass.rows.from_arrays.",
            ErrorKind.SETTING,
        )
    return _decoded(title, schema, batches, roles, scratch)


def _of_polars(frame: Any, needed: list[str] | None) -> tuple[pa.Schema, Batches]:
    known = frame.collect_schema()
    schema = pl.DataFrame(schema=known).to_arrow().schema
    if needed is not None and set(needed) <= set(known):
        frame = frame.select(needed)
        schema = pa.schema([schema.field(name) for name in needed])

    def batches() -> Batches:
        parts = frame.collect_batches(chunk_size=_BATCH_ROWS, lazy=True, engine="streaming")
        for part in parts:
            yield from part.to_arrow().cast(schema).to_batches()

    plain = plain_schema(schema)
    return plain, (plain_batch(batch, plain) for batch in batches())


def _of_reader(reader: pa.RecordBatchReader, title: Path) -> tuple[pa.Schema, Batches]:
    schema = plain_schema(reader.schema)

    def batches() -> Batches:
        with reader:
            for batch in reader:
                yield plain_batch(batch, schema)

    return schema, batches()
