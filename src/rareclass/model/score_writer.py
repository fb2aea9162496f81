"""Files of scores, written a batch at a time."""

from pathlib import Path
from typing import Protocol

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq


class ScoreWriter(Protocol):
    """Takes scored rows a batch at a time."""

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        ...

    def __enter__(self) -> "ScoreWriter": ...

    def __exit__(self, *error: object) -> None: ...


class CsvWriter:
    """Writes CSV; the first column is the user's own, truth values of ours are 1 and 0."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb")
        self._is_first = True

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        ours = frame.columns[1:]
        flags = [pl.col(name).cast(pl.Int8) for name in ours if frame[name].dtype == pl.Boolean]
        frame.with_columns(flags).write_csv(self._file, include_header=self._is_first)
        self._is_first = False

    def __enter__(self) -> "CsvWriter":
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()


class ParquetWriter:
    """Writes Parquet, with the types of the first rows."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._writer: pq.ParquetWriter | None = None

    def write(self, frame: pl.DataFrame) -> None:
        """Write the next rows."""
        table: pa.Table = frame.to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._path, table.schema)
        self._writer.write_table(table.cast(self._writer.schema))

    def __enter__(self) -> "ParquetWriter":
        return self

    def __exit__(self, *error: object) -> None:
        if self._writer is not None:
            self._writer.close()


def score_writer(path: Path) -> ScoreWriter:
    """Return the writer for a file of this name."""
    return CsvWriter(path) if path.suffix.lower() == ".csv" else ParquetWriter(path)
