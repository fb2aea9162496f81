"""A table read for training that stays on disk: typed once, columns understood on the way."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.training_table import ReadingPlan, plan_reading
from rareclass.encoding.typed_scratch import TypedScratch
from rareclass.errors import InputError
from rareclass.rows.decoding import MOST_LABELS
from rareclass.tables.column_facts import FactsGatherer
from rareclass.tables.columns import Column
from rareclass.tables.table_file import TableFile, batch_rows_for

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
    return StreamedTable(cells, columns, list(code_of), np.concatenate(codes))


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
