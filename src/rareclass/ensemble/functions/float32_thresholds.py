"""Thresholds for values as they are that split as thresholds for values rounded to float32."""

import numpy as np


def before_rounding(threshold: np.ndarray) -> np.ndarray:
    """The largest float64 that, rounded to float32, is at most the threshold.

    Libraries that compare rows in float32 decide ``float32(x) <= t``. Rounding keeps the order, so
    that this is ``x <= s``, where s lies half-way between a, the last float32 up to t, and the
    next one: half-way itself is rounded to the even one of the two.

    >>> [s] = before_rounding(np.array([0.1]))
    >>> float(np.float32(s)) <= 0.1, float(np.float32(np.nextafter(s, 1))) <= 0.1
    (True, False)
    """
    threshold = np.asarray(threshold, dtype=np.float64)
    below = threshold.astype(np.float32)
    down = below > threshold
    below[down] = np.nextafter(below[down], np.float32(-np.inf))
    with np.errstate(over="ignore"):
        above = np.nextafter(below, np.float32(np.inf))
    half_way = below.astype(np.float64) / 2 + above.astype(np.float64) / 2
    is_even = below.view(np.int32) % 2 == 0
    found = np.where(is_even, half_way, np.nextafter(half_way, -np.inf))
    return np.where(np.isfinite(found), found, threshold)


def below_float32(threshold: np.ndarray) -> np.ndarray:
    """The float64 that is to ``float32(x) < t`` what `before_rounding` is to ``float32(x) <= t``.

    >>> [s] = below_float32(np.array([0.5]))
    >>> float(np.float32(s)) < 0.5, float(np.float32(np.nextafter(s, 1))) < 0.5
    (True, False)
    """
    exact = np.asarray(threshold, dtype=np.float32)
    return before_rounding(np.nextafter(exact, np.float32(-np.inf)))
