"""Parquet and CSV files, and folders of them, as rows: decoded to disk, or batch by batch."""

import atexit
import threading
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.parameters import is_whole
from rareclass.remote import path_of
from rareclass.rows.decoding import (
    BatchDecoder,
    Batches,
    ColumnRoles,
    decode_to_disk,
    no_rows,
    select_columns,
)
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.source import RowSource
from rareclass.tables.csv_file import CsvFile
from rareclass.tables.folders import find_parts
from rareclass.tables.parquet import ParquetFile

T = TypeVar("T")


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
        parts.append(CsvFile(name, separator))
        parts[-1].release()  # a folder may hold more files than may be open
    chosen = select_columns([(part.path, part.columns) for part in parts], roles)
    decoder = BatchDecoder(chosen, roles.dtype or np.float64, None)
    batches = ((part.path, _csv_batches(part, decoder)) for part in parts)
    return decode_to_disk(path_of(path), batches, decoder, scratch)


class _ParquetParts:
    """Parquet file, or folder of them, after a look at the footers: no rows are read yet.

    Raises `InputError` for the faults that footers show.
    """

    def __init__(self, path: str | Path, roles: ColumnRoles) -> None:
        self.path = path_of(path)
        self._files = []
        for name in find_parts(self.path, "parquet"):
            self._files.append(ParquetFile(name))
            self._files[-1].release()  # a folder may hold more files than may be open
        self.decoder = BatchDecoder.of_schemas([(f.path, f.schema) for f in self._files], roles)
        self.n_rows = sum(file.n_rows for file in self._files)

    def batches(self, batch_rows: int | None = None) -> Iterator[tuple[Path, Batches]]:
        """Every part with its batches, of `batch_rows` rows or of as many as fit 16 MiB."""
        chosen = self.decoder.chosen
        size = chosen.batch_rows if batch_rows is None else batch_rows
        for file in self._files:
            yield file.path, file.batches(chosen.all, size, by_group=True)
            file.release()

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


def _csv_batches(file: CsvFile, decoder: BatchDecoder) -> Batches:
    chosen, target = decoder.chosen, decoder.chosen.target
    types = {name: pa.float64() for name in chosen.all if name != target}
    for batch in file.batches(chosen.all, chosen.batch_rows, types):
        if target is not None:
            labels = batch.column(target)
            place = batch.schema.get_field_index(target)
            nulls = pc.if_else(pc.equal(labels, ""), pa.scalar(None, labels.type), labels)
            batch = batch.set_column(place, target, nulls)
        yield batch
    file.release()


def read_ahead(items: Generator[T, None, None], depth: int = 2) -> Iterator[T]:
    """Yield the items of a generator that runs in a thread of its own.

    The thread starts with the first item. It ends, and `items` is closed, after the last item, when
    this generator is closed or collected, and after any exception, Ctrl-C included; an item in the
    making is waited for.

    Whatever `items` raises is raised here, after the items before it. At most `depth` items are
    ready, or being made, beside the one in use.

    Examples
    --------
    >>> list(read_ahead(k * k for k in range(4)))
    [0, 1, 4, 9]
    """
    ready: SimpleQueue[Any] = SimpleQueue()
    room, stopped = threading.Semaphore(depth), threading.Event()
    end = object()

    def make() -> None:
        try:
            while room.acquire() and not stopped.is_set():
                ready.put((next(items), None))
        except StopIteration:
            ready.put((end, None))
        except BaseException as error:
            ready.put((end, error))
        finally:
            items.close()

    def stop() -> None:
        stopped.set()
        room.release()
        # The garbage collector may let go of this generator in that very thread.
        if thread is not threading.current_thread():
            thread.join()

    # A daemon: an interpreter that ends with this generator half used calls `stop` instead.
    thread = threading.Thread(target=make, name="rareclass-read-ahead", daemon=True)
    atexit.register(stop)
    thread.start()
    try:
        while True:
            item, failure = ready.get()
            if failure is not None:
                try:
                    raise failure
                finally:
                    del failure  # its traceback holds this frame
            if item is end:
                return
            room.release()
            yield item
            del item
    finally:
        stop()
        atexit.unregister(stop)
