"""Checks of numeric parameters.

True and False are no numbers here: passing them is a mistake.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np


def is_number(value: Any, low: float = 0.0, high: float = np.inf, ends: str = "()") -> bool:
    """True for a number from `low` to `high`; `ends` is "()", "[)", "(]" or "[]".

    >>> is_number(0.5), is_number(0), is_number(0, ends="[)"), is_number(np.nan), is_number(True)
    (True, False, True, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    number = float(value)
    above = number >= low if ends[0] == "[" else number > low
    return above and (number <= high if ends[1] == "]" else number < high)


def is_whole(value: Any, least: int = 1) -> bool:
    """True for a whole number of at least `least`.

    >>> is_whole(3), is_whole(np.int64(0)), is_whole(3.0)
    (True, False, False)
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and int(value) >= least


def check_number(
    name: str,
    value: Any,
    allowed: str = "a number above 0",
    low: float = 0.0,
    high: float = np.inf,
    ends: str = "()",
) -> None:
    """Raise `ValueError` for a value that is no number in range; `allowed` words the range.

    >>> check_number("power", 0.5, "a number of at least 1", 1.0, ends="[)")
    Traceback (most recent call last):
    ValueError: power=0.5 must be a number of at least 1.
    """
    if not is_number(value, low, high, ends):
        raise ValueError(f"{name}={value!r} must be {allowed}.")


def check_whole(
    name: str, value: Any, allowed: str = "a whole number above 0", least: int = 1
) -> None:
    """Raise `ValueError` for a value that is no whole number of at least `least`."""
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r} must be {allowed}.")
