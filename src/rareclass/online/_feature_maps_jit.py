"""Rows by the ranks of their values among recent ones, as CSR arrays."""

import numpy as np

from rareclass.compiling import njit


@njit(cache=True, nogil=True)
def rank_rows(X, ordered, ranked, knots):
    """CSR arrays (indptr, indices, data) of rows, `knots` places a column.

    With r the middle rank of a value in its sorted column of `ordered`, from 0 to 1, and
    ``p = r (knots - 1)``, a ranked column has ``1 - f`` at place floor(p) and f at the next one,
    f the fraction of p. Another has its value at its first place. Zeros are left out.
    """
    n, d = X.shape
    indptr = np.zeros(n + 1, np.int64)
    indices, data = np.empty(2 * n * d, np.int64), np.empty(2 * n * d)
    filled = 0
    for t in range(n):
        for j in range(d):
            first, x = j * knots, X[t, j]
            here, next_one = x, 0.0
            if ranked[j]:
                column = ordered[j]
                low = np.searchsorted(column, x, side="left")
                high = np.searchsorted(column, x, side="right")
                p = (knots - 1) * (0.5 * (low + high) / column.shape[0])
                floor = min(int(p), knots - 2)
                first += floor
                here, next_one = 1.0 - (p - floor), p - floor
            if here != 0.0:
                indices[filled], data[filled] = first, here
                filled += 1
            if next_one != 0.0:
                indices[filled], data[filled] = first + 1, next_one
                filled += 1
        indptr[t + 1] = filled
    return indptr, indices[:filled].copy(), data[:filled].copy()
