"""The best ball, of all that there are; of one class alone, where the search for it begins."""

from typing import NamedTuple

import numpy as np

from rareclass.findings import Status
from rareclass.hyperball.ball_problem import (
    BallDual,
    BallProblem,
    Optimality,
    Place,
    Points,
    ShiftedRows,
)
from rareclass.hyperball.dual_ascent import ascend, feasible, multipliers_of
from rareclass.hyperball.second_stage import SecondStage, polished_center

# Outer steps without half the gap gone, after which it is left to rounding errors.
_MOST_IDLE = 5
# A gap that rounding errors explain; a larger one is a solver that was cut short.
_ROUNDING_GAP = 1e-6


class BallSolution(NamedTuple):
    """A ball, and how well it was found."""

    center: np.ndarray
    squared_radius: float  # the best one for this centre
    # 0 for rows on the right side of the sphere, the price for those on the wrong side
    multipliers: np.ndarray
    objective: float  # of Problem 1 at this centre and radius
    # the same at the start and after each outer step: it never increases
    objective_path: tuple[float, ...]
    gap: float  # relative duality gap: (objective - dual value of the multipliers) / objective
    n_outer: int
    n_inner: int  # in all outer steps
    status: Status  # converged, stopped at rounding error or reached max_iter


def solve_ball(
    problem: BallProblem,
    start_center: np.ndarray,
    start_multipliers: np.ndarray | None = None,
    *,
    tol: float = 1e-6,
    max_outer: int = 50,
    max_inner: int = 5000,
) -> BallSolution:
    r"""Find the centre and radius of least objective, of Problem 1 itself.

    As Problem 1 is convex in :math:`(c, R^2 - \|c\|^2)` (see `BallDual`), this is the best ball of
    all, wherever the start; the paper's convex-concave loop leads to the same one in more steps. An
    outer step is:

    1. Accelerated projected gradient on the dual, until the gap is small or 2 is cheaper.
    2. An interior point on the rows near the sphere, or on all rows where they are few.
    3. The exact end on the rows that lie on the sphere.

    The best ball and the best multipliers met so far are kept. Their gap proves how far from the
    best one the ball returned is: :math:`\|c - c^*\|^2 \le gap \cdot objective`. `tol` is the
    relative gap to stop at; one to three outer steps are usual. Multipliers of a problem nearby
    save steps; the projection makes them feasible.

    Time: some hundred passes over the rows, and 30 m p^2 with m up to 4 p rows near the sphere.
    Memory: a copy of the rows. Raises ValueError if signs or prices do not fit the points, or
    prices of sign +1 sum to less than 1.

    >>> rows = Points(np.array([[0.0], [1.0], [4.0], [1.5]]), np.zeros(4))
    >>> problem = BallProblem(rows, np.array([1, 1, 1, -1.0]), np.array([np.inf, np.inf, 0.2, 1.0]))
    >>> ball = solve_ball(problem, np.array([0.5]))
    >>> ball.center.round(6).tolist(), round(ball.squared_radius, 6)
    ([0.75], 0.5625)
    """
    rows = ShiftedRows(problem)
    best = _Best(rows, np.asarray(start_center, np.float64) - rows.origin)
    dual = BallDual(rows, best.center)
    if start_multipliers is None:
        multipliers = multipliers_of(dual)
    else:
        multipliers = feasible(dual, np.asarray(start_multipliers, np.float64))
    best.multipliers = multipliers
    second = SecondStage(rows)
    n_outer = n_inner = idle = 0
    step: float | None = None
    while n_outer < max_outer and best.gap > tol and idle < _MOST_IDLE:
        last_gap, dual = best.gap, BallDual(rows, best.center)
        # 1.
        found = ascend(dual, multipliers, tol, min(max_inner, second.most_steps()), step)
        # 2. and 3.
        place, worth, n_steps = second.ended(dual, found.place, found.optimality, tol, max_inner)
        best.meet(dual, place, worth)
        if best.gap > tol:
            best.meet_center(dual, polished_center(dual, place))
        best.end_step()
        n_outer, n_inner, step = n_outer + 1, n_inner + found.n_steps + n_steps, found.step
        multipliers = best.multipliers
        idle = 0 if best.gap < 0.5 * last_gap else idle + 1
    return best.solution(n_outer, n_inner, _status(best.gap, tol))


def _status(gap: float, tol: float) -> Status:
    if gap <= tol:
        return Status.CONVERGED
    return Status.ROUNDING if gap <= _ROUNDING_GAP else Status.MAX_ITER


class _Best:
    """The best ball and the best multipliers so far: bounds of the objective from both sides."""

    def __init__(self, rows: ShiftedRows, center: np.ndarray) -> None:
        self._rows, self.center = rows, center
        self._squared_radius, self._objective = rows.value(center)
        self._path = [self._objective]
        self._dual_value, self.gap = -np.inf, np.inf
        self.multipliers = np.zeros(0)

    def meet(self, dual: BallDual, place: Place, worth: Optimality) -> None:
        """Take what is better of multipliers and their centre."""
        if worth.objective - worth.excess > self._dual_value:
            self._dual_value = worth.objective - worth.excess
            self.multipliers = place.multipliers
        self.meet_center(dual, dual.center(place))

    def meet_center(self, dual: BallDual, center: np.ndarray) -> None:
        """Take a centre, if it is better.

        Its distances are worked out afresh from the origin of the rows, which is near the ball:
        from the middle of the dual, which may be far off, small ones are not known well.
        """
        radius, objective = self._rows.value(center)
        if objective <= self._objective:
            self.center, self._squared_radius, self._objective = center, radius, objective
        self._measure(dual)

    def _measure(self, dual: BallDual) -> None:
        excess = max(self._objective - self._dual_value, 0.0)
        self.gap = dual.relative(excess, self._objective)

    def end_step(self) -> None:
        self._path.append(self._objective)

    def solution(self, n_outer: int, n_inner: int, status: Status) -> BallSolution:
        return BallSolution(
            self._rows.origin + self.center,
            self._squared_radius,
            self.multipliers,
            self._objective,
            tuple(self._path),
            self.gap,
            n_outer,
            n_inner,
            status,
        )


def one_class_center(
    points: Points, weight: np.ndarray, nu: float = 0.5
) -> tuple[np.ndarray, float]:
    r"""Find the ball that leaves out at most a share nu of the weight: centre, squared radius.

    .. math::
        \min_{c, R^2} R^2 + \frac{1}{\nu \sum_i w_i} \sum_i w_i \max(0, \|x_i - c\|^2 - R^2)

    the support vector data description (Tax and Duin, Machine Learning, 2004). With a kernel whose
    k(x, x) is constant it is the one-class support vector machine that the paper begins with. A
    higher nu, in (0, 1], draws the centre to the mean of the rows, a lower one to the middle of the
    farthest. Rows of weight 0 are not there; where several radii are as good, a small one is taken:
    for a single row 0. Cost: as of `solve_ball`. Raises ValueError if nu is out of range or no
    weight is above 0.

    >>> rows = Points(np.array([[0.0], [1.0], [2.0], [9.0]]), np.zeros(4))
    >>> center, squared_radius = one_class_center(rows, np.ones(4), nu=0.01)
    >>> center.tolist(), squared_radius
    ([4.5], 20.25)
    """
    weight = np.asarray(weight, np.float64)
    if not 0.0 < nu <= 1.0:
        raise ValueError(f"nu is {nu}, and is to be above 0 and at most 1.")
    if not (weight > 0.0).any():
        raise ValueError("No row has a weight above 0: there is nothing to put a ball around.")
    used = np.flatnonzero(weight > 0.0)
    points, weight = points.take(used), weight[used]
    price = weight / (nu * weight.sum())
    start = points.combine(weight / weight.sum())
    solution = solve_ball(BallProblem(points, np.ones(len(weight)), price), start)
    return solution.center, solution.squared_radius
