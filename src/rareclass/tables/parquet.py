"""Parquet files, opened once: in batches with little in memory, or from a position on."""

import json
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from rareclass.errors import ErrorKind, InputError
from rareclass.remote import RemotePath
from rareclass.tables import columns_fault, unique_names
from rareclass.tables.byte_streams import OTHER_ROWS, cannot_open, changed, mark_of, not_appended
from rareclass.tables.frames import category_columns, frame_of_arrow, stored_index
from rareclass.tables.text_reader import READ_ALL, TEXT_LIMIT, Batch, Reading, Rejected

# A row group up to this size is read column by column as it is: that is the fastest.
_SMALL_GROUP_BYTES = 32 << 20
# Column chunks of a larger one are read through buffers of this size.
_BUFFER_BYTES = 1 << 17
_LEAST_BUFFER_BYTES = 1 << 12
# Rows at either end of what was read of a stream by which it is known again.
_COMPARED_ROWS = 16
# Rows of a batch of a stream.
_STREAMED_ROWS = 1 << 16
_FAULTS = (pa.ArrowException, OSError)


class ParquetFile:
    """A Parquet file, as a table or as rows from a position; columns keep the types of the file.

    A writer may put a whole table into one row group. pyarrow by default holds its column chunks
    while it reads; here a buffer, a page and a dictionary a column are held. Checksums are looked
    at where the file has them.

    `columns` are those handed out by `read`, by default all: then those of one name are told apart
    by a number, as in `schema`. Raises `InputError` when the file is missing or may not be read, is
    no Parquet file, is cut short, or has other rows before a position than were read; on reading,
    at a row group that is damaged, and when the file was changed.
    """

    format_name, has_unfinished, nested = "Parquet", False, None

    def __init__(
        self,
        path: Path,
        name: str = "",
        position: dict[str, Any] | None = None,
        reading: Reading = READ_ALL,
    ) -> None:
        self.path, self._name = path, name
        self._source: pa.NativeFile | None = None
        try:
            with pq.ParquetFile(self._opened()) as file:
                footer, schema = file.metadata, file.schema_arrow
            self.n_bytes = self.size_read = int(self._opened().size())
        except _FAULTS as error:
            raise cannot_open(path, error) or self._unreadable(error) from error
        self._given = list(schema.names)
        self._known = unique_names(str(path), list(schema.names))
        index, names = stored_index(schema), zip(schema.names, self._known, strict=True)
        self.index_columns = tuple(name for given, name in names if given in index)
        fields = [field.with_name(name) for field, name in zip(schema, self._known, strict=True)]
        self.schema = pa.schema(fields)
        self.category_columns = category_columns(self.schema)
        self.n_rows, self.n_groups = int(footer.num_rows), int(footer.num_row_groups)
        self._ends = np.cumsum([footer.row_group(k).num_rows for k in range(self.n_groups)])
        self._row, self.columns = 0, reading.columns_of(self._known)
        self._first, self._last = list[tuple[Any, ...]](), list[tuple[Any, ...]]()
        if position is not None:
            self._row, self.columns = int(position["row"]), position["columns"]
            self._first = self._rows(0, min(self._row, _COMPARED_ROWS))
            self._last = self._rows(max(self._row - _COMPARED_ROWS, 0), self._row)
            if self._mark() != position["ends"]:
                raise not_appended(str(path), OTHER_ROWS)
        self._unfit = columns_fault(self.columns, self._known)
        self._left = pa.Table.from_batches([], self.schema)
        self._batches: Generator[pa.RecordBatch, None, None] | None = None  # of `read`

    def estimate_rows(self) -> int:
        """Return the number of rows, which the file says."""
        return self.n_rows

    def finish(self) -> None:
        """Do nothing: no rows are added while these are read."""

    def close(self) -> None:
        """Close the file; another pass of `batches` opens it again."""
        if self._batches is not None:
            self._batches.close()
        if self._source is not None:
            self._source.close()
            self._source = None

    def read(self, max_records: int) -> Batch | None:
        """Return the next rows; None at the end.

        Where there are not the columns asked for, all rows are rejected.
        """
        if self._batches is None:
            self._batches = self.batches(self._known, _STREAMED_ROWS, self._row, by_group=True)
        while self._left.num_rows < max_records and (batch := next(self._batches, None)):
            more = pa.Table.from_batches([batch])
            self._left = pa.concat_tables([self._left, more]) if self._left.num_rows else more
        table = self._left.slice(0, max_records)
        self._left = self._left.slice(table.num_rows)
        if max_records and not table.num_rows:
            return None
        lines = np.arange(self._row + 1, self._row + table.num_rows + 1, dtype=np.int64)
        self._row += table.num_rows
        n_first = _COMPARED_ROWS - len(self._first)
        self._first += frame_of_arrow(table.slice(0, n_first)).rows()
        last = table.slice(max(table.num_rows - _COMPARED_ROWS, 0))
        self._last = (self._last + frame_of_arrow(last).rows())[-_COMPARED_ROWS:]
        position = {"row": self._row, "columns": self.columns, "ends": self._mark()}
        if self._unfit is None:
            frame = frame_of_arrow(table.select(self.columns))
            return Batch(frame, lines, self._name, [], len(lines), position)
        texts = (json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist())
        rejected = [
            Rejected(self._name, line, self._unfit, text[:TEXT_LIMIT])
            for line, text in zip(lines.tolist(), texts, strict=True)
        ]
        empty = pl.DataFrame(schema=dict.fromkeys(self.columns, pl.String))
        return Batch(empty, lines[:0], self._name, rejected, len(lines), position)

    def _rows(self, first: int, stop: int) -> list[tuple[Any, ...]]:
        """Return some rows of the file."""
        batches = self.batches(self._known, _STREAMED_ROWS, first, stop)
        return frame_of_arrow(pa.Table.from_batches(batches, self.schema)).rows()

    def _mark(self) -> str:
        """Digest of the first and last rows before the next one."""
        return mark_of(repr((self._first, self._last)).encode())

    def batches(
        self,
        columns: Sequence[str],
        batch_rows: int,
        first: int = 0,
        stop: int | None = None,
        *,
        by_group: bool = False,
    ) -> Generator[pa.RecordBatch, None, None]:
        """Yield the rows from `first` on, counted from 0, before `stop`, `batch_rows` at most.

        Where `by_group`, no batch goes beyond the end of a row group. Row groups before the first
        row are not read.
        """
        n_read, stop = first, self.n_rows if stop is None else stop
        try:
            with self._reader() as file:
                group = int(np.searchsorted(self._ends, n_read, side="right"))
                skipped = n_read - (int(self._ends[group - 1]) if group else 0)
                groups = range(group, self.n_groups)
                for span in ([k] for k in groups) if by_group else [list(groups)]:
                    for batch in self._of_groups(file, span, columns, batch_rows):
                        passed = min(skipped, batch.num_rows)
                        batch, skipped = batch.slice(passed, stop - n_read), skipped - passed
                        n_read += batch.num_rows
                        if batch.num_rows:
                            yield batch
                        if n_read == stop < self.n_rows:
                            return
                    if span and n_read != int(self._ends[span[-1]]):
                        raise self._damaged(span[-1], "not all of its rows can be read")
        except _FAULTS as error:
            raise self._fault(list(columns), n_read, error) from error

    def _opened(self) -> pa.NativeFile:
        if self._source is None:
            if isinstance(self.path, RemotePath):
                self._source = pa.PythonFile(self.path.open())
            else:
                self._source = pa.OSFile(str(self.path))
        return self._source

    def _reader(self) -> "pq.ParquetFile":
        source = self._opened()
        with pq.ParquetFile(source) as file:
            footer = file.metadata
        if (footer.num_rows, footer.num_row_groups) != (self.n_rows, self.n_groups):
            raise changed(self.path)
        sizes = [footer.row_group(k).total_byte_size for k in range(footer.num_row_groups)]
        buffer = 0
        if max(sizes, default=0) > _SMALL_GROUP_BYTES:
            share = _SMALL_GROUP_BYTES // max(1, footer.num_columns)
            buffer = max(_LEAST_BUFFER_BYTES, min(_BUFFER_BYTES, share))
        return pq.ParquetFile(
            source,
            metadata=footer,
            buffer_size=buffer,
            pre_buffer=False,
            page_checksum_verification=True,
        )

    def _of_groups(
        self, file: "pq.ParquetFile", groups: list[int], columns: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        if not groups:
            return
        # By name, a column that is there twice comes twice.
        is_renamed = self._known != self._given
        for batch in file.iter_batches(batch_rows, groups, None if is_renamed else list(columns)):
            if is_renamed:
                batch = batch.rename_columns(self._known)
            yield batch.select(list(columns))

    def _fault(self, columns: list[str], n_read: int, error: Exception) -> InputError:
        """The error with the row group, found by reading again from the last good row on."""
        try:
            with self._reader() as file:
                first = int(np.searchsorted(self._ends, n_read, side="right"))
                for group in range(first, self.n_groups):
                    try:
                        for _ in self._of_groups(file, [group], columns, 1 << 16):
                            pass
                    except _FAULTS as again:
                        reason = (str(again).splitlines() or [""])[0].rstrip(".")[:200]
                        return self._damaged(group, reason)
        except _FAULTS as again:
            error = again
        return self._unreadable(error)

    def _damaged(self, group: int, reason: str) -> InputError:
        return ErrorKind.DAMAGED_FILE.error(
            f"{self.path}: row group {group + 1} of {self.n_groups} cannot be read: {reason}.",
            "Copy or write the file again; nobody may change it while it is read.",
        )

    def _unreadable(self, error: Exception) -> InputError:
        try:
            with self.path.open("rb") as file:
                starts_well = file.read(4) == b"PAR1"
        except OSError as unopened:
            error, starts_well = unopened, True
        missing = cannot_open(self.path, error, was_there=True)
        if missing is not None:
            return missing
        if starts_well:
            return ErrorKind.DAMAGED_FILE.error(
                f"{self.path} is a Parquet file that is cut short or damaged.",
                "Copy or write it again.",
            )
        return ErrorKind.FILE_FORMAT.error(
            f"{self.path} is named like a Parquet file but is not one.",
            "If it holds text, rename it to .csv (or .csv.gz when compressed).",
        )


def is_complete(path: Path) -> bool:
    """Say whether a Parquet file is there and was written to its end, by its last bytes."""
    try:
        with path.open("rb") as file:
            if file.seek(0, 2) < 12:
                return False
            file.seek(-4, 2)
            return file.read(4) == b"PAR1"
    except FileNotFoundError:  # renamed in the meantime
        return False
