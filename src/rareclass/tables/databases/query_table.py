"""The answer to a query as a table: kept on disk for many passes, or streamed for one."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa

from rareclass.errors import InputError, counted
from rareclass.progress import track
from rareclass.scratch_file import Scratch
from rareclass.tables.databases.address import Query
from rareclass.tables.databases.running_query import RunningQuery


class QueryTable:
    """A table with named columns that a database gives.

    The query runs once: at the first need its rows go, batch by batch, to a nameless file on this
    machine's disk, from which every pass reads. So all passes see the same rows in the same order,
    and the database is not kept waiting by what is done with them. Of a table for one pass nothing
    is kept: its rows come straight from the database, and a further pass runs the query again.

    `scratch` is the folder for the file, as in `scratch_folder`. Raises `InputError` as
    `RunningQuery`; when there is no room on the disk; and when a query that is run again gives
    other rows in number.
    """

    format_name = "database"

    def __init__(
        self, query: Query, scratch: str | Path | None = None, one_pass: bool = False
    ) -> None:
        self.path = query
        self._running: RunningQuery | None = RunningQuery(query)
        self._schema = self._running.schema
        self.columns: list[str] = list(self._schema.names)
        self._folder, self._one_pass = scratch, one_pass
        self._kept: _KeptBatches | None = None
        self._n_rows: int | None = None

    @property
    def n_bytes(self) -> int:
        """Bytes on this machine's disk."""
        return 0 if self._one_pass else self._spooled().n_bytes

    def estimate_rows(self) -> int:
        """Return the number of rows, which is exact; 0 while a table for one pass is not read."""
        return (self._n_rows or 0) if self._one_pass else self._spooled().n_rows

    def batches(
        self, columns: Sequence[str] | None = None, batch_rows: int = 50_000
    ) -> Iterator[pl.DataFrame]:
        """Yield the rows in the order of the query, `batch_rows` or fewer at a time."""
        wanted = list(self.columns if columns is None else columns)
        batches = self._streamed() if self._one_pass else self._spooled().batches()
        for batch in batches:
            chosen = batch.select(wanted)
            for start in range(0, batch.num_rows, batch_rows):
                frame = pl.from_arrow(chosen.slice(start, batch_rows))
                assert isinstance(frame, pl.DataFrame)
                yield frame

    def _take(self) -> RunningQuery:
        running, self._running = self._running, None
        if running is None or running.is_closed:
            running = RunningQuery(self.path)
            if running.schema != self._schema:
                raise InputError(f"{self.path} gave other columns before.", "Run it again.")
        return running

    def _streamed(self) -> Iterator[pa.RecordBatch]:
        running, n_rows = self._take(), 0
        try:
            for batch in running.batches():
                yield batch
                n_rows += batch.num_rows
        finally:
            if not running.is_closed:  # only the first rows were looked at
                self._running = running
        if self._n_rows not in (None, n_rows):
            raise InputError(
                f"{self.path} gave {counted(self._n_rows or 0, 'row')} and, run again, {n_rows:,}.",
                "Read a table that nobody changes meanwhile.",
            )
        self._n_rows = n_rows

    def _spooled(self) -> "_KeptBatches":
        if self._kept is None:
            kept = _KeptBatches(self._folder)
            with track(f"Reading {self.path.name}") as advance:
                for batch in self._take().batches():
                    kept.append(batch)
                    advance(batch.num_rows)
            self._kept = kept
        return self._kept


class _KeptBatches:
    """Arrow batches in a nameless file."""

    def __init__(self, folder: str | Path | None) -> None:
        self._file = Scratch(folder)
        self._ends = [0]
        self.n_rows = 0

    @property
    def n_bytes(self) -> int:
        return self._ends[-1]

    def append(self, batch: pa.RecordBatch) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        self._file.append(sink.getvalue())
        self._ends.append(self._file.size)
        self.n_rows += batch.num_rows

    def batches(self) -> Iterator[pa.RecordBatch]:
        for start, end in zip(self._ends, self._ends[1:], strict=False):
            content = np.empty(end - start, np.uint8)
            self._file.read_into(content, start)
            with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
                yield reader.read_next_batch()
