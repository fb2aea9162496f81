"""Arrays of numpy, and of any other library that follows the Python array API standard."""

import math
from typing import Any

import numpy as np


def is_elsewhere(value: Any) -> bool:
    """Whether it is an array of another library: not one of numpy or scipy, not a number.

    >>> is_elsewhere(np.ones(2)), is_elsewhere(np.float64(1.0)), is_elsewhere(1.0)
    (False, False, False)
    """
    has_both = hasattr(value, "shape") and hasattr(value, "device")
    return has_both and not isinstance(value, np.ndarray | np.generic)


def namespace(array: Any) -> Any:
    """The functions that work on arrays of this kind, as the standard has them.

    References
    ----------
    .. [1] https://data-apis.org/array-api/
    """
    if isinstance(array, np.ndarray):
        return np
    from array_api_compat import array_namespace  # rareclass[gpu]

    return array_namespace(array)


def to_numpy(array: Any) -> np.ndarray:
    """A copy of an array in numpy's hands, or the array itself where it is there already."""
    # CuPy refuses to be read as if it were in this process's memory, and has `get` in place of it.
    return array.get() if hasattr(array, "get") else np.asarray(array)


def like(array: np.ndarray, other: Any) -> Any:
    """An array of numpy where `other` is, and of its library; itself where that is numpy."""
    if isinstance(other, np.ndarray):
        return array
    return namespace(other).asarray(array, device=other.device)


def sums_between(values: Any, ends: Any) -> Any:
    """Sums of values from one end to the next, the first from the beginning: shape of `ends`.

    The standard has no scatter. What rows in the order of their places add to those places is a
    difference of prefix sums; ``ends[i]`` is how many rows lie at place i or before.

    >>> sums_between(np.array([1.0, 2.0, 4.0, 8.0]), np.array([1, 1, 4]))
    array([ 1.,  0., 14.])
    """
    xp = namespace(values)
    up_to = xp.take(xp.cumulative_sum(values, include_initial=True), ends)
    return xp.concat([up_to[:1], xp.diff(up_to)])


def n_bytes(array: Any) -> int:
    """How many bytes the numbers of an array take.

    >>> n_bytes(np.ones((2, 3), dtype=np.float32))
    24
    """
    if isinstance(array, np.ndarray):
        return int(array.nbytes)
    xp = namespace(array)
    if xp.isdtype(array.dtype, "bool"):
        bits = 8
    else:
        is_whole = xp.isdtype(array.dtype, "integral")
        bits = (xp.iinfo if is_whole else xp.finfo)(array.dtype).bits
    return math.prod(array.shape) * bits // 8
