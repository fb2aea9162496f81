"""The dual of MIBC: one class of rare rows, in a box, in the metric of the majority."""

from typing import NamedTuple

import numpy as np

from rareclass.findings import Status
from rareclass.moments.dual_problem import Order, Point, Problem, RareRows, dense_rows, passes
from rareclass.moments.dual_second_stage import MovableRows, finish

__all__ = ["DualSolution", "RareRows", "dense_rows", "solve_dual"]

_BATCH = 10


class DualSolution(NamedTuple):
    """Where the solver stopped, and how well."""

    alpha: np.ndarray  # within the box
    sparse_part: np.ndarray  # A'alpha, shape (n_columns,)
    dense_part: np.ndarray  # left'alpha, shape (p,)
    # of the primal, P: at w, or at the multiple of w that takes all free rows to the margin (a
    # factor of 1 but for rounding) where that is less
    objective: float
    gap: float  # relative, (P - D) / P over all rows
    n_iter: int  # passes of coordinate descent
    status: str  # "converged", "stopped at rounding error" or "reached max_iter"


def solve_dual(
    rows: RareRows,
    upper: np.ndarray,
    tol: float = 1e-6,
    max_iter: int = 1000,
    start: np.ndarray | None = None,
    seed: int = 0,
) -> DualSolution:
    r"""Solve the dual (4) of MIBC, or its hard-margin limit.

    .. math::
        D(\alpha) = 1'\alpha - \tfrac12 \alpha'K\alpha, \quad 0 \le \alpha_i \le upper_i; \qquad
        P(\alpha) = \tfrac12 \alpha'K\alpha + \sum_i upper_i \max(0, 1 - s_i), \quad s = K\alpha

    with K the inner products of the rows. P and D meet at the solution, and elsewhere
    :math:`P - D = \sum_i \max(0, s_i - 1) \alpha_i + \max(0, 1 - s_i) (upper_i - \alpha_i)`.
    Where upper is inf, the solution is the projection of the mean onto the convex hull of the rows:
    of all multiples of alpha the best one is taken, and
    :math:`(P - D) / P = 1 - \min_i(s_i)^2`.

    1. Coordinate descent over the rows in random order, leaving out rows that stay at a bound,
       until the gap over all rows is small or an interior point is cheaper than what is left.
    2. That interior point, on all rows or on as many nearest to the margin as is affordable.
    3. The exact solution on the free rows, and passes of 1, in turn, until the gap is small or
       does not fall any more.

    `upper` is C times the weights: 0 leaves a row out; inf for all others, or for none of them.
    `tol` is the relative duality gap to stop at, `max_iter` the most passes of coordinate descent;
    the second stage begins after half of them, if not sooner. `start` is clipped into the box; None
    is 0. `seed` is of the order of the rows.

    Raises `InputError` if upper is inf and the mean lies within the convex hull of the rows, or
    within 1e-7 of it, relative to the longest row.

    Time: the numbers held for the rows, per pass; the second stage 20 n r^2 with r = min(n, p), and
    n^3 for sparse rows. Memory: alpha, A'alpha and left'alpha, and n r in the second stage. Returns
    to Python about every 0.1 s, so that it can be interrupted.

    >>> solution = solve_dual(dense_rows(np.array([[1.0], [0.5]])), np.array([1.0, 1.0]))
    >>> solution.alpha.tolist(), solution.dense_part.tolist()  # the second row is at its bound
    ([0.5, 1.0], [1.0])
    """
    problem = Problem(rows, np.asarray(upper, np.float64))
    alpha = np.zeros(len(problem.upper)) if start is None else problem.clipped(start)
    order = Order(np.array([seed], np.uint64), np.arange(len(alpha)))
    # 1.
    point, n_iter = _descend_while_it_pays(problem, alpha, order, tol, (max_iter + 1) // 2)
    # 2. and 3.
    status = Status.CONVERGED if point.gap <= tol else Status.MAX_ITER
    if status != Status.CONVERGED and n_iter < max_iter:
        point, n_iter, status = finish(problem, point, order, tol, max_iter, n_iter)
    v, g = problem.combined(point.alpha)
    return DualSolution(point.alpha, v, g, point.objective, point.gap, n_iter, status)


def _descend_while_it_pays(
    problem: Problem, alpha: np.ndarray, order: Order, tol: float, max_iter: int
) -> tuple[Point, int]:
    """Step 1: until the gap is small, or what is left would cost more than the second stage.

    What is left is guessed from how the gap fell in the last passes; the guess counts once a
    quarter of that cost is spent, and twice that cost is the end in any case.
    """
    point, n_iter, spent = problem.measure(alpha), 0, 0.0
    second = MovableRows.of(problem, point).cost()
    while point.gap > tol and n_iter < max_iter:
        batch = min(max(_BATCH, n_iter // 2), max_iter - n_iter)
        last, (point, n_passes, n_visits) = point, passes(problem, point, order, tol, batch)
        n_iter += n_passes
        cost = n_visits * problem.row_cost()
        spent += cost
        if point.gap <= tol:
            break
        fall = np.log(last.gap / point.gap)
        left = cost * np.log(point.gap / tol) / fall if fall > 0.0 and tol > 0.0 else np.inf
        if spent > 2.0 * second or (left > second and spent > 0.25 * second):
            break
    return point, n_iter
