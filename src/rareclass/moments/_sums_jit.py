"""Sums over the columns of compressed rows."""

from typing import Any

import numpy as np

from rareclass.compiling import njit

# Columns are read as unsigned: numba then leaves out what makes -1 the last of them.


@njit(cache=True, nogil=True)
def _stores_twice(columns, number, seen_inout):
    """Say whether a column occurs twice; ``seen_inout`` has the last row's number of each."""
    twice = 0
    for j in columns:
        twice += seen_inout[np.uint32(j)] == number
        seen_inout[np.uint32(j)] = number
    return twice > 0


@njit(cache=True, nogil=True)
def column_sums(indptr, indices, data, weight, sums_inout):
    """Add w x and w x^2 of each stored cell x to the sums of its column, a row of ``sums_inout``.

    Two sums side by side are all that is read and written a cell: more would not stay in cache.
    Returns False when some row stores a column twice: the sums are then wrong. Only rows whose
    columns do not increase are searched, with numbers of one byte that begin anew after 255 rows.
    """
    seen, number = np.zeros(len(sums_inout), dtype=np.uint8), 0
    for row in range(len(indptr) - 1):
        w = weight[row]
        if w == 0.0:
            continue
        start, stop = np.uint64(indptr[row]), np.uint64(indptr[row + 1])
        before: Any = np.int64(-1)
        not_after = 0
        for k in range(start, stop):
            column = np.uint32(indices[k])
            not_after += np.int64(column) <= before
            before = np.int64(column)
            x = np.float64(data[k])
            sums_inout[column, 0] += w * x
            sums_inout[column, 1] += w * x * x
        if not_after > 0:
            number += 1
            if number == 256:
                seen[:] = 0
                number = 1
            if _stores_twice(indices[start:stop], np.uint8(number), seen):
                return False
    return True


@njit(cache=True, nogil=True)
def central_sums(indptr, indices, data, weight, centre, sums_inout):
    """Add (1, w, w (x - c), w (x - c)^2) of each stored cell x to the sums of its column."""
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
