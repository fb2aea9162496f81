"""Tables on disk, read in batches of rows in file order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import polars as pl

from rareclass.data.csv_file import CsvFile
from rareclass.data.parquet_file import ParquetFile
from rareclass.data.svmlight_file import SvmlightFile
from rareclass.errors import InputError

BATCH_ROWS = 50_000


class TableFile(Protocol):
    """A file with named columns."""

    path: Path
    columns: list[str]
    format_name: str

    def estimate_rows(self) -> int:
        """Return the number of rows: exact where the format says it, else an estimate."""
        ...

    def estimate_memory(self) -> int:
        """Return about how many bytes the columns take once read into memory."""
        ...

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = BATCH_ROWS
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order, `batch_rows` or fewer at a time."""
        ...


@dataclass(frozen=True)
class _Beginning:
    name: str
    text: bytes


def open_table(path: str | Path) -> TableFile | SvmlightFile:
    """Open a CSV, Parquet or svmlight file for reading; its content decides where it can.

    Parameters
    ----------
    path : str or Path
        The file. CSV may have any of the usual separators and be compressed with gzip or bzip2;
        svmlight likewise.

    Raises
    ------
    InputError
        When the file is missing, empty, or not what its name says.
    """
    path = Path(path)
    beginning = _beginning(path)
    suffixes = [suffix.lower() for suffix in path.suffixes]
    if beginning.text[:4] == b"PAR1" or ".parquet" in suffixes or ".pq" in suffixes:
        return ParquetFile(path)
    if any(suffix in suffixes for suffix in (".svmlight", ".libsvm", ".svm")):
        return SvmlightFile(path)
    return CsvFile(path)


def _beginning(path: Path) -> _Beginning:
    if path.is_dir():
        raise InputError(f"{path} is a folder.", "Give the name of a file.")
    try:
        with path.open("rb") as file:
            text = file.read(16)
    except FileNotFoundError:
        raise InputError(f"There is no file {path}.", "Check the name.") from None
    except OSError as error:
        raise InputError(f"Cannot read {path}: {error.strerror}.") from error
    if not text:
        raise InputError(f"{path} is empty (0 bytes).", "Check how it was made or copied.")
    return _Beginning(path.name, text)
