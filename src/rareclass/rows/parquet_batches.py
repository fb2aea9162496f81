"""Parquet files and folders of them in one pass, a batch of rows after the other."""

from collections.abc import Generator, Iterable, Iterator
from numbers import Integral
from pathlib import Path
from typing import Any

from rareclass.rows.decoding import BatchDecoder, DecodedBatch, no_rows
from rareclass.rows.labelled import LabelledRows
from rareclass.rows.parquet import ParquetTable
from rareclass.rows.source import RowSource
from rareclass.tables.read_ahead import read_ahead


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
    if batch_rows is not None and not (isinstance(batch_rows, Integral) and batch_rows >= 1):
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
