"""The dual by accelerated projected gradient, with a step that is found and not asked for."""

from typing import NamedTuple

import numpy as np

from rareclass.hyperball.ball_problem import BallDual, Optimality, Place
from rareclass.hyperball.knapsack import nearest_in_box

# Steps from one look at the gap to the next.
_LOOK = 10
# How much longer each step is tried than the last.
_GROWTH = 1.1
_MOST_TRIES = 40
_EPS = 4.0 * float(np.finfo(float).eps)


class Ascent(NamedTuple):
    """Where the ascent stopped."""

    place: Place  # the one of the smallest gap
    optimality: Optimality
    n_steps: int
    step: float | None  # the last step size: one to begin with in a problem much like this one


def feasible(dual: BallDual, multipliers: np.ndarray) -> np.ndarray:
    """The nearest multipliers in the box whose signed sum is 1."""
    return nearest_in_box(multipliers, dual.rows.price, dual.rows.signs, 1.0)[0]


def multipliers_of(dual: BallDual) -> np.ndarray:
    """Multipliers for a ball around the middle: the price on the wrong side, 0 on the right."""
    rows = dual.rows
    radius = rows.value(dual.middle).squared_radius
    wrong = (rows.signs * (dual.squares - radius) > 0.0) & np.isfinite(rows.price)
    return feasible(dual, np.where(wrong, rows.price, 0.0))


def ascend(
    dual: BallDual, start: np.ndarray, tol: float, most_steps: int, step: float | None = None
) -> Ascent:
    r"""Climb from feasible multipliers until the relative gap, seen every 10 steps, is tol or less.

    1. Project :math:`y + t \nabla D(y)` on the box and the hyperplane: the knapsack.
    2. The dual lies below its tangent at y by exactly :math:`S \|c - c_y\|^2`, the c being centres.
       Where that is more than :math:`\|l - y\|^2 / 2 t`, the step was too long: again, with half of
       it or less. Otherwise the next one may be a tenth longer.
    3. y goes beyond l by Nesterov's share, which starts anew whenever the step turned back.

    `step` is the t to begin with. Time for a step: two products with the rows, and a knapsack. Beck
    and Teboulle, "A fast iterative shrinkage-thresholding algorithm for linear inverse problems",
    SIAM J. Imaging Sciences, 2009; O'Donoghue and Candes, "Adaptive restart for accelerated
    gradient schemes", Foundations of Computational Mathematics, 2015.
    """
    here = ahead = best = dual.at(start)
    worth = dual.optimality(here)
    if step is None:
        step = 0.25 / max(float(dual.squares.mean()), np.finfo(float).tiny)
    momentum, n_steps, radius = 1.0, 0, worth.squared_radius
    while worth.gap > tol and n_steps < most_steps:
        # 1. and 2.
        last = here
        here, step, radius = _stepped(dual, ahead, step, radius)
        n_steps += 1
        step *= _GROWTH
        # 3.
        turned = (ahead.multipliers - here.multipliers) @ (here.multipliers - last.multipliers)
        before = 1.0 if turned > 0.0 else momentum
        momentum = 0.5 + np.sqrt(0.25 + before**2)
        ahead = here.beyond(last, (before - 1.0) / momentum)
        if ahead.S < 0.5 * here.S:  # too far out for the linearised dual, which needs S > 0
            momentum, ahead = 1.0, here
        if n_steps % _LOOK == 0 or n_steps == most_steps:
            now = dual.optimality(here)
            if now.gap < worth.gap:
                best, worth = here, now
    return Ascent(best, worth, n_steps, step)


def _stepped(
    dual: BallDual, ahead: Place, step: float, radius: float
) -> tuple[Place, float, float]:
    """The projected step from a place, its length once it is short enough, and R^2.

    R^2 is the multiplier of the sum. Less what it was last, a gradient needs but a small shift,
    which the projection is quick to find.
    """
    signs, price = dual.rows.signs, dual.rows.price
    gradient, first = signs * (dual.reach(ahead) - radius), step
    for _ in range(_MOST_TRIES):
        multipliers, mu = nearest_in_box(ahead.multipliers + step * gradient, price, signs, 1.0)
        moved = dual.at(multipliers)
        longest = _longest_step(dual, ahead, moved)
        if step <= longest:
            return moved, step, radius - mu / step
        step = max(min(0.5 * step, longest), 1e-3 * step)
    return moved, first, radius  # nothing but rounding errors lies between the two


def _longest_step(dual: BallDual, a: Place, b: Place) -> float:
    """The longest step for which the dual at b is above the parabola at a, but for rounding."""
    way, turn = b.multipliers - a.multipliers, b.V / b.S - a.V / a.S
    blur = _EPS**2 * float(b.multipliers.sum()) * float(b.multipliers @ dual.squares)
    fall = 2.0 * b.S * (float(turn @ turn) - blur / b.S**2)
    return float(way @ way) / fall if fall > 0.0 else np.inf
