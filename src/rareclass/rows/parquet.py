"""Parquet files and folders of them as rows on disk."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from rareclass.remote import path_of
from rareclass.rows.column_types import check_types, label_type
from rareclass.rows.decoding import (
    BatchDecoder,
    Decoder,
    checked_dtype,
    select_columns,
)
from rareclass.rows.labelled import LabelledRows
from rareclass.tables.folders import find_parts
from rareclass.tables.parquet_file import ParquetFile


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
    which every pass of a fit reads. Only labels and weights are held in memory. ``with`` gives the
    scratch file back at its end.

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
        What the features are kept in; None means float32 when all are float32 or narrower, else
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
    table = ParquetTable(path, target, weight, columns, dtype)
    return Decoder(table.decoder(), scratch, table.n_rows).read(table.path, table.parts())


class ParquetTable:
    """A Parquet file, or a folder of them, whose footers were looked at: nothing is read yet.

    `chosen` are the columns to read. Raises `InputError` as `from_parquet`, for what the footers
    show.
    """

    def __init__(
        self,
        path: str | Path,
        target: str | None = None,
        weight: str | None = None,
        columns: Iterable[str] | None = None,
        dtype: Any = None,
    ) -> None:
        self.path = path_of(path)
        self._parts = []
        for name in find_parts(self.path, "parquet"):
            self._parts.append(ParquetFile(name))
            self._parts[-1].release()  # a folder may hold more files than may be open
        known = [(part.path, part.columns) for part in self._parts]
        self.chosen = select_columns(known, target, weight, columns)
        schemas = [(part.path, part.schema) for part in self._parts]
        is_narrow = check_types(schemas, self.chosen)
        self._label_type = None if target is None else label_type(schemas, target)
        if dtype is None:
            dtype = np.float32 if is_narrow else np.float64
        self._dtype = checked_dtype(dtype)
        self.n_rows = sum(part.n_rows for part in self._parts)

    def decoder(self) -> BatchDecoder:
        """What takes the batches of the parts apart."""
        return BatchDecoder(self.chosen, self._dtype, self._label_type)

    def parts(
        self, batch_rows: int | None = None
    ) -> Iterator[tuple[Path, Iterator[pa.RecordBatch]]]:
        """Every part with its rows, in batches of `batch_rows` or of what fits 16 MiB."""
        size = self.chosen.batch_rows if batch_rows is None else batch_rows
        for part in self._parts:
            yield part.path, part.batches(self.chosen.all, size, by_group=True)
            part.release()
