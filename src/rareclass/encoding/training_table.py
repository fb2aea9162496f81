"""A table read for training, in memory or on disk: typed columns, their meaning, and labels."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.target import labels_as_text
from rareclass.errors import ErrorKind, named_twice, no_rows, setting
from rareclass.rows.decoding import refuse_many_labels
from rareclass.rows.source import are_narrow
from rareclass.tables.cells import is_text_type
from rareclass.tables.columns import (
    Column,
    ColumnFacts,
    FactsGatherer,
    are_too_long,
    check_some_are_used,
    describe_column,
    facts_of,
)
from rareclass.tables.reading import CellReading, read_cells
from rareclass.tables.table_file import (
    BATCH_ROWS,
    SpooledTables,
    TableFile,
    batch_rows_for,
    named_columns,
)
from rareclass.tables.text_columns import CellProfile, find_reading


@dataclass(frozen=True)
class TrainingTable:
    """A training file in memory.

    `frame` has the used columns as float64, datetime or string; `columns` every column that was
    looked at; `beside` those asked for whether they are used or not; `number` that of each row in
    the file, from 1 on. Rows with an empty target are left out everywhere.
    """

    frame: pl.DataFrame
    columns: list[Column]
    labels: pl.Series
    n_unlabelled: int
    beside: list[pl.Series]
    number: pl.Series


@dataclass(frozen=True)
class ReadingPlan:
    """How the columns of a training file are read, after a first look at their cells.

    `readings` has every column to look at, None for one whose cells cannot be used; `integers`
    those whose numbers are whole as written in the file.
    """

    file: TableFile
    target: str
    readings: dict[str, CellReading | None]
    integers: set[str]
    categories: Sequence[str]
    keep: Sequence[str]

    @property
    def names(self) -> list[str]:
        """The columns to look at: all but the target and those that are dropped."""
        return list(self.readings)

    def typed_batches(
        self, batch_rows: int = BATCH_ROWS
    ) -> Iterator[tuple[pl.DataFrame, pl.Series]]:
        """Yield typed columns and labels as text, in file order."""
        first_row = 1
        for batch in self.file.batches([*self.names, self.target], batch_rows):
            cells = [
                batch[name] if reading is None else read_cells(batch[name], reading, first_row)
                for name, reading in self.readings.items()
            ]
            yield pl.DataFrame(cells), labels_as_text(batch[self.target])
            first_row += batch.height

    def read(self) -> tuple[pl.DataFrame, pl.Series]:
        """Return the typed columns and the labels of all rows."""
        frames, labels = zip(*self.typed_batches(), strict=True)
        return pl.concat(frames, rechunk=True), pl.concat(labels, rechunk=True)

    def describe(
        self, facts: Iterable[ColumnFacts], n_missing: Sequence[int] | None = None
    ) -> list[Column]:
        """Say what each column holds, by all rows.

        `n_missing` counts empty cells of the rows that are trained on, where these are not all.
        Raises `InputError` when none can be learned from.
        """
        facts = list(facts)
        columns = [
            describe_column(
                known,
                self.readings[known.name],
                integers=known.name in self.integers,
                is_category=known.name in self.categories,
                is_kept=known.name in self.keep,
                is_index=known.name in self.file.index_columns,
            )
            for known in facts
        ]
        if n_missing is not None:
            columns = [
                replace(column, n_missing=number)
                for column, number in zip(columns, n_missing, strict=True)
            ]
        n_rows = max(known.n_rows for known in facts)
        check_some_are_used(str(self.file.path), columns, n_rows, f", or {setting('keep')} one")
        return columns


def read_training_table(
    plan: ReadingPlan, beside: Mapping[str, str | None] = MappingProxyType({})
) -> TrainingTable:
    """Read a file for training.

    The file is read twice: once to find what the columns of text hold, once to keep their cells
    as that, so that a number never takes the room of a word. `beside` names columns that say
    something of the rows, with the words for it where they are not to be learned from.

    Raises `InputError` for unknown column names, cells that cannot be used, no rows or no usable
    column.
    """
    frame, labels = plan.read()
    labelled = labels.is_not_null()
    n_missing = [cells.filter(labelled).null_count() for cells in frame]
    columns = plan.describe((facts_of(cells) for cells in frame), n_missing)
    for k, column in enumerate(columns):
        if words := beside.get(column.name):
            columns[k] = replace(column, kind="beside", treatment=words)
    used = [column.name for column in columns if column.is_used]
    return TrainingTable(
        frame.select(used).filter(labelled),
        columns,
        labels.filter(labelled),
        int((~labelled).sum()),
        [frame[name].filter(labelled) for name in beside],
        labelled.arg_true() + 1,
    )


def plan_reading(
    file: TableFile,
    target: str,
    drop: Sequence[str] = (),
    categories: Sequence[str] = (),
    keep: Sequence[str] = (),
) -> ReadingPlan:
    """Check the names and look once at every cell of text, to know what to read it as.

    `categories` are taken as such whatever they hold, `keep` is learned from even if it looks like
    identifiers. Raises `InputError` for unknown column names, text that cannot be used, or no rows.
    """
    given = {"target": [target], "drop": drop, "categories": categories, "keep": keep}
    for option, names_given in given.items():
        named_columns(file, names_given, option)
    if target in drop:
        raise named_twice(target, "target", "drop")
    for name in keep:
        if name in drop or name == target:
            raise named_twice(name, "keep", "drop" if name in drop else "target")
    names = [name for name in file.columns if name != target and name not in drop]
    if not names:
        raise ErrorKind.MISSING_COLUMN.error(f"{file.path} has no column besides the target.", "")
    seen = _profile(file, names)
    readings: dict[str, CellReading | None] = {}
    integers: set[str] = set()
    chosen = [name for name in names if name in file.category_columns]
    for name in names:
        if name in chosen:
            readings[name] = CellReading("string", marks=False)
            continue
        found = find_reading(
            name,
            seen.types[name],
            seen.profiles.get(name),
            otherwise=f"{setting('categories', name)} takes the column as categories, "
            f"{setting('drop', name)} leaves it out",
            is_too_long=name in seen.too_long,
            is_category=name in categories,
        )
        readings[name] = found and found.reading
        integers |= {name} if found and found.integers else set()
        if found and found.note is not None:
            found.note.tell(name, is_typed=file.format_name != "CSV")
    return ReadingPlan(file, target, readings, integers, [*categories, *chosen], keep)


class _SeenColumns(NamedTuple):
    """Types of columns, profiles of those of text, and numbers too long for a float64."""

    types: dict[str, pl.DataType]
    profiles: dict[str, CellProfile]
    too_long: set[str]


def _profile(file: TableFile, names: list[str]) -> _SeenColumns:
    """Look once at every cell."""
    seen = _SeenColumns({}, {}, set())
    first_row = 1
    for batch in file.batches(names):
        for cells in batch:
            name = cells.name
            seen.types[name] = cells.dtype
            if name not in seen.too_long and are_too_long(cells):
                seen.too_long.add(name)
            if is_text_type(cells.dtype):
                profile = seen.profiles.setdefault(name, CellProfile())
                profile.add(cells.cast(pl.String), first_row)
        first_row += batch.height
    if first_row == 1:
        raise no_rows(file.path)
    return seen


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
        self._tables = SpooledTables(folder)
        self._expected_rows = expected_rows
        self._narrow = [pl.col(name).cast(pl.Float32) for name in narrow]
        self._rows = [0]  # where each batch begins; the end of the last one stands last

    @property
    def n_rows(self) -> int:
        """Rows written so far."""
        return self._rows[-1]

    def append(self, frame: pl.DataFrame) -> None:
        """Write rows at the end; every batch has the same columns."""
        expected = 0.0
        if not self.n_rows and self._expected_rows and frame.height:
            expected = max(1.0, self._expected_rows / frame.height)
        self._tables.append(frame.with_columns(self._narrow).to_arrow(), expected)
        self._rows.append(self.n_rows + frame.height)

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
        frame = pl.DataFrame(pl.from_arrow(self._tables.read(batch).select(list(columns))))
        return frame.with_columns(pl.col(pl.Float32).cast(pl.Float64))


_NO_LABEL = -1


@dataclass(frozen=True)
class StreamedTable:
    """A training file of any size.

    `cells` has all rows, those without a label too; `columns` every column that was looked at,
    whose counts of distinct values are estimates beyond 16,384. A code is the position of a row's
    label, -1 for none.
    """

    cells: TypedScratch
    columns: list[Column]
    labels: list[str]
    codes: NDArray[np.int16]

    @property
    def counts(self) -> dict[str, int]:
        """Rows of every label, the most frequent first."""
        counted = np.bincount(self.codes[self.codes >= 0], minlength=len(self.labels))
        return dict(Counter(dict(zip(self.labels, counted.tolist(), strict=True))).most_common())


def stream_training_table(plan: ReadingPlan, scratch: str | Path | None = None) -> StreamedTable:
    """Read a file for training as `read_training_table` does, holding one batch of it.

    Raises `InputError` as that does; for a target with more than 10,000 labels; for a full disk.
    """
    gatherers: list[FactsGatherer] = []
    cells: TypedScratch | None = None
    codes: list[NDArray[np.int16]] = []
    code_of: dict[str, int] = {}
    n_missing = np.zeros(len(plan.names), np.int64)
    for typed, labels in plan.typed_batches(batch_rows_for(len(plan.names))):
        if cells is None:
            narrow = _narrow_columns(plan, typed)
            cells = TypedScratch(scratch, narrow, plan.file.estimate_rows())
            gatherers = [FactsGatherer(column.name, column.dtype) for column in typed]
        for gatherer, column in zip(gatherers, typed, strict=True):
            gatherer.add(column)
        labelled = labels.is_not_null()
        n_missing += [column.filter(labelled).null_count() for column in typed]
        codes.append(_coded(labels, code_of, plan.target))
        cells.append(typed)
    assert cells is not None  # plan_reading refuses a file without rows
    columns = plan.describe((each.facts() for each in gatherers), n_missing.tolist())
    return StreamedTable(cells, columns, list(code_of), np.concatenate(codes))


def _narrow_columns(plan: ReadingPlan, typed: pl.DataFrame) -> list[str]:
    """The columns of numbers that are 32-bit floats or narrower in the file."""
    types = nw.from_native(next(iter(plan.file.batches(plan.names, 1)))).schema
    return [c.name for c in typed if c.dtype == pl.Float64 and are_narrow([types[c.name]])]


def _coded(labels: pl.Series, code_of: dict[str, int], target: str) -> NDArray[np.int16]:
    """Return small numbers for labels, the same in every batch."""
    for label in labels.unique(maintain_order=True).drop_nulls():
        code_of.setdefault(label, len(code_of))
    refuse_many_labels(len(code_of), target, "the table")
    if not code_of:
        return np.full(len(labels), _NO_LABEL, np.int16)
    codes = labels.replace_strict(code_of, default=_NO_LABEL, return_dtype=pl.Int16)
    return codes.to_numpy()
