"""Parquet files, read one batch of rows at a time."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass.errors import InputError
from rareclass.tables.opening import cannot_open
from rareclass.tables.parquet_stream import open_stream


class ParquetFile:
    """A Parquet file; columns keep the types they have in the file.

    Parameters
    ----------
    path : Path
        The file.

    Raises
    ------
    InputError
        When it may not be read, is not a Parquet file, or is cut short.
    """

    format_name = "Parquet"

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with pq.ParquetFile(path) as file:
                self.columns: list[str] = list(file.schema_arrow.names)
                self._rows = int(file.metadata.num_rows)
        except (pa.ArrowException, OSError) as error:
            raise _unreadable(path, error) from error

    def estimate_rows(self) -> int:
        """Return the number of rows, which the file says."""
        return self._rows

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in file order, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        n_read = 0
        try:
            with open_stream(self.path) as file:
                for batch in file.iter_batches(batch_size=batch_rows, columns=wanted):
                    frame = pl.from_arrow(batch)
                    assert isinstance(frame, pl.DataFrame)
                    yield frame.select(wanted)
                    n_read += batch.num_rows
        except (pa.ArrowException, OSError) as error:
            raise self._damaged(wanted, n_read, error) from error

    def _damaged(self, wanted: list[str], n_read: int, error: Exception) -> InputError:
        """The error with the row group, found by reading again from the last good row on."""
        try:
            with open_stream(self.path) as file:
                ends = np.cumsum(
                    [file.metadata.row_group(k).num_rows for k in range(file.num_row_groups)]
                )
                for group in range(int(np.searchsorted(ends, n_read, side="right")), len(ends)):
                    try:
                        for _ in file.iter_batches(row_groups=[group], columns=wanted):
                            pass
                    except (pa.ArrowException, OSError) as again:
                        reason = (str(again).splitlines() or [""])[0].rstrip(".")[:200]
                        return InputError(
                            f"{self.path}: row group {group + 1} of {len(ends)} cannot be read: "
                            f"{reason}.",
                            "Copy or write the file again; nobody may change it while it is read.",
                        )
        except (pa.ArrowException, OSError) as again:
            error = again
        return _unreadable(self.path, error)


def _unreadable(path: Path, error: Exception) -> InputError:
    try:
        with path.open("rb") as file:
            starts_well = file.read(4) == b"PAR1"
    except OSError as unopened:
        error, starts_well = unopened, True
    missing = cannot_open(path, error, was_there=True)
    if missing is not None:
        return missing
    if starts_well:
        return InputError(
            f"{path} is a Parquet file that is cut short or damaged.", "Copy or write it again."
        )
    return InputError(
        f"{path} is named like a Parquet file but is not one.",
        "If it holds text, rename it to .csv (or .csv.gz when compressed).",
    )
