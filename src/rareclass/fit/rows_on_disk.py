"""Training rows that stay on disk: when they do, and how they are sampled, encoded and scored."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.encoders import DOUBLE_PRECISION_ROWS, TableEncoder
from rareclass.encoding.training_table import TypedScratch
from rareclass.errors import ErrorKind, counted, setting
from rareclass.folds.majority_part import draw_majority
from rareclass.machine import size_text
from rareclass.rows import RowSource
from rareclass.rows.decoding import ScratchRows
from rareclass.tables.columns import HIGH_CARDINALITY
from rareclass.tables.svmlight_file import SvmlightFile
from rareclass.tables.table_file import TableFile, batch_rows_for

# The encoded table lives three times at the peak: from the encoders, imputed, and split in two.
ENCODED_COPIES = 3
# A model that encodes tables itself keeps some views of it, and parts of them for its folds.
VIEW_COPIES = 8
# The table as read lives twice while its batches are joined.
READ_COPIES = 2
# A table larger than this part of the memory stays on disk.
LARGE_SHARE = 4
# Then every row takes this: label, hashes while copies are found, weight, places, scores.
ROW_BYTES = 200
# Rows that an encoder is fitted on when the table stays on disk.
LEAST_SAMPLED, MOST_SAMPLED = 5_000, 500_000
_LEAST_KERNEL_MEMORY = 64 << 20
_MOST_KERNEL_MEMORY = 2 << 30
_SAMPLE_ROWS = 10_000


@dataclass(frozen=True)
class MemoryPlan:
    """Memory of a fit."""

    needed: int  # bytes at the peak, without kernel blocks
    limit: int  # bytes that may be taken
    n_rows: int  # as far as known before reading
    n_encoded_columns: int  # estimated from the first rows
    on_disk: bool = False  # the rows stay there and are read in pieces
    most_sampled: int = MOST_SAMPLED  # rows that the encoder is then fitted on

    @property
    def kernel_memory(self) -> int:
        """Bytes left for kernel blocks, between 64 MiB and 2 GiB."""
        left = (self.limit - self.needed) // 2
        return min(max(left, _LEAST_KERNEL_MEMORY), _MOST_KERNEL_MEMORY)


def plan_memory(
    file: TableFile | SvmlightFile, limit: int, copies: int = ENCODED_COPIES
) -> MemoryPlan:
    """Estimate what a fit on `file` needs, and choose whether its rows stay on disk.

    `copies` of the encoded table are held at the peak. Rows stay on disk when the file, or the
    table that it holds, is larger than a quarter of `limit`, or a fit in memory would take more
    than `limit`.

    Raises `InputError` when more is needed than `limit`, saying what is needed and what to do.
    """
    if isinstance(file, SvmlightFile):
        plan = MemoryPlan(3 * file.estimate_memory(), limit, 0, 0)
    else:
        plan = _plan_table(file, limit, copies)
    if plan.needed + _LEAST_KERNEL_MEMORY > limit:
        size = ""
        if plan.n_rows:
            columns = counted(plan.n_encoded_columns, "column")
            size = f" (about {counted(plan.n_rows, 'row')}, {columns} once encoded)"
        raise ErrorKind.MEMORY.error(
            f"A fit on {file.path} needs about {size_text(plan.needed + _LEAST_KERNEL_MEMORY)} of "
            f"memory{size}; {size_text(limit)} may be used.",
            "Fit on a sample of the majority rows (keep every rare one), leave columns out with "
            f"{setting('drop')}, raise {setting('memory')}, or use a machine with more. Scoring "
            "streams: it takes files of any size.",
        )
    return plan


def _plan_table(file: TableFile, limit: int, copies: int) -> MemoryPlan:
    n_rows = file.estimate_rows()
    sample = next(iter(file.batches(batch_rows=_SAMPLE_ROWS)), pl.DataFrame())
    n_encoded = max(1, sum(_encoded_width(cells) for cells in sample))
    read_row = sum(_bytes_of_a_cell(cells) for cells in sample)
    item = 8 if n_rows < DOUBLE_PRECISION_ROWS else 4
    needed = (copies * item * n_encoded + READ_COPIES * read_row) * n_rows
    in_memory = MemoryPlan(int(needed), limit, n_rows, n_encoded)
    is_large = max(file.n_bytes, read_row * n_rows) > limit / LARGE_SHARE
    if not is_large and needed + _LEAST_KERNEL_MEMORY <= limit:
        return in_memory
    # On disk: numbers about every row, a sample for the encoder, and batches on their way.
    sampled_row = 8 * (copies + 1) * n_encoded + READ_COPIES * read_row
    batch = 4 * batch_rows_for(n_encoded) * 8 * n_encoded
    rows = ROW_BYTES * n_rows + batch
    room = (limit - rows - _LEAST_KERNEL_MEMORY) / 2
    most = int(min(max(room / sampled_row, LEAST_SAMPLED), MOST_SAMPLED))
    on_disk = rows + sampled_row * min(n_rows, most)
    if on_disk >= needed and not is_large:
        return in_memory
    return MemoryPlan(int(on_disk), limit, n_rows, n_encoded, True, most)


def _encoded_width(cells: pl.Series) -> int:
    """Return about how many columns a column becomes."""
    if cells.dtype == pl.String:
        values = cells.head(_SAMPLE_ROWS).drop_nulls()
        as_number = values.cast(pl.Float64, strict=False).null_count() < 0.1 * len(values)
        distinct = values.n_unique()
        return 1 if as_number or distinct >= HIGH_CARDINALITY else max(1, distinct)
    return 4 if cells.dtype.is_temporal() else 1


def _bytes_of_a_cell(cells: pl.Series) -> float:
    if cells.dtype != pl.String:
        return 8.0
    values = cells.drop_nulls()
    if values.cast(pl.Float64, strict=False).null_count() < 0.1 * max(1, len(values)):
        return 8.0
    length = values.str.len_bytes().mean()
    # polars keeps words of up to 12 letters in 16 bytes, longer ones beside them.
    return 16.0 + (float(length) if isinstance(length, float) and length > 12 else 0.0)


# Two of them: with one of 64 bits, a billion rows would hold a false copy now and then.
_HASH_SEEDS = (1, 2)


@dataclass(frozen=True)
class RowsOnDisk:
    """Chosen rows of a table on disk."""

    cells: TypedScratch
    columns: list[str]  # those used
    rows: NDArray[np.int64]  # row numbers, never falling
    most_sampled: int  # rows that an encoder is fitted on
    scratch: Path | None = None  # folder for the encoded rows

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self.rows), len(self.columns)

    def __getitem__(self, chosen: NDArray[np.int64]) -> "RowsOnDisk":
        """Return some of the rows, by their number among these."""
        return replace(self, rows=self.rows[chosen])

    def frames(self) -> Iterator[tuple[slice, pl.DataFrame]]:
        """Yield the rows batch by batch, each with its place among these rows."""
        return self.cells.frames(self.columns, self.rows)

    def frame(self) -> pl.DataFrame:
        """Return all the rows in memory."""
        return pl.concat([frame for _, frame in self.frames()], rechunk=True)


def equal_rows_on_disk(rows: RowsOnDisk) -> NDArray[np.int64]:
    """Return a number for each row, equal for rows that are equal in every column.

    Rows are compared by 128 bits of hash: 16 bytes a row, and as many again while they are
    sorted.
    """
    hashes = np.empty((len(_HASH_SEEDS), len(rows.rows)), dtype=np.uint64)
    for place, frame in rows.frames():
        for k, seed in enumerate(_HASH_SEEDS):
            hashes[k, place] = frame.hash_rows(seed).to_numpy()
    order = np.lexsort(hashes)
    is_new = np.zeros(len(order), dtype=bool)
    for values in hashes:
        values[:] = values[order]
        is_new[1:] |= values[1:] != values[:-1]
    group = np.empty(len(order), np.int64)
    group[order] = np.cumsum(is_new)
    return group


def encode_on_disk(
    encoder: TableEncoder,
    rows: RowsOnDisk,
    y: NDArray[np.int16],
    rare: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    seed: int,
) -> RowSource:
    """Fit an encoder on a sample, and encode all rows into a scratch file.

    The sample is all rare rows and random others, as many as `rows.most_sampled` allows. Rows of
    the sample are written as the encoder's fit gives them (means of codes out of fold), so that a
    sample of everything gives what encoding in memory gives. `weight` counts copies.
    """
    sample, share = sample_of(rows.most_sampled, rare, weight, seed)
    sampled = encoder.fit_transform(rows[sample].frame(), y[sample], share, len(rare))
    encoded = ScratchRows(sampled.shape[1], sampled.dtype, rows.scratch, len(rare))
    if len(sample) == len(rare):
        encoded.append(sampled)
        return encoded.source()
    for place, frame in rows.frames():
        X = encoder.transform(frame)
        first, last = np.searchsorted(sample, [place.start, place.stop])
        X[sample[first:last] - place.start] = sampled[first:last]
        encoded.append(X)
    return encoded.source()


def sample_of(
    most: int, rare: NDArray[np.bool_], weight: NDArray[np.float64] | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.float64] | None]:
    """Return row numbers of a sample and what each stands for, its copies included.

    All rare rows, or half of the sample, and random others, so many that all rows are stood for;
    `weight` counts copies. No weights where every row is in and counts once.
    """
    if len(rare) <= most:
        return np.arange(len(rare)), weight
    n_rare = min(int(np.count_nonzero(rare)), most // 2)
    n_others = min(most - n_rare, int(np.count_nonzero(~rare)))
    sample, stands_for = draw_majority(rare, None, n_others, seed, n_rare)
    return sample, stands_for if weight is None else stands_for * weight[sample]


def scores_of(encoder: Any, model: Any, rows: Any) -> NDArray[np.float64]:
    """Return the scores of rows in memory, or batch by batch of rows on disk."""
    parts = [model.score_samples(encoder.transform(frame)) for frame in frames_of(rows)]
    return np.concatenate(parts)


def frames_of(rows: Any) -> Iterator[Any]:
    """Yield rows in memory as they are, rows on disk a batch at a time."""
    if isinstance(rows, RowsOnDisk):
        yield from (frame for _, frame in rows.frames())
    else:
        yield rows
