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


def shifts(u, sides, score, y, weight, spread, expected):
    """Recall, and what one unseen rare row adds to each row: the smallest root, by iteration.

    `sides` has the mask and the open rows of the rows above and of those below. Where no open row
    of a side is rare, half of one in the middle of them counts as well.
    """
    units, parts = [], []
    for mask, rows in sides:
        number, part = u[mask].sum(), np.zeros(len(u))
        part[rows] = spread[rows] * (y[rows] - expected[rows]) ** 2
        if not (y[rows] == 1).any():
            factor = 1 - expected[rows]
            place = rows[np.argsort(-score[rows], kind="stable")][len(rows) // 2]
            part[place] += 0.5 * np.mean(spread[rows] * factor**2)
            number += 0.5 * np.mean(weight[rows] * factor)
        units.append(part.sum() / number if number > 0 else 0.0)
        parts.append(part / part.sum() if part.sum() > 0 else part)
    hits, missed = (u[mask].sum() for mask, _ in sides)
    recall = 0.0
    for _ in range(200_000):
        top = hits + units[0] * recall
        before, recall = recall, top / (top + missed + units[1] * (1 - recall))
        if recall - before < 1e-13:
            break
    return recall, units[0] * recall * parts[0] + units[1] * (1 - recall) * parts[1]


def freed_ratio(top, u, added, step=1e-5):
    """Ratio of `top(u)` to the sum of u with what is added, its slopes by differences."""
    amount = top(u)
    for i in np.flatnonzero(added):
        more, less = u.copy(), u.copy()
        more[i] += step
        less[i] -= step
        amount += added[i] * (top(more) - top(less)) / (2 * step)
    return amount / (u.sum() + added.sum())
