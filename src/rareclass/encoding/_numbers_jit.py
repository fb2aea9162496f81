"""Compiled numbers of columns: interpolation on knots, and a running mean and variance."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit

_CELLS = 1024
_BLOCK = 512
# Of fewer rows a search among all knots takes less time than to lay a grid over them.
_ROWS_OF_GRID = 256
_ONE = np.uint32(1)
_STEEPEST = 1e300


@njit(cache=True, nogil=True, error_model="numpy")
def interpolate_columns(columns, knots, heights, starts, mean, scale, out):
    """Piecewise linear height of every number, at both ends that of the last knot; NaN stays.

    What is written is ``(height - mean[j]) / scale[j]``. Shapes: columns (n_columns, n_rows), a
    column of the table in each row; out (n_rows, n_columns). Column j has the increasing
    ``knots[starts[j]:starts[j + 1]]``, at least one, and as many heights. An even grid over the
    range of a column tells where among the knots to look: time O(n_rows * n_columns) where knots
    are spread evenly, at worst times log2 of their number. A search is a step of a block of rows
    in turn. Of few rows no grid is laid.
    """
    n_columns, n_rows = columns.shape
    if n_rows < _ROWS_OF_GRID:
        _interpolate_few(columns, knots, heights, starts, mean, scale, out)
        return
    first = np.empty((n_columns, _CELLS), np.uint32)
    widest = np.empty(n_columns, np.uint32)
    base, slope = np.empty(len(knots)), np.zeros(len(knots))
    for j in range(n_columns):
        widest[j] = _lay_grid(knots[starts[j] : starts[j + 1]], first[j])
        for k in range(starts[j], starts[j + 1]):
            base[k] = (heights[k] - mean[j]) / scale[j]
        for k in range(starts[j], starts[j + 1] - 1):
            slope[k] = _slope(base[k + 1] - base[k], knots[k + 1] - knots[k])
    inside, low = np.empty(_BLOCK), np.empty(_BLOCK, np.uint32)
    for begin in range(0, n_rows, _BLOCK):
        end = min(n_rows, begin + _BLOCK)
        for j in range(n_columns):
            own = slice(starts[j], starts[j + 1])
            at, own_base, own_slope = knots[own], base[own], slope[own]
            _find_knots(columns[j, begin:end], at, first[j], widest[j], inside, low)
            for i in range(end - begin):
                k = low[i]
                out[begin + i, j] = own_base[k] + (inside[i] - at[k]) * own_slope[k]


@njit(cache=True, nogil=True, error_model="numpy")
def _find_knots(numbers, at, first, widest, inside_out, low_out):
    """Write the numbers brought into the range of the knots, and the knot at or below each."""
    lowest, highest = at[0], at[-1]
    width = highest - lowest
    per_unit = _CELLS / width if width > 0.0 else 0.0
    for i in range(len(numbers)):
        x = numbers[i]
        x = lowest if x < lowest else x
        x = highest if x > highest else x
        inside_out[i] = x
        cell = np.int64((x - lowest) * per_unit) if x == x else 0
        # Places are unsigned: numba then leaves out what makes -1 the last of them.
        low_out[i] = first[np.uint64(min(cell, _CELLS - 1))]
    # A step is read from two entries: LLVM makes a branch of a choice, often guessed wrong.
    size, steps = widest, np.zeros(2, np.uint32)
    while size > _ONE:
        half = np.uint32(size >> _ONE)
        steps[1] = half
        for i in range(len(numbers)):
            low_out[i] += steps[np.uint64(at[low_out[i] + half] <= inside_out[i])]
        size -= half


@njit(cache=True, nogil=True, error_model="numpy")
def _interpolate_few(columns, knots, heights, starts, mean, scale, out):
    """Do the same number by number, to the last digit."""
    for j in range(columns.shape[0]):
        at, height = knots[starts[j] : starts[j + 1]], heights[starts[j] :]
        last = len(at) - 1
        for i in range(columns.shape[1]):
            x = columns[j, i]
            x = at[0] if x < at[0] else x
            x = at[last] if x > at[last] else x
            low, size = 0, last + 1
            while size > 1:
                half = size >> 1
                low = low + half if at[low + half] <= x else low
                size -= half
            base, slope = (height[low] - mean[j]) / scale[j], 0.0
            if low < last:
                above = (height[low + 1] - mean[j]) / scale[j]
                slope = _slope(above - base, at[low + 1] - at[low])
            out[i, j] = base + (x - at[low]) * slope


@njit(cache=True, nogil=True, error_model="numpy")
def _slope(rise, width):
    """Slope between two knots; 0 where knots are so near that it is beyond what floats hold."""
    slope = rise / width
    return slope if abs(slope) <= _STEEPEST else 0.0


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
