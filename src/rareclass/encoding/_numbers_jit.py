"""Compiled numbers of columns: interpolation on knots, and a running mean and variance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit

_CELLS = 1024
_BLOCK = 512
# Of fewer rows a search among all knots takes less time than to lay a grid over them.
_ROWS_OF_GRID = 256
_ONE = np.uint64(1)


@njit(cache=True, nogil=True, error_model="numpy")
def interpolate_columns(columns, knots, heights, starts, mean, scale, out):
    """Piecewise linear height of every number, at both ends that of the last knot; NaN stays.

    What is written is ``(height - mean[j]) / scale[j]``. Shapes: columns (n_columns, n_rows), a
    column of the table in each row; out (n_rows, n_columns). Column j has the increasing
    ``knots[starts[j]:starts[j + 1]]``, at least one, and as many heights. An even grid over the
    range of a column tells where among the knots to look: time O(n_rows * n_columns) where knots
    are spread evenly, at worst times log2 of their number. Of few rows it has one cell.
    """
    n_columns, n_rows = columns.shape
    n_cells = _CELLS if n_rows >= _ROWS_OF_GRID else 1
    first = np.empty((n_columns, n_cells), np.uint64)
    widest = np.empty(n_columns, np.uint64)
    for j in range(n_columns):
        widest[j] = _lay_grid(knots[starts[j] : starts[j + 1]], first[j])
    for begin in range(0, n_rows, _BLOCK):
        end = min(n_rows, begin + _BLOCK)
        for j in range(n_columns):
            at = knots[starts[j] : starts[j + 1]]
            height = heights[starts[j] : starts[j + 1]]
            width = at[-1] - at[0]
            per_unit = n_cells / width if width > 0.0 else 0.0
            cells = first[j]
            for i in range(begin, end):
                z = _height_of(columns[j, i], at, height, cells, per_unit, widest[j])
                out[i, j] = (z - mean[j]) / scale[j]


def interpolate_plainly(columns, knots, heights, starts, mean, scale, out):
    """Do the same by NumPy, to the last digit."""
    for j, x in enumerate(columns):
        at, height = knots[starts[j] : starts[j + 1]], heights[starts[j] : starts[j + 1]]
        inside = np.clip(x, at[0], at[-1])
        low = np.clip(np.searchsorted(at, inside, side="right") - 1, 0, max(len(at) - 2, 0))
        high = np.minimum(low + 1, len(at) - 1)
        width = np.where(at[high] > at[low], at[high] - at[low], 1.0)
        z = height[low] + (inside - at[low]) / width * (height[high] - height[low])
        z = np.where(x >= at[-1], height[-1], np.where(x <= at[0], height[0], z))
        out[:, j] = (z - mean[j]) / scale[j]


@njit(cache=True, nogil=True)
def _lay_grid(at, first):
    """Put the first knot to look at for each even cell over the knots; return how many to look at.

    Of each cell they are as many: a search of one length is never guessed wrong. One knot more on
    either side: the edges of the cells are rounded.
    """
    k = 0
    widest: Any = 1
    n_cells, last = len(first), len(at) - 1
    for cell in range(n_cells):
        first[cell] = max(k - 1, 0)
        edge = at[0] + (at[last] - at[0]) * ((cell + 1) / n_cells)
        while k < last and at[k + 1] <= edge:
            k += 1
        widest = max(widest, min(k + 1, last) + 1 - np.int64(first[cell]))
    for cell in range(n_cells):
        first[cell] = min(np.int64(first[cell]), last + 1 - widest)
    return widest


@njit(cache=True, nogil=True, error_model="numpy")
def _height_of(x, at, height, first, per_unit, size):
    """The height of one number."""
    last = len(at) - 1
    if np.isnan(x):
        return np.nan
    if x <= at[0]:
        return height[0]
    if x >= at[last]:
        return height[last]
    # Places are unsigned: numba then leaves out what makes -1 the last of them.
    low = first[np.uint64(min(int((x - at[0]) * per_unit), len(first) - 1))]
    while size > _ONE:
        half = size >> _ONE
        low = low + half if at[low + half] <= x else low
        size -= half
    step = (x - at[low]) / (at[low + _ONE] - at[low])
    return height[low] + step * (height[low + _ONE] - height[low])


# What is done with scaled values far from 0.
ASINH, CLIP, LINEAR = 0, 1, 2
LARGEST = 10.0  # scaled values are clipped to +- this
# A spread below this share of the mean is rounding, not variation.
_ROUNDING = 2e-15


@njit(cache=True, nogil=True)
def scale_and_learn(
    cells: NDArray[np.float64],
    statistics: NDArray[np.float64],
    slowest: float,
    tails: int,
    X: NDArray[np.float64],
    column: int,
) -> None:
    """Write (x - mean) / deviation of each row into X, tails drawn in; statistics include the row.

    `statistics` is (count, mean, what the mean lost to rounding, variance). With
    a = max(1 / count, slowest) and d = x - mean:

        mean <- mean + a d,    variance <- (1 - a) (variance + a d^2),

    which is Welford's exact recurrence while 1 / count is the larger. X holds zeros.
    """
    count, mean, lost, variance = statistics[0], statistics[1], statistics[2], statistics[3]
    for i in range(cells.shape[0]):
        x = cells[i]
        if not np.isfinite(x):
            continue
        count += 1.0
        a = max(1.0 / count, slowest)
        d = (x - mean) - lost
        # The exact error of the sum is carried along (Knuth's TwoSum): a step of a d below the
        # last digit of the mean would otherwise be lost for ever, and a column that has become
        # constant would keep a distance from its mean.
        step = a * d + lost
        total = mean + step
        part = total - mean
        lost = (mean - (total - part)) + (step - part)
        mean = total
        variance = (1.0 - a) * (variance + a * d * d)
        X[i, column] = _scaled(x, mean, lost, variance, tails)
    statistics[0], statistics[1], statistics[2], statistics[3] = count, mean, lost, variance


@njit(cache=True, nogil=True)
def scale_only(
    cells: NDArray[np.float64],
    statistics: NDArray[np.float64],
    tails: int,
    X: NDArray[np.float64],
    column: int,
) -> None:
    """Write the same into X with the statistics as they are."""
    for i in range(cells.shape[0]):
        if np.isfinite(cells[i]):
            X[i, column] = _scaled(cells[i], statistics[1], statistics[2], statistics[3], tails)


@njit(cache=True, nogil=True)
def _scaled(x: float, mean: float, lost: float, variance: float, tails: int) -> float:
    deviation = np.sqrt(variance)
    if deviation <= _ROUNDING * abs(mean):
        return 0.0
    z = ((x - mean) - lost) / deviation
    if tails == ASINH:
        return np.arcsinh(z)
    if tails == CLIP:
        return min(max(z, -LARGEST), LARGEST)
    return z
