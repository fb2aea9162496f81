"""CSV files and folders of them as rows on disk."""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from rareclass.errors import InputError
from rareclass.rows.decoding import (
    BatchDecoder,
    Decoder,
    Selection,
    checked_dtype,
    first_line,
    select_columns,
)
from rareclass.rows.labelled import LabelledRows
from rareclass.tables.opening import cannot_open
from rareclass.tables.parts import find_parts

_SUFFIXES = (".csv", ".csv.gz", ".csv.bz2")
_BLOCK_BYTES = 4 << 20
_BAD_CELL = re.compile(r"In CSV column #(\d+): Row #(\d+): .*?(?:invalid value '(.*)')?$")


def from_csv(
    path: str | Path,
    target: str | None = None,
    *,
    weight: str | None = None,
    columns: Iterable[str] | None = None,
    dtype: Any = None,
    scratch: str | Path | None = None,
    separator: str = ",",
) -> LabelledRows:
    """Rows of a CSV file, or of a folder of them, for ``fit_rows``: of any size.

    As `from_parquet`; the text is read once.

    Parameters
    ----------
    path : path
        A file with a header line, plain or ending in .gz or .bz2, or a folder: then all
        ``*.csv``, ``*.csv.gz`` and ``*.csv.bz2`` in it and below, sorted by name.
    target : str or None
        Column of the labels: numbers where all of them are numbers, else strings. None for rows
        to be scored.
    weight, columns, scratch
        As in `from_parquet`.
    dtype : "float32", "float64" or None
        What the features are kept in; None means float64. float32 halves the scratch file.
    separator : str
        What separates the cells.

    Returns
    -------
    LabelledRows

    Raises
    ------
    InputError
        A ValueError: as `from_parquet`, naming file, column, row and value of a bad cell.

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
    parts = find_parts(Path(path), _SUFFIXES)
    known = [(part, _names(part, separator)) for part in parts]
    chosen = select_columns(known, target, weight, columns)
    decoder = BatchDecoder(chosen, checked_dtype(dtype or np.float64), None)
    return Decoder(decoder, scratch).read(
        Path(path), ((part, _batches(part, chosen, separator)) for part in parts)
    )


def _names(path: Path, separator: str) -> list[str]:
    """The column names of a file."""
    try:
        with _reader(path, separator, {}, threads=False) as reader:
            return list(reader.schema.names)
    except (pa.ArrowException, OSError) as error:
        raise cannot_open(path, error) or _unreadable(path, error, separator, []) from error


def _reader(
    path: Path, separator: str, types: dict[str, pa.DataType], threads: bool
) -> pa_csv.CSVStreamingReader:
    return pa_csv.open_csv(
        path,
        read_options=pa_csv.ReadOptions(use_threads=threads, block_size=_BLOCK_BYTES),
        parse_options=pa_csv.ParseOptions(delimiter=separator, newlines_in_values=True),
        convert_options=pa_csv.ConvertOptions(column_types=types, include_columns=list(types)),
    )


def _batches(path: Path, chosen: Selection, separator: str) -> Iterator[pa.RecordBatch]:
    types = dict.fromkeys(chosen.all, pa.float64())
    if chosen.target:
        types[chosen.target] = pa.string()
    try:
        with _reader(path, separator, types, threads=True) as reader:
            for block in reader:
                if chosen.target:
                    block = _empty_labels_null(block, chosen.target)
                for start in range(0, block.num_rows, chosen.batch_rows):
                    yield block.slice(start, chosen.batch_rows)
    except (pa.ArrowException, OSError) as error:
        unopened = cannot_open(path, error, was_there=True)
        raise unopened or _located(path, error, separator, types) from error


def _empty_labels_null(block: pa.RecordBatch, target: str) -> pa.RecordBatch:
    labels = block.column(target)
    empty = pc.equal(labels, "")
    if not pc.any(empty).as_py():
        return block
    labels = pc.if_else(empty, pa.scalar(None, pa.string()), labels)
    return block.set_column(block.schema.get_field_index(target), target, labels)


def _located(
    path: Path, error: Exception, separator: str, types: dict[str, pa.DataType]
) -> InputError:
    """The error with its row, which only a reader with one thread knows."""
    try:
        with _reader(path, separator, types, threads=False) as reader:
            for _ in reader:
                pass
    except (pa.ArrowException, OSError) as again:
        error = again
    return _unreadable(path, error, separator, _names(path, separator))


def _unreadable(path: Path, error: Exception, separator: str, names: list[str]) -> InputError:
    reason = first_line(error)
    cell = _BAD_CELL.match(reason)
    if cell and names and cell[3] is not None:
        # The header line is the first row of the reader.
        return InputError(
            f"{path}: column {names[int(cell[1])]!r} holds {cell[3]!r} at row "
            f"{int(cell[2]) - 1:,} (the first row is 1), which is not a number.",
            "Correct that cell, leave the column out with columns=, or use the command line, "
            "which encodes tables.",
        )
    if "UTF8" in reason:
        return InputError(
            f"{path} is not UTF-8 text.", "Convert it: iconv -f latin1 -t utf-8 OLD > NEW"
        )
    return InputError(
        f"{path} cannot be read as a table separated by {separator!r}: "
        f"{reason.removeprefix('CSV parse error: ')}.",
        "Every row needs as many cells as the header line; a compressed file must be whole.",
    )
