"""Parameters that are numbers: in range or not, and what is said of one that is not.

True and False are no numbers here: who passes them has mistaken the parameter.
"""

from numbers import Integral, Real
from typing import Any

import numpy as np


def is_number(value: Any, low: float = 0.0, high: float = np.inf, ends: str = "()") -> bool:
    """Whether a value is a number from `low` to `high`; `ends` is "()", "[)", "(]" or "[]".

    >>> is_number(0.5), is_number(0), is_number(0, ends="[)"), is_number(np.nan), is_number(True)
    (True, False, True, False, False)
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    number = float(value)
    above = number >= low if ends[0] == "[" else number > low
    return above and (number <= high if ends[1] == "]" else number < high)


def is_whole(value: Any, least: int = 1) -> bool:
    """Whether a value is a whole number of at least `least`.

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
    """Refuse what is no number in range; `allowed` says in words what is.

    >>> check_number("power", 0.5, "a number of at least 1", 1.0, ends="[)")
    Traceback (most recent call last):
    ValueError: power=0.5 must be a number of at least 1.
    """
    if not is_number(value, low, high, ends):
        raise ValueError(f"{name}={value!r} must be {allowed}.")


def check_whole(
    name: str, value: Any, allowed: str = "a whole number above 0", least: int = 1
) -> None:
    """Refuse what is no whole number of at least `least`; `allowed` says in words what is."""
    if not is_whole(value, least):
        raise ValueError(f"{name}={value!r} must be {allowed}.")
