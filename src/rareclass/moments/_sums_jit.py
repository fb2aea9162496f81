"""Sums over the columns of compressed rows."""

import numpy as np

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def _stores_twice(columns, row, seen_inout):
    """Say whether a column occurs twice; ``seen_inout`` has the last row of each, where asked."""
    not_after = 0
    for k in range(1, len(columns)):
        not_after += columns[k] <= columns[k - 1]
    if not_after == 0:
        return False
    for j in columns:
        if seen_inout[j] == row:
            return True
        seen_inout[j] = row
    return False


@njit(cache=True, nogil=True)
def column_sums(indptr, indices, data, weight, sums_inout):
    """Add w x and w x^2 of each stored cell x to the sums of its column, a row of ``sums_inout``.

    Two sums side by side are all that is read and written a cell: more would not stay in cache.
    Returns False when some row stores a column twice: the sums are then wrong.
    """
    seen = np.full(len(sums_inout), -1, dtype=np.int32)
    for row in range(len(indptr) - 1):
        w = weight[row]
        if w == 0.0:
            continue
        start, stop = indptr[row], indptr[row + 1]
        if _stores_twice(indices[start:stop], row, seen):
            return False
        for k in range(start, stop):
            x = np.float64(data[k])
            sums = sums_inout[indices[k]]
            sums[0] += w * x
            sums[1] += w * x * x
    return True


@njit(cache=True, nogil=True)
def central_sums(indptr, indices, data, weight, centre, sums_inout):
    """Add (1, w, w (x - c), w (x - c)^2) of each stored cell x to the sums of its column.

    For rows that store no column twice.
    """
    for row in range(len(indptr) - 1):
        w = weight[row]
        if w == 0.0:
            continue
        for k in range(indptr[row], indptr[row + 1]):
            y = np.float64(data[k]) - centre[indices[k]]
            sums = sums_inout[indices[k]]
            sums[0] += 1.0
            sums[1] += w
            sums[2] += w * y
            sums[3] += w * y * y
