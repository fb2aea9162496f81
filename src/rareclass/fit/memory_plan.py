"""How much memory a fit needs, before it reads the file."""

from dataclasses import dataclass

import polars as pl

from rareclass.encoding.encoders import DOUBLE_PRECISION_ROWS
from rareclass.errors import ErrorKind, InputError, counted
from rareclass.machine import size_text
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
        raise InputError(
            f"A fit on {file.path} needs about {size_text(plan.needed + _LEAST_KERNEL_MEMORY)} of "
            f"memory{size}; {size_text(limit)} may be used.",
            "Fit on a sample of the majority rows (keep every rare one), leave columns out with "
            "--drop, raise --memory, or use a machine with more. Scoring streams: it takes files "
            "of any size.",
            ErrorKind.MEMORY,
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
