"""Parquet files as a stream of rows."""

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Any

from rareclass.errors import InputError
from rareclass.tables.arrow_source import ArrowSource
from rareclass.tables.parquet_file import ParquetFile

_BATCH_ROWS = 1 << 16


class ParquetSource(ArrowSource):
    """The rows of a Parquet file, with little of it in memory; cells as `ArrowSource` has them."""

    def __init__(
        self,
        path: Path,
        name: str,
        position: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        exact_columns: Collection[str] = (),
    ) -> None:
        self._file = ParquetFile(path)
        self.size = self._file.n_bytes
        row = 0
        if position is not None:
            row, columns = int(position["row"]), position["columns"]
        if row > self._file.n_rows:
            raise InputError(
                f"{path} has {self._file.n_rows:,} rows; {row:,} had been read from it before.",
                "Do not change a file that is being read; start again with an empty checkpoint.",
            )
        found = self._file.columns
        self._parts = self._file.batches(found, _BATCH_ROWS, first_row=row, by_group=True)
        super().__init__(name, self._file.schema, self._parts, row, columns, exact_columns)

    def finish(self) -> None:
        """Nothing: a Parquet file does not grow."""

    def close(self) -> None:
        """Close the file."""
        self._parts.close()
        self._file.release()
