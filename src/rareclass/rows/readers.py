"""Files, queries and lazy frames as rows with labels: decoded to disk, or batch by batch."""

import threading
from collections import deque
from collections.abc import Generator, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa

from rareclass.errors import ErrorKind, no_rows
from rareclass.files import Location
from rareclass.parameters import is_whole
from rareclass.remote import RemotePath, path_of
from rareclass.rows.decoding import (
    BatchDecoder,
    Batches,
    ColumnRoles,
    decode_to_disk,
    select_columns,
)
from rareclass.rows.protocol import LabelledRows
from rareclass.rows.source import RowSource
from rareclass.tables import DETECTED, TextSettings
from rareclass.tables.databases import DatabaseAddress, Query, RunningQuery
from rareclass.tables.folders import FolderPart, numbers_of_folders
from rareclass.tables.frames import frame_of_arrow, plain_batch, plain_schema
from rareclass.tables.parquet import ParquetFile
from rareclass.tables.reading import parse_numbers
from rareclass.tables.table_file import open_parts

_BATCH_ROWS = 1 << 16
_READER = "rareclass-read-ahead"
Item = TypeVar("Item")


def from_table(
    table: Any,
    target: str | None = None,
    *,
    query: str | None = None,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
    separator: str | None = None,
    encoding: str | None = None,
) -> LabelledRows:
    """Rows of a file, a folder, a database or a lazy frame, for ``fit_rows``: of any number.

    They are decoded once, batch by batch, into a nameless scratch file of plain floats, from which
    every pass of a fit reads. Only labels and weights are held in memory. Use ``with`` to delete
    the scratch file at its end.

    Parameters
    ----------
    table : path, str, connection or lazy frame
        A file of Parquet, CSV or JSON lines (text plain or compressed with gzip or bzip2), or a
        folder of one of them: all tables in it and below, sorted by name. Names that start with a
        dot or an underscore are passed over. With `query` a database:
        ``postgresql://user@host/database`` as libpq reads it, ``sqlite:///file.db`` or
        ``duckdb:///file.duckdb``, opened to read only, PostgreSQL in one REPEATABLE READ
        transaction; or an open connection of an ADBC driver or of DuckDB, which stays open. Or a
        polars or narwhals LazyFrame, a DuckDB relation, or a pyarrow RecordBatchReader, which is
        read to its end.
    target : str or None
        Column of the labels: numbers, truth values or strings; those of text are numbers where all
        of them are. None for rows to be scored.
    query : str or None
        Such as ``SELECT * FROM payments WHERE day < '2026-01-01'``. Without an ORDER BY a database
        may give its rows in another order each time: then two models of the same rows may differ
        in the last digits. Needs the extra ``rareclass[sql]``.
    weight : str or None
        Column of weights at or above 0.
    columns : iterable of str or None
        The features, in this order; None means all other columns as the first part has them. Of a
        LazyFrame only those needed are computed.
    dtype : "float32", "float64" or None
        Type of the stored features; None means float32 when all are float32 or narrower, else
        float64, as for text. float32 halves the scratch file.
    scratch : path or None
        Folder for the scratch file; None means $TMPDIR, else /var/tmp, else the system's choice.
    separator : str or None
        Character between cells of CSV; None detects it. Where it is no comma and numbers are
        written with a decimal comma, they are read as such.
    encoding : str or None
        Encoding of CSV and JSON lines, such as "cp1251", where no byte order mark says it; None
        means UTF-8, or cp1252, with a warning, where the first bytes are not UTF-8.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: on a file that is missing, may not be read, is cut short or damaged (naming
        file and row group or line), parts that differ (naming part and column), columns that are
        not numbers, cells that are empty or infinite (naming file, column and row), no rows, a
        full disk, and other types of tables. With the database's own words when it cannot be
        reached, refuses the query, or loses the connection. Errors of polars or DuckDB on the way,
        such as for a missing file, are raised unchanged.

    Warns
    -----
    TableWarning
        When columns of one name were told apart: the later ones are called ``name.1`` and so on.

    Notes
    -----
    Cost: one decoding, run of the query or computation of the frame; rows x features x 4 or 8
    bytes of disk until the result is closed or let go of, or the process is killed; memory of a
    few batches of 16 MiB, what the frame's own steps hold (a sort holds all rows) and 1 to 8 bytes
    a row. Damage within a page of Parquet is only noticed where the file has checksums or the
    compression shows it. Ctrl-C cancels a query in the database. A password is taken from the
    address, from PGPASSWORD or ~/.pgpass, and is in no message. A NUMERIC of PostgreSQL is float64.

    Examples
    --------
    >>> import polars as pl, tempfile
    >>> table = pl.DataFrame({"a": [0.5, 1.5, 9.0], "y": ["ok", "ok", "fraud"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table.write_parquet(f"{folder}/part-0.parquet")
    ...     rows = from_table(folder, target="y")
    >>> rows.shape, rows.feature_names, rows.y.tolist()
    ((3, 1), ('a',), ['ok', 'ok', 'fraud'])
    """
    roles = ColumnRoles.of(target, weight, columns, dtype)
    if query is not None:
        address = DatabaseAddress(table) if isinstance(table, str) else None
        asked = Query(address, query, None if address else table)
        with closing(RunningQuery(asked)) as running:
            return _decoded(asked, running.schema, running.batches(), roles, scratch)
    if isinstance(table, str | Path | RemotePath):
        parts = _FileParts(path_of(table), roles, TextSettings(separator, encoding))
        return decode_to_disk(parts.path, parts.batches(), parts.decoder, scratch, parts.n_rows)
    title, reader = _reader_of(table, roles)
    with reader:
        return _decoded(Path(title), reader.schema, reader, roles, scratch)


def _reader_of(frame: Any, roles: ColumnRoles) -> tuple[str, pa.RecordBatchReader]:
    """Return what messages call a table that is read in parts, and the reader of its rows."""
    native = nw.to_native(frame, pass_through=True)
    package = type(native).__module__.partition(".")[0]
    kind = type(native).__name__
    if package == "polars" and kind == "LazyFrame":
        needed = list(dict.fromkeys(roles.all))
        if roles.features is not None and set(needed) <= set(native.collect_schema()):
            native = native.select(needed)
        schema = pl.DataFrame(schema=native.collect_schema()).to_arrow().schema
        parts = native.collect_batches(chunk_size=_BATCH_ROWS, lazy=True, engine="streaming")
        batches = (batch for part in parts for batch in part.to_arrow().cast(schema).to_batches())
        return "the LazyFrame", pa.RecordBatchReader.from_batches(schema, batches)
    if package in ("duckdb", "_duckdb") and kind == "DuckDBPyRelation":
        return "the relation", native.to_arrow_reader(_BATCH_ROWS)
    if isinstance(native, pa.RecordBatchReader):
        return "the reader", native
    raise ErrorKind.SETTING.error(
        f"A {kind} is not a table that can be read in parts.",
        "Give the name of a file or folder, a polars LazyFrame, a DuckDB relation or a pyarrow "
        "RecordBatchReader; arrays in memory go to fit(X, y) or rareclass.rows.from_arrays.",
    )


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
        As in `from_table`, of Parquet alone.
    batch_rows : int or None
        Most rows that come at once; None means as many as fit 16 MiB, 65,536 at most. Where a
        row group of the file ends, fewer come.

    Returns
    -------
    iterator of LabelledRows
        Each with ``y``, ``sample_weight`` and ``feature_names`` as `from_table` gives them:
        labels of one kind throughout. Its ``close`` ends the thread and closes the file, as does
        the end of the last reference to it, such as leaving a ``for`` loop.

    Raises
    ------
    InputError
        As `from_table`: here and now for what the footers of the files show, on the way for
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
        raise ErrorKind.SETTING.error(f"batch_rows={batch_rows!r} is not a number of rows above 0.")
    parts = _FileParts(path_of(path), ColumnRoles.of(target, weight, columns, dtype))
    if not parts.is_parquet:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} is no Parquet, whose batches have labels of one kind.",
            "Read it with from_table.",
        )
    if not parts.n_rows:
        raise no_rows(parts.path)
    return read_ahead(parts.decoded(batch_rows))


def read_ahead(items: Generator[Item, None, None]) -> Iterator[Item]:
    """Yield the items of a generator that runs in a thread of its own.

    The thread starts with the first item. It ends, and `items` is closed, after the last item, when
    this generator is closed or collected, and after any exception, Ctrl-C included; an item in the
    making is waited for.

    Whatever `items` raises is raised here, after the items before it. At most two items are
    ready, or being made, beside the one in use.

    >>> list(read_ahead(k * k for k in range(4)))
    [0, 1, 4, 9]
    """
    pool, end = ThreadPoolExecutor(1, _READER), object()
    ready = deque(pool.submit(next, items, end) for _ in range(2))
    try:
        while (item := ready.popleft().result()) is not end:
            ready.append(pool.submit(next, items, end))
            yield cast(Item, item)
            del item
    finally:
        for waiting in ready:
            waiting.cancel()
        with suppress(RuntimeError):  # an interpreter that ends
            pool.submit(items.close)
        # The garbage collector may let go of this generator in that very thread.
        pool.shutdown(wait=not threading.current_thread().name.startswith(_READER))


class _FileParts:
    """Files of one table after a look at their columns: no rows are read yet.

    `n_rows` is None where the files do not say it.
    """

    def __init__(self, path: Path, roles: ColumnRoles, text: TextSettings = DETECTED) -> None:
        self.path, self._parts = path, open_parts(path, text)
        self.n_rows: int | None = None
        self.is_parquet = all(isinstance(part.file, ParquetFile) for part in self._parts)
        if not self.is_parquet:
            chosen = select_columns([(part.path, part.columns) for part in self._parts], roles)
            self.decoder = BatchDecoder(chosen, roles.dtype or np.float64, None)
            return
        self._numbers = numbers_of_folders(self._parts) - {roles.target}
        schemas = [(part.path, part.schema(self._numbers)) for part in self._parts]
        is_text = all(roles.target in part.keys for part in self._parts)
        self.decoder = BatchDecoder.of_schemas(schemas, roles, is_text)
        self.n_rows = sum(part.file.estimate_rows() for part in self._parts)

    def batches(self, batch_rows: int | None = None) -> Iterator[tuple[Path, Batches]]:
        """Every part with its batches, of `batch_rows` rows or of as many as fit 16 MiB."""
        chosen = self.decoder.chosen
        size = chosen.batch_rows if batch_rows is None else batch_rows
        for part in self._parts:
            if self.is_parquet:
                batches = part.batches(chosen.all, size, self._numbers, by_group=True)
            else:
                batches = _numbers_of_text(part, chosen, size)
            yield part.path, batches
            part.file.close()

    def decoded(self, batch_rows: int | None) -> Generator[LabelledRows, None, None]:
        """Decode the batches one by one, as rows in memory."""
        decoder = self.decoder
        for X, codes, weights in decoder.decode(self.batches(batch_rows)):
            labels = None if codes is None else decoder.label_values()[codes]
            yield LabelledRows(RowSource.of_array(X), labels, weights, decoder.features)


def _numbers_of_text(part: FolderPart, chosen: ColumnRoles, batch_rows: int) -> Batches:
    n_rows = 0
    for batch in part.batches(chosen.all, batch_rows):
        frame = frame_of_arrow(batch)
        numbers = [frame[name] for name in chosen.all if name != chosen.target]
        frame = frame.with_columns(_as_numbers(c, part.path, n_rows + 1) for c in numbers)
        if chosen.target is not None:
            labels = pl.col(chosen.target)
            frame = frame.with_columns(pl.when(labels != "").then(labels).alias(chosen.target))
        n_rows += len(frame)
        yield from frame.to_arrow().to_batches()


def _as_numbers(cells: pl.Series, path: Path, first_row: int) -> pl.Series:
    numbers, is_text, _ = parse_numbers(cells)
    if not is_text.any():
        return numbers
    place = int(is_text.arg_max() or 0)
    raise ErrorKind.CELL.error(
        f"{path}: column {cells.name!r} holds {cells[place]!r} at row {first_row + place:,} (the "
        "first row is 1), which is not a number.",
        "Correct that cell, leave the column out with columns=, or use the command line, which "
        "encodes tables.",
        column=cells.name,
        row=first_row + place,
        value=cells[place],
    )


def _decoded(
    path: Location,
    schema: pa.Schema,
    batches: Iterable[pa.RecordBatch],
    roles: ColumnRoles,
    scratch: str | Path | None,
) -> LabelledRows:
    """Decode batches of one schema, read once; messages name them by `path`."""
    plain = plain_schema(schema)
    decoder = BatchDecoder.of_schemas([(path, plain)], roles)
    names, size = decoder.chosen.all, decoder.chosen.batch_rows
    pieces = (
        plain_batch(batch, plain).select(names).slice(start, size)
        for batch in batches
        for start in range(0, batch.num_rows, size)
    )
    return decode_to_disk(path, [(path, pieces)], decoder, scratch)
