"""Compiled running mean and variance of one column, with forgetting."""

import numpy as np
from numpy.typing import NDArray

from rareclass.compiling import njit

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
