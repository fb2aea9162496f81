"""The paper's own way to the ball: convex problems one after the other.

`solve_ball` needs none of this, and ends where this leads to; it is kept as what the paper says.
"""

import numpy as np

from rareclass.findings import Status
from rareclass.hyperball.ball_problem import BallDual, BallProblem, Place, ShiftedRows
from rareclass.hyperball.ball_solver import BallSolution
from rareclass.hyperball.dual_ascent import Ascent, ascend, feasible, multipliers_of


class LinearisedDual(BallDual):
    r"""Problem 3, the dual of Problem 2: the majority's distances are replaced by their tangents.

    Seen from the middle, where the tangents touch:

    .. math::
        reach_k = \|x'_k - c'\|^2 \ (+), \qquad reach_i = \|x'_i\|^2 - 2 z'_i c' \ (-)

        D(l) = \sum_i s_i l_i \|x'_i\|^2 - \|V\|^2 / S, \quad V = \sum_i s_i l_i z'_i, \quad
        S = \sum_{+} l_i, \quad c' = V / S
    """

    def total(self, multipliers: np.ndarray) -> float:
        """S: the sum over the rows of sign +1."""
        return float(multipliers[self.rows.plus].sum())

    def reach(self, place: Place) -> np.ndarray:
        """Squared distances and tangents; signs times this is the gradient."""
        shift = place.V / place.S
        reach = self.squares - (2.0 / place.S) * place.inner
        reach[self.rows.plus] += shift @ shift
        return reach


def solve_linearised(
    problem: BallProblem,
    tangent_point: np.ndarray,
    start_multipliers: np.ndarray | None = None,
    *,
    tol: float = 1e-6,
    max_inner: int = 5000,
) -> BallSolution:
    r"""Solve one of the paper's convex problems (2) by its dual (3).

    .. math::
        \min_{c, R^2} R^2 + \sum_{-} price_i \max(0, R^2 - t_i(c))
        + \sum_{+} price_k \max(0, \|x_k - c\|^2 - R^2), \qquad
        t_i(c) = \|x_i\|^2 - \|c_t\|^2 + 2 (c_t - x_i)'c

    The tangents t touch the squared distances at c_t, the tangent point. `tol` is the relative gap
    between (2) and (3). Of the solution, objective, radius and gap are those of the convex problem;
    its path holds Problem 1 at c_t and Problem 2 at the solution. Time: two products with the rows
    a step.
    """
    rows = ShiftedRows(problem)
    dual = LinearisedDual(rows, np.asarray(tangent_point, np.float64) - rows.origin)
    start = multipliers_of(dual) if start_multipliers is None else feasible(dual, start_multipliers)
    found = ascend(dual, start, tol, max_inner)
    return BallSolution(
        rows.origin + dual.center(found.place),
        found.optimality.squared_radius,
        found.place.multipliers,
        found.optimality.objective,
        (rows.value(dual.middle).objective, found.optimality.objective),
        found.optimality.gap,
        1,
        found.n_steps,
        Status.CONVERGED if found.optimality.gap <= tol else Status.MAX_ITER,
    )


def convex_concave(
    problem: BallProblem,
    start_center: np.ndarray,
    start_multipliers: np.ndarray | None = None,
    *,
    tol: float = 1e-6,
    max_outer: int = 50,
    max_inner: int = 5000,
) -> BallSolution:
    """Find the ball as the paper does (Algorithm 4), for comparison: `solve_ball` is better.

    1. Solve the problem linearised at the centre, by accelerated projected gradient.
    2. Its centre is the next one, unless Problem 1 is worse there; which rounding alone does.
    3. From 1 again, until Problem 1 falls by less than tol of itself.

    The steps shrink like those of gradient descent, the more so the higher the prices of majority
    rows inside: it can stop far from the best ball, and cannot know: its gap is that of the last
    convex problem, which says nothing about Problem 1.
    """
    rows = ShiftedRows(problem)
    center = np.asarray(start_center, np.float64) - rows.origin
    value = rows.value(center)
    path, multipliers, step = [value.objective], start_multipliers, None
    last: Ascent | None = None
    n_inner, converged = 0, False
    while len(path) <= max_outer and not converged:
        # 1.
        dual = LinearisedDual(rows, center)
        start = multipliers_of(dual) if multipliers is None else feasible(dual, multipliers)
        found = ascend(dual, start, tol, max_inner, step)
        n_inner, step = n_inner + found.n_steps, found.step
        # 2.
        new_value = rows.value(dual.center(found.place))
        fall = value.objective - new_value.objective
        if fall >= 0.0:
            center, value = dual.center(found.place), new_value
        if fall >= 0.0 or last is None:
            last, multipliers = found, found.place.multipliers
        # 3.
        path.append(value.objective)
        converged = fall <= tol * abs(value.objective)
    assert last is not None
    done = converged and last.optimality.gap <= tol
    return BallSolution(
        rows.origin + center,
        value.squared_radius,
        last.place.multipliers,
        value.objective,
        tuple(path),
        last.optimality.gap,
        len(path) - 1,
        n_inner,
        Status.CONVERGED if done else Status.MAX_ITER,
    )
