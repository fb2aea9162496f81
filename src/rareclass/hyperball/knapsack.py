"""The continuous quadratic knapsack: nearest point in a box and on a hyperplane."""

import numpy as np

# How near, relative to the sum of the numbers added up, a sum is right.
_RIGHT = 1e-15
# Newton steps before the breakpoints are sorted. Five are usual.
_MOST_STEPS = 30


def project_knapsack(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> tuple[np.ndarray, float]:
    r"""Find the point nearest to v in a box and on a hyperplane, exactly.

    .. math::
        \min_l \tfrac12 \|l - v\|^2 \quad \text{subject to} \quad
        0 \le l_i \le upper_i, \quad \sum_i signs_i\, l_i = total.

    The solution is :math:`l_i = \min(\max(v_i + signs_i \mu, 0), upper_i)`; the sum is a piecewise
    linear function of :math:`\mu` that never falls. Newton's method finds the piece that holds the
    total; where it leaves its bracket, the piece is found between sorted breakpoints.

    Arrays are float64 of shape (n,): v finite, `upper` 0 or more (inf is no bound), signs +1 or -1.
    Some point of the box is to have the signed sum `total`. Returns the point, whose sum is right
    but for rounding, and :math:`\mu`. Time O(n log n) at the worst; mostly some five sums, and few
    for :math:`\mu` near 0.

    He, Tong and Carbonell, "Rare category characterization", ICDM 2010, Problem 4, which four
    nested loops over set sizes solve there. Cominetti, Mascarenhas and Silva, "A Newton's method
    for the continuous quadratic knapsack problem", Mathematical Programming Computation, 2014.

    >>> v, upper, signs = np.array([0.9, 0.5, 0.2]), np.ones(3), np.array([1.0, 1.0, -1.0])
    >>> project_knapsack(v, upper, signs, 1.0)[0].round(3).tolist()
    [0.833, 0.433, 0.267]
    """
    low, high, mu = -np.inf, np.inf, 0.0
    for _ in range(_MOST_STEPS):
        clipped = np.clip(v + signs * mu, 0.0, upper)
        lacks = total - float(signs @ clipped)
        if abs(lacks) <= _RIGHT * (abs(total) + float(clipped.sum())):
            return clipped, mu
        low, high = (mu, high) if lacks > 0.0 else (low, mu)
        slope = np.count_nonzero((clipped > 0.0) & (clipped < upper))
        step = lacks / slope if slope else np.inf
        if not low < mu + step < high:
            break
        mu += step
    mu = _between_breakpoints(v, upper, signs, total)
    clipped = np.clip(v + signs * mu, 0.0, upper)
    # Correct the last digits, which mu has lost where v is far from the box.
    inside = np.flatnonzero((clipped > 0.0) & (clipped < upper))
    if len(inside):
        each = (total - float(signs @ clipped)) / len(inside)
        moved = clipped[inside] + signs[inside] * each
        clipped[inside] = np.clip(moved, 0.0, upper[inside])
    return clipped, mu


def _between_breakpoints(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> float:
    """Find mu with sum signs clip(v + signs mu, 0, upper) = total, by bisection.

    Each entry adds a ramp: it begins to rise at mu = -v (sign +1) or v - upper (sign -1), and
    stays level once it has risen by upper.
    """
    plus = signs > 0.0
    begins, ends = np.where(plus, -v, v - upper), np.where(plus, upper - v, v)
    breakpoints = np.concatenate([begins, ends])
    breakpoints = np.sort(breakpoints[np.isfinite(breakpoints)])

    def lacks(mu: float) -> float:
        return total - float(signs @ np.clip(v + signs * mu, 0.0, upper))

    place, last = 0, len(breakpoints)  # the sum is below total before place, and not from last on
    while place < last:
        middle = (place + last) // 2
        if lacks(breakpoints[middle]) > 0.0:
            place = middle + 1
        else:
            last = middle
    before = float(breakpoints[place - 1]) if place > 0 else -np.inf
    after = float(breakpoints[place]) if place < len(breakpoints) else np.inf
    slope = np.count_nonzero((begins <= before) & (ends >= after))
    start = before if place > 0 else after
    return float(np.clip(start + lacks(start) / slope, before, after)) if slope else start
