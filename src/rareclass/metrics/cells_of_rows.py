"""What each row's place among the distinct rare scores says of it."""

import numpy as np

from rareclass.metrics.scored_classes import FloatArray

# As in `rare_cells`: rows from which on compiled code is worth loading, distinct rare scores from
# which on rows are brought into a rough order first, and how many at a time.
_SEARCH_FROM = 200_000
_BUCKETS_FROM = 250_000
_CHUNK_ROWS = 1_000_000


def read_cells(
    distinct: FloatArray,
    scores: FloatArray,
    weight: FloatArray | None,
    table: FloatArray,
    compiled: bool,
) -> tuple[FloatArray, FloatArray]:
    """The weight in each cell, and for every row what `table` holds for its cell.

    Cells are gap 0, tie 0, gap 1, tie 1, ..., gap d around the d distinct scores; shapes
    (2 d + 1,) and (n,). O(n log d) time.
    """
    if compiled:
        return _read_compiled(distinct, scores, weight, table)
    left = np.searchsorted(distinct, scores)
    cell = 2 * left + (distinct[np.minimum(left, distinct.size - 1)] == scores)
    held = np.bincount(cell, weight, 2 * distinct.size + 1).astype(np.float64)
    return held, table[cell]


def is_worth_compiling(n_rows: int) -> bool:
    """Whether so many rows make up for the loading of compiled code."""
    return n_rows >= _SEARCH_FROM


def _read_compiled(
    distinct: FloatArray, scores: FloatArray, weight: FloatArray | None, table: FloatArray
) -> tuple[FloatArray, FloatArray]:
    # Not at the top: numba takes longer to load than small samples take to sort.
    from rareclass.metrics import _rare_cells_jit as jit

    held, out = np.zeros(2 * distinct.size + 1), np.empty(scores.size)
    size = min(_CHUNK_ROWS, scores.size)
    row = np.arange(size, dtype=np.int32)
    by_bucket = distinct.size >= _BUCKETS_FROM
    if by_bucket:
        bucket, ordered = np.empty(size, np.uint8), np.empty(size)
    for start in range(0, scores.size, size):
        rows = slice(start, start + size)
        own = scores[rows]
        if by_bucket:
            jit.order_rows_by_bucket(distinct, own, bucket, ordered, row)
            own = ordered[: own.size]
        own_weight = None if weight is None else weight[rows]
        jit.add_and_read(distinct, own, row, own_weight, held, table, out[rows])
    return held, out
