"""Measures of checked rows by their definitions, one row at a time."""

import numpy as np


def estimated_labels(y, weight, expected, fixed):
    """What each row counts as: u of `checked_measures`."""
    known = (y >= 0) & ~fixed
    u = np.where(known, expected + weight * (y - expected), expected)
    return np.where(fixed, y, u)


def precision_sum(u, score):
    """Sum of u over precision at each row, pairs of a row with itself counted once."""
    total = 0.0
    for i in range(len(u)):
        at_least = score >= score[i]
        total += u[i] * (u[at_least].sum() - u[i] + 1.0) / at_least.sum()
    return total


def beale(ratio_top, u, open_rows, spread, factor, step=1e-5):
    """Ratio of `ratio_top(u)` to the sum of u by Beale's estimator, its slopes by differences."""
    top, total = ratio_top(u), u.sum()
    covariance = variance = 0.0
    for i in open_rows:
        more, less = u.copy(), u.copy()
        more[i] += step
        less[i] -= step
        slope = (ratio_top(more) - ratio_top(less)) / (2 * step)
        covariance += spread[i] * factor[i] ** 2 * slope
        variance += spread[i] * factor[i] ** 2
    return top / total * (1 + covariance / (top * total)) / (1 + variance / total**2)
