"""Which rows are most alike, in tables of numbers and words."""

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

Floats = NDArray[np.float64]


def differences(
    numbers: Mapping[str, Floats], words: Mapping[str, NDArray[np.int64]], a: int
) -> dict[str, Floats]:
    """How far row a is from every row, by column, from 0 to 1.

    Numbers by the difference of their ranks, as shares of the rows; words, given as codes with -1
    for an empty cell, by being the same or not. An empty number is 1 from others, 0 from an empty
    one.
    """
    found: dict[str, Floats] = {}
    for name, column in numbers.items():
        missing = np.isnan(column)
        ranks = np.zeros(len(column))
        if not missing.all():
            ranks[~missing] = rankdata(column[~missing]) / max((~missing).sum(), 1)
        apart = np.abs(ranks - ranks[a])
        found[name] = np.where(missing | missing[a], (missing != missing[a]).astype(float), apart)
    for name, codes in words.items():
        found[name] = (codes != codes[a]).astype(float)
    return found


def nearest(
    numbers: Mapping[str, Floats],
    words: Mapping[str, NDArray[np.int64]],
    a: int,
    among: NDArray[np.intp],
    most_columns: int = 3,
) -> tuple[int | None, tuple[str, ...]]:
    """The row most like row a among others, and the columns in which the two differ most.

    The mean over columns is what is least (Gower's coefficient, 1971, with ranks for numbers).
    """
    others = among[among != a]
    if not len(others) or not (numbers or words):
        return None, ()
    apart = differences(numbers, words, a)
    mean = np.mean([column[others] for column in apart.values()], axis=0)
    found = int(others[int(np.argmin(mean))])
    ranked = sorted(apart, key=lambda name: -apart[name][found])
    return found, tuple(name for name in ranked[:most_columns] if apart[name][found] > 0)
