"""Tables on disk, read in batches of rows in file order."""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol

import polars as pl

from rareclass.errors import InputError
from rareclass.tables.compressed import plain_suffix
from rareclass.tables.csv_file import CsvFile
from rareclass.tables.opening import cannot_open
from rareclass.tables.parquet_file import ParquetFile
from rareclass.tables.svmlight_file import SvmlightFile, looks_like_svmlight

BATCH_ROWS = 50_000
_BATCH_BYTES = 64 << 20
_PARQUET_SUFFIXES = (".parquet", ".pq")
_SVMLIGHT_SUFFIXES = (".svmlight", ".libsvm", ".svm")
_CSV_SUFFIXES = (".csv", ".tsv")


class TableFile(Protocol):
    """A file with named columns."""

    path: Path
    columns: list[str]
    format_name: str

    def estimate_rows(self) -> int:
        """Return the number of rows: exact where the format says it, else an estimate."""
        ...

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order, `batch_rows` or fewer at a time."""
        ...


def batch_rows_for(n_columns: int) -> int:
    """Return the rows of a batch, so that batches of wide tables do not grow with their width.

    Examples
    --------
    >>> batch_rows_for(40), batch_rows_for(4000)
    (50000, 2097)
    """
    return min(BATCH_ROWS, max(256, _BATCH_BYTES // (8 * max(1, n_columns))))


def open_table(path: str | Path, separator: str | None = None) -> TableFile | SvmlightFile:
    """Open a CSV, Parquet or svmlight file for reading; its content decides where it can.

    Parameters
    ----------
    path : str or Path
        The file. CSV may have any of the usual separators and be compressed with gzip or bzip2;
        svmlight likewise.
    separator : str, optional
        What separates the cells, for a CSV file; by default found out.

    Raises
    ------
    InputError
        When the file is missing, empty, not a regular file, or not what its name says.
    """
    path = Path(path)
    beginning, suffix = _beginning(path), plain_suffix(path)
    if beginning[:4] == b"PAR1" or suffix in _PARQUET_SUFFIXES:
        _check_no_separator(path, separator, "Parquet")
        return ParquetFile(path)
    if suffix in _SVMLIGHT_SUFFIXES:
        _check_no_separator(path, separator, "svmlight")
        return SvmlightFile(path)
    if separator is None and suffix not in _CSV_SUFFIXES and looks_like_svmlight(path):
        return SvmlightFile(path)
    return CsvFile(path, separator)


def _check_no_separator(path: Path, separator: str | None, format_name: str) -> None:
    if separator is not None:
        raise InputError(f"--separator: {path} is a {format_name} file.", "Leave the option out.")


def _beginning(path: Path) -> bytes:
    try:
        mode = path.stat().st_mode
        if stat.S_ISDIR(mode):
            raise InputError(f"{path} is a folder.", "Give the name of a file.")
        if not stat.S_ISREG(mode):
            raise InputError(
                f"{path} is a pipe or a device, which cannot be read twice.",
                "Write the data to a file first, and give its name.",
            )
        with path.open("rb") as file:
            text = file.read(16)
    except OSError as error:
        raise cannot_open(path, error) or InputError(
            f"Cannot read {path}: {error.strerror}.", "Copy it to another disk, or restore it."
        ) from error
    if not text:
        raise InputError(f"{path} is empty (0 bytes).", "Check how it was made or copied.")
    return bytes(text)
