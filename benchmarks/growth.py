"""How seconds grow with rows: the slope of a straight line through logarithms."""

from collections.abc import Sequence

import numpy as np


def exponent(sizes: Sequence[float], seconds: Sequence[float]) -> float | None:
    """The p of seconds = c sizes^p by least squares on logarithms; None from under two sizes."""
    if len(set(sizes)) < 2:
        return None
    return float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
