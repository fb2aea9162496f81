"""The continuous quadratic knapsack: nearest point in a box and on a hyperplane."""

import numpy as np

# How far, relative to the sum of the finite bounds, a total may lie beyond what rounding makes of
# it; and how near, relative to the sum of the numbers added up, a sum is right.
_ROUNDING, _RIGHT = 1e-12, 1e-15
# Newton steps before the breakpoints are sorted. Five are usual.
_MOST_STEPS = 30


def project_knapsack(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> np.ndarray:
    r"""Find the point nearest to v in a box and on a hyperplane, exactly.

    .. math::
        \min_l \tfrac12 \|l - v\|^2 \quad \text{subject to} \quad
        0 \le l_i \le upper_i, \quad \sum_i signs_i\, l_i = total.

    The solution is :math:`l_i = \min(\max(v_i + signs_i \mu, 0), upper_i)`; the sum is a piecewise
    linear function of :math:`\mu` that never falls. Newton's method finds the piece that holds the
    total; where it leaves its bracket, the piece is found between sorted breakpoints.

    Parameters
    ----------
    v : array-like of shape (n,)
        The point to project. Finite.
    upper : array-like of shape (n,)
        Upper bounds, 0 or more; inf is no bound.
    signs : array-like of shape (n,)
        +1 or -1 each.
    total : float
        What the signed sum is to be.

    Returns
    -------
    ndarray of shape (n,)
        Within the box; the sum is right but for rounding.

    Raises
    ------
    ValueError
        If a number is nan or out of its range (the entry is named), or no point of the box has this
        sum (the sums within reach are named).

    Notes
    -----
    Time O(n log n) at the worst; mostly some five sums. Memory O(n).

    References
    ----------
    He, Tong and Carbonell, "Rare category characterization", ICDM 2010, Problem 4, which four
    nested loops over set sizes solve there. Cominetti, Mascarenhas and Silva, "A Newton's method
    for the continuous quadratic knapsack problem", Mathematical Programming Computation, 2014.

    Examples
    --------
    >>> project_knapsack([0.9, 0.5, 0.2], [1.0, 1.0, 1.0], [1, 1, -1], 1.0).round(3).tolist()
    [0.833, 0.433, 0.267]
    """
    v, upper, signs = (np.asarray(x, np.float64) for x in (v, upper, signs))
    _check(v, upper, signs, total)
    return nearest_in_box(v, upper, signs, float(total))[0]


def nearest_in_box(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> tuple[np.ndarray, float]:
    """Project valid float64 arrays like `project_knapsack`; return mu too. Quick for mu near 0."""
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


def _check(v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float) -> None:
    if v.ndim != 1 or v.shape != upper.shape or v.shape != signs.shape:
        raise ValueError(
            "v, upper and signs are to be of one length each; their shapes are "
            f"{v.shape}, {upper.shape} and {signs.shape}."
        )
    for name, x, right, wanted in (
        ("v", v, np.isfinite(v), "a finite number"),
        ("upper", upper, upper >= 0.0, "0 or more (inf is no bound)"),
        ("signs", signs, np.abs(signs) == 1.0, "+1 or -1"),
    ):
        if not right.all():
            i = int(np.argmin(right))
            raise ValueError(f"{name}[{i}] is {x[i]}, and is to be {wanted}.")
    lowest, highest = -float(upper[signs < 0.0].sum()), float(upper[signs > 0.0].sum())
    room = _ROUNDING * float(upper[np.isfinite(upper)].sum())
    if not lowest - room <= total <= highest + room:
        raise ValueError(
            f"total is {total}, and the signed sum can only be {lowest} to {highest}: raise upper "
            "bounds, or choose a total within reach."
        )
