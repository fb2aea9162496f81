"""One value a row, of groups or of times, as its place among the distinct ones."""

from typing import Any

import numpy as np

from rareclass.errors import InputError, counted
from rareclass.labels.two_classes import missing_labels


def places(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Groups or times as places in their order, from 0 on; `name` is what errors call them.

    Raises `InputError` on a wrong number of values, a missing one (naming its row), or values of
    several types. O(n log n) time.
    """
    array = one_a_row(values, n_rows, name)
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError:
        raise InputError(
            f"{name} holds values of several types, which have no order.",
            "Make them all numbers, words or dates.",
        ) from None


def one_a_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    """The values as an array of one a row, none of them missing."""
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise InputError(
            f"{name} has the shape {array.shape} and X {counted(n_rows, 'row')}.",
            "Give one value a row.",
        )
    is_time = array.dtype.kind in "mM"
    missing = np.flatnonzero(np.isnat(array)) if is_time else missing_labels(array)
    if len(missing):
        raise InputError(
            f"{name} has no value at row {missing[0]}.", "Fill it in, or leave the row out."
        )
    return array
