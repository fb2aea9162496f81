"""Majority rows that stand for all of them: a weighted part, or a uniform sample of a stream."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np


class DrawnRows(NamedTuple):
    """Drawn rows, increasing, and a weight for each."""

    rows: np.ndarray
    weight: np.ndarray


def weight_for_all(weight: np.ndarray, drawn: np.ndarray) -> np.ndarray:
    """Weights of the drawn rows of a class, scaled to sum to the weight of the whole class."""
    if not len(drawn):
        return np.zeros(0)
    return weight[drawn] * (weight.sum() / weight[drawn].sum())


def draw_class(
    n_rows: int, most: int | None, rng: np.random.Generator, weight: np.ndarray | None = None
) -> DrawnRows:
    """Draw `most` of the rows of one class, all with the same chance, each at most once.

    Where there are no more than `most`, or it is None, all rows keep their weights and no random
    number is used; `weight` None counts every row once. O(n) time.
    """
    if weight is None:
        weight = np.ones(n_rows)
    if most is None or most >= n_rows:
        return DrawnRows(np.arange(n_rows), weight)
    rows = np.sort(rng.choice(n_rows, most, replace=False))
    return DrawnRows(rows, weight_for_all(weight, rows))


def draw_majority(
    is_rare: np.ndarray,
    weight: np.ndarray | None,
    n_majority: int,
    seed: int,
    n_rare: int | None = None,
) -> DrawnRows:
    """Draw `n_majority` majority rows and keep all rare rows, or draw `n_rare` of these first.

    The weights of each class sum to those of all its rows.

    >>> is_rare = np.array([True, False, False, False, False])
    >>> draw_majority(is_rare, None, 2, seed=0).weight.tolist()
    [1.0, 2.0, 2.0]
    """
    return draw_classes(np.where(is_rare, 0, 1), weight, (n_rare, n_majority), seed)


def draw_classes(
    code: np.ndarray, weight: np.ndarray | None, most: Sequence[int | None], seed: int
) -> DrawnRows:
    """Draw at most so many rows of each class as `draw_class`; `code` has the place of the class.

    Rows of other codes are left out.
    """
    rng = np.random.default_rng(seed)
    chosen, weights = [], []
    for place, most_of_class in enumerate(most):
        members = np.flatnonzero(code == place)
        own = None if weight is None else weight[members]
        drawn = draw_class(len(members), most_of_class, rng, own)
        chosen.append(members[drawn.rows])
        weights.append(drawn.weight)
    rows = np.concatenate(chosen)
    order = np.argsort(rows)
    return DrawnRows(rows[order], np.concatenate(weights)[order])


def reservoir_slots(nth: np.ndarray, draws: np.ndarray, capacity: int) -> np.ndarray:
    """Choose the slot of the n-th row of a stream by Vitter's Algorithm R; -1 where it is not kept.

    The first rows fill the slots. After them a draw u, uniform in [0, 1), gives slot
    ``floor(u n)``, kept where that is below the capacity: with probability capacity / n, replacing
    any row alike. One draw a row, in row order: how a stream is cut into batches does not matter.

    Examples
    --------
    >>> reservoir_slots(np.array([1, 2, 3, 4]), np.array([0.9, 0.9, 0.3, 0.9]), 2).tolist()
    [0, 1, 0, -1]
    """
    drawn = np.where(nth <= capacity, nth - 1, (draws * nth).astype(np.int64))
    return np.where(drawn < capacity, drawn, -1)
