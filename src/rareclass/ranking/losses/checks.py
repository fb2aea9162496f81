"""Checks of the numbers that losses are given."""

from numbers import Real
from typing import Any

import numpy as np


def check_number(
    name: str, value: Any, allowed: str, low: float, high: float, ends: str = "[)"
) -> None:
    """Refuse what is no number between `low` and `high`.

    `allowed` says in words which those are; `ends` is "[)", "(]" or "()".

    Examples
    --------
    >>> check_number("power", 4, "a number of at least 1", 1.0, np.inf)
    """
    number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
    if number:
        number = (value >= low if ends[0] == "[" else value > low) and (
            value <= high if ends[1] == "]" else value < high
        )
    if not number:
        raise ValueError(f"{name}={value!r} must be {allowed}: give another.")
