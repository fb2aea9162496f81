"""How seconds grow with rows: a straight line through logarithms, and what it says further out."""

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """The p of seconds = c sizes^p by least squares on logarithms; None from under two sizes.

    Examples
    --------
    >>> round(exponent([1, 2, 4], [3, 12, 48]), 6)
    2.0
    """
    line = _line(sizes, seconds)
    return None if line is None else line[0]


def extrapolate(sizes: Sequence[float], seconds: Sequence[float], size: float) -> float | None:
    """Seconds at `size` on the line through the logarithms; None from under two sizes.

    Examples
    --------
    >>> round(extrapolate([1, 2, 4], [3, 12, 48], 8), 6)
    192.0
    """
    line = _line(sizes, seconds)
    return None if line is None else float(np.exp(line[1] + line[0] * np.log(size)))


def _line(sizes: Sequence[float], seconds: Sequence[float]) -> tuple[float, float] | None:
    """Slope and intercept."""
    if len(set(sizes)) < 2:
        return None
    slope, intercept = np.polyfit(np.log(sizes), np.log(seconds), 1)
    return float(slope), float(intercept)
