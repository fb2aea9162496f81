"""A table read for training that stays on disk: typed once, columns understood on the way."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rareclass.encoding.training_table import ReadingPlan, plan_reading
from rareclass.errors import InputError
from rareclass.rows.decoding import MOST_LABELS
from rareclass.scratch_file import Scratch
from rareclass.tables.columns import Column, FactsGatherer
from rareclass.tables.table_file import TableFile, batch_rows_for

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


_NO_LABEL = -1


@dataclass(frozen=True)
class StreamedTable:
    """A training file of any size.

    `cells` has all rows, those without a label too; `columns` every column that was looked at,
    whose counts of distinct values are estimates beyond 16,384. A code is the position of a row's
    label, -1 for none. `plan` reads the same cells again.
    """

    plan: ReadingPlan
    cells: TypedScratch
    columns: list[Column]
    labels: list[str]
    codes: NDArray[np.int16]

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label, the most frequent first."""
        counted = np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))
        return dict(Counter(dict(zip(self.labels, counted.tolist(), strict=True))).most_common())


def stream_training_table(
    file: TableFile,
    target: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
    scratch: str | Path | None = None,
) -> StreamedTable:
    """Read a file for training as `read_training_table` does, holding one batch of it.

    Raises `InputError` as that does; for a target with more than 10,000 labels; for a full disk.
    """
    plan = plan_reading(file, target, drop, categories, keep)
    gatherers: list[FactsGatherer] = []
    cells: TypedScratch | None = None
    codes: list[NDArray[np.int16]] = []
    code_of: dict[str, int] = {}
    for typed, labels in plan.typed_batches(batch_rows_for(len(plan.names))):
        if cells is None:
            narrow = _narrow_columns(plan, typed)
            cells = TypedScratch(scratch, narrow, file.estimate_rows())
            gatherers = [FactsGatherer(column.name, column.dtype) for column in typed]
        for gatherer, column in zip(gatherers, typed, strict=True):
            gatherer.add(column)
        codes.append(_coded(labels, code_of, target))
        cells.append(typed)
    assert cells is not None  # plan_reading refuses a file without rows
    columns = plan.describe(gatherer.facts() for gatherer in gatherers)
    return StreamedTable(plan, cells, columns, list(code_of), np.concatenate(codes))


def _narrow_columns(plan: ReadingPlan, typed: pl.DataFrame) -> list[str]:
    """The columns of numbers that are 32-bit floats or narrower in the file."""
    first = next(iter(plan.file.batches(plan.names, 1)))
    narrow = (pl.Float32, pl.Int8, pl.Int16, pl.UInt8, pl.UInt16)
    return [c.name for c in typed if c.dtype == pl.Float64 and first[c.name].dtype in narrow]


def _coded(labels: pl.Series, code_of: dict[str, int], target: str) -> NDArray[np.int16]:
    """Return small numbers for labels, the same in every batch."""
    for label in labels.unique(maintain_order=True).drop_nulls():
        code_of.setdefault(label, len(code_of))
    if len(code_of) > MOST_LABELS:
        raise InputError(
            f"The target {target!r} has more than {MOST_LABELS:,} different values.",
            "Name a column of classes as --target.",
        )
    if not code_of:
        return np.full(len(labels), _NO_LABEL, np.int16)
    codes = labels.replace_strict(code_of, default=_NO_LABEL, return_dtype=pl.Int16)
    return codes.to_numpy()
