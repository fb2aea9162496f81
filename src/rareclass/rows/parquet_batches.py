"""Parquet files and folders of them in one pass, a batch of rows after the other."""

import atexit
import threading
from collections.abc import Generator, Iterable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

from rareclass.parameters import is_whole
from rareclass.rows.decoding import BatchDecoder, DecodedBatch, no_rows
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.parquet import ParquetTable
from rareclass.rows.source import RowSource

T = TypeVar("T")


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
    The next ones are decoded in a thread while the last ones are worked on.

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
    table = ParquetTable(path, target, weight, columns, dtype)
    if not table.n_rows:
        raise no_rows(table.path)
    return read_ahead(_decoded(table, batch_rows))


def _decoded(table: ParquetTable, batch_rows: int | None) -> Generator[LabelledRows, None, None]:
    decoder = table.decoder()
    for path, batches in table.parts(batch_rows):
        first_row = 1
        for batch in batches:
            yield _in_memory(decoder.decode(batch, path, first_row), decoder)
            first_row += batch.num_rows


def _in_memory(decoded: DecodedBatch, decoder: BatchDecoder) -> LabelledRows:
    X, codes, weights = decoded
    return LabelledRows(
        RowSource(X.shape, X.dtype, lambda rows: X[rows], False),
        None if codes is None else decoder.label_values()[codes],
        weights,
        tuple(decoder.chosen.features),
    )


def read_ahead(items: Generator[T, None, None], depth: int = 2) -> Iterator[T]:
    """Hand on the items of a generator that runs in a thread of its own.

    The thread starts with the first item that is asked for. It is gone, and `items` closed, when
    the last item was handed on, when this generator is closed or let go of, and after any
    exception, Ctrl-C included; the item that is being made then is waited for.

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

    # Not waited for by an interpreter that ends with this generator half used: `stop` is called.
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
