"""Compiled interpolation of many columns, each on its own knots; see bounded_numbers."""

import numpy as np

from rareclass.compiling import njit

_CELLS = 1024
_BLOCK = 512
# Of fewer rows a search among all knots takes less time than to lay a grid over them.
_ROWS_OF_GRID = 256


@njit(cache=True, nogil=True)
def interpolate_columns(X, knots, heights, starts, mean, scale, out):
    """Piecewise linear height of every number, at both ends that of the last knot; NaN stays.

    What is written is ``(height - mean[j]) / scale[j]``. X, out: (n_rows, n_columns); column j has
    the increasing ``knots[starts[j]:starts[j + 1]]``, at least one, and as many heights. An even
    grid over the range of a column tells where among the knots to look: time O(n_rows * n_columns)
    where knots are spread evenly, at worst times log2 of their number. Of few rows it has one cell.
    """
    n_rows, n_columns = X.shape
    n_cells = _CELLS if n_rows >= _ROWS_OF_GRID else 1
    first = np.empty((n_columns, n_cells + 1), np.int64)
    for j in range(n_columns):
        _lay_grid(knots[starts[j] : starts[j + 1]], first[j])
    for begin in range(0, n_rows, _BLOCK):
        end = min(n_rows, begin + _BLOCK)
        for j in range(n_columns):
            at = knots[starts[j] : starts[j + 1]]
            height = heights[starts[j] : starts[j + 1]]
            width = at[-1] - at[0]
            per_unit = n_cells / width if width > 0.0 else 0.0
            for i in range(begin, end):
                z = _height_of(X[i, j], at, height, first[j], per_unit)
                out[i, j] = (z - mean[j]) / scale[j]


@njit(cache=True, nogil=True)
def _lay_grid(at, first):
    """Of each edge of the even cells over the knots, the last knot that is not beyond it."""
    k = 0
    n_cells = len(first) - 1
    for cell in range(n_cells + 1):
        edge = at[0] + (at[-1] - at[0]) * (cell / n_cells)
        while k + 1 < len(at) and at[k + 1] <= edge:
            k += 1
        first[cell] = k


@njit(cache=True, nogil=True)
def _height_of(x, at, height, first, per_unit):
    """The height of one number."""
    last = len(at) - 1
    if np.isnan(x):
        return np.nan
    if x <= at[0]:
        return height[0]
    if x >= at[last]:
        return height[last]
    cell = min(int((x - at[0]) * per_unit), len(first) - 2)
    # One knot more on either side: the edges of the cells are rounded.
    low = max(first[cell] - 1, 0)
    size = min(first[cell + 1] + 1, last) - low + 1
    while size > 1:
        half = size >> 1
        if at[low + half] <= x:
            low += half
        size -= half
    step = (x - at[low]) / (at[low + 1] - at[low])
    return height[low] + step * (height[low + 1] - height[low])
