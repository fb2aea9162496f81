"""Compiled maps of rows: ranks of their values among recent ones, and random waves."""

import math

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


# cos(2 pi sqrt(u)) for u in [0, 1/4] to 2e-8: its interpolant of degree 6 at Chebyshev's points.
# With the library's cosine the loop takes three times as long, and rounds by the machine.
_C0, _C1, _C2 = 0.9999999889445765, -19.739204466576158, 64.93911592834692
_C3, _C4, _C5, _C6 = -85.45011342750767, 60.16742979194585, -25.966884612550658, 6.527705962902734


@njit(cache=True, nogil=True)
def wave_rows(X, frequencies, phases):
    """``sqrt(2 / D) cos(2 pi (asinh(x) F + b))`` of each row x; F is (d, D), b (D,)."""
    n, d = X.shape
    D = phases.shape[0]
    size = math.sqrt(2.0 / max(D, 1))
    out = np.empty((n, D))
    for t in range(n):
        for k in range(D):
            out[t, k] = phases[k]
        for j in range(d):
            if X[t, j] != 0.0:
                x = math.asinh(X[t, j])
                for k in range(D):
                    out[t, k] += x * frequencies[j, k]
        for k in range(D):
            turn = out[t, k] - math.floor(out[t, k] + 0.5)
            u = turn * turn
            even = _C3 + u * (_C4 + u * (_C5 + u * _C6))
            out[t, k] = size * (_C0 + u * (_C1 + u * (_C2 + u * even)))
    return out
