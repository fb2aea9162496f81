"""From intervals at every level to a p-value."""

from collections.abc import Callable

import numpy as np

from rareclass.metrics.interval import Interval

LEAST_P = 1e-12
_STEPS = 60


def p_value_of_intervals(at: Callable[[float], Interval], level: float) -> float:
    """1 less the highest level whose interval leaves out 0, by bisection of its logarithm.

    ``at(level)`` is the interval, wider at higher levels. On which side of ``1 - level`` the
    p-value lies agrees with ``at(level)`` exactly. At least 1e-12.
    """

    def holds_zero(log_tail: float) -> bool:
        found = at(-np.expm1(log_tail))
        return found.low <= 0.0 <= found.high

    held, left_out = np.log(LEAST_P), np.log1p(-1e-9)
    if holds_zero(left_out):
        return 1.0
    if not holds_zero(held):
        return LEAST_P
    # What is reported at `level` says on which side of it the p-value lies.
    if holds_zero(np.log1p(-level)):
        held = max(held, np.log1p(-level))
    else:
        left_out = min(left_out, np.log1p(-level))
    for _ in range(_STEPS):
        middle = (held + left_out) / 2.0
        if holds_zero(middle):
            held = middle
        else:
            left_out = middle
    return float(np.exp(left_out))
