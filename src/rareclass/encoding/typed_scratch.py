"""Typed columns in a nameless file on disk: written batch by batch, read the same way."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rareclass.rows.scratch import Scratch

# Rows of a text file are an estimate, and the first may be the longest: less than this part of
# what they foretell is surely too little room.
_SURE_SHARE = 0.5


class TypedScratch:
    """A table on disk of which one batch at a time is in memory.

    Text is parsed and dates are understood once, when rows are written; every later pass finds
    them ready.

    Columns of numbers that float32 holds exactly, the `narrow` ones, take half the room. About how
    many rows will come is asked for so that far too little room for them is said at the first
    batch.
    """

    def __init__(
        self,
        folder: str | Path | None = None,
        narrow: Sequence[str] = (),
        expected_rows: int | None = None,
    ) -> None:
        self._scratch = Scratch(folder)
        self._expected_rows = expected_rows
        self._narrow = [pl.col(name).cast(pl.Float32) for name in narrow]
        self._wide = [pl.col(name).cast(pl.Float64) for name in narrow]
        # Where batch k begins, in rows and in bytes; the end of the last one stands last.
        self._rows, self._bytes = [0], [0]

    @property
    def n_rows(self) -> int:
        """Rows written so far."""
        return self._rows[-1]

    @property
    def n_bytes(self) -> int:
        """Bytes that they take on disk."""
        return self._bytes[-1]

    def append(self, frame: pl.DataFrame) -> None:
        """Write rows at the end; every batch has the same columns."""
        table: pa.Table = frame.with_columns(self._narrow).to_arrow()
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        content = sink.getvalue()
        if not self.n_rows and self._expected_rows and frame.height:
            n_bytes = content.size * max(1.0, self._expected_rows / frame.height)
            self._scratch.expect(int(n_bytes), _SURE_SHARE)
        self._scratch.append(content)
        self._rows.append(self.n_rows + frame.height)
        self._bytes.append(self._scratch.size)

    def frames(
        self, columns: Sequence[str], rows: NDArray[np.int64]
    ) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield the chosen rows batch by batch, each with its place among them.

        Row numbers never fall; batches without any of them are not read.
        """
        start = 0
        while start < len(rows):
            batch = bisect_right(self._rows, int(rows[start])) - 1
            first, end = self._rows[batch], self._rows[batch + 1]
            stop = start + int(np.searchsorted(rows[start:], end))
            frame = self._read(batch, columns)
            chosen = rows[start:stop] - first
            if len(chosen) != frame.height or (np.diff(chosen) != 1).any():
                frame = frame[chosen]
            yield slice(start, stop), frame
            start = stop

    def _read(self, batch: int, columns: Sequence[str]) -> pl.DataFrame:
        content = np.empty(self._bytes[batch + 1] - self._bytes[batch], np.uint8)
        self._scratch.read_into(content, self._bytes[batch])
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            frame = pl.from_arrow(reader.read_all().select(list(columns)))
        assert isinstance(frame, pl.DataFrame)
        wide = [cast for cast in self._wide if cast.meta.output_name() in columns]
        return frame.with_columns(wide)
