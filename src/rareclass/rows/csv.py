"""CSV files and folders of them as rows on disk."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.remote import path_of
from rareclass.rows.decoding import (
    BatchDecoder,
    Decoder,
    Selection,
    checked_dtype,
    select_columns,
)
from rareclass.rows.labelled import LabelledRows
from rareclass.tables.csv_file import CsvFile
from rareclass.tables.folders import find_parts


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

    As `from_parquet`; the text is read once.

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
        What the features are kept in; None means float64. float32 halves the scratch file.
    separator : str or None
        What separates the cells; None finds it out. Where it is no comma and numbers are written
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
    parts = []
    for name in find_parts(path_of(path), "csv"):
        parts.append(CsvFile(name, separator))
        parts[-1].release()  # a folder may hold more files than may be open
    chosen = select_columns([(part.path, part.columns) for part in parts], target, weight, columns)
    decoder = BatchDecoder(chosen, checked_dtype(dtype or np.float64), None)
    return Decoder(decoder, scratch).read(
        path_of(path), ((part.path, _batches(part, chosen)) for part in parts)
    )


def _batches(part: CsvFile, chosen: Selection) -> Iterator[pa.RecordBatch]:
    types = {name: pa.float64() for name in chosen.all if name != chosen.target}
    for batch in part.batches(chosen.all, chosen.batch_rows, types):
        yield _empty_labels_null(batch, chosen.target) if chosen.target else batch
    part.release()


def _empty_labels_null(block: pa.RecordBatch, target: str) -> pa.RecordBatch:
    labels = block.column(target)
    empty = pc.equal(labels, "")
    if not pc.any(empty).as_py():
        return block
    labels = pc.if_else(empty, pa.scalar(None, labels.type), labels)
    return block.set_column(block.schema.get_field_index(target), target, labels)
