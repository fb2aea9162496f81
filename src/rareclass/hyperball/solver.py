"""The best ball by its dual: accelerated projected gradient, then the second stage.

`solve_ball` solves Problem 1 at once; `one_class_center` gives the ball of one class, where the
search begins. The second stage is an interior point on rows near the sphere, and an exact end. The
paper's own loop of linearised problems (Algorithm 4) leads to the same ball in more steps
(docs/decisions/0019).
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from rareclass.errors import ErrorKind
from rareclass.findings import Status
from rareclass.hyperball.problem import (
    BallDual,
    BallProblem,
    DualIterate,
    Optimality,
    Points,
    ShiftedRows,
    nearest,
    project_knapsack,
)
from rareclass.moments.box_qp import BoxQP, face_step, interior_point, to_face

# Rows of the interior point: so many in any case, so many for a coordinate, and as many as these
# products of a factorisation allow.
_ROWS, _TIMES, _FEW_PRODUCTS = 500, 4, 3e6
# Relative error of a signed sum of multipliers beyond rounding.
_SUM_ERROR = 1e-10
_POLISHED = 3
# Of the interior point: most steps, and the relative gap to stop at.
_MOST_STEPS, _NEAR = 80, 1e-12


def affordable_rows(rows: ShiftedRows) -> int:
    """Return the number of rows that the first interior point takes."""
    n, p = rows.Z.shape
    r = max(min(n, p), 1)
    return min(n, max(_ROWS, _TIMES * (r + 1), int(_FEW_PRODUCTS / r**2)))


def ended(
    dual: BallDual, iterate: DualIterate, worth: Optimality, tol: float, most: int, max_steps: int
) -> tuple[DualIterate, Optimality, int]:
    """Return the better of an iterate and its exact end, and the steps that were taken.

    1. Where the gap is not small, the interior point on the `most` rows nearest to the sphere.
    2. The exact end on the rows that this, or the ascent, has left strictly inside their box.

    Multipliers of the other rows stay: the dual rises in any case.
    """
    multipliers, n_steps = iterate.multipliers.copy(), 0
    if worth.gap > tol:
        # 1.
        chosen = _near_sphere(dual, iterate, worth, most)
        part = part_of(dual, iterate, chosen)
        per_score = np.minimum(part.upper, 1.0)
        found = interior_point(part, 1.0, per_score, _NEAR, min(max_steps, _MOST_STEPS))
        moved, n_steps = np.clip(found.alpha, 0.0, part.upper), found.n_steps
    else:
        chosen = free_rows(dual, multipliers)
        if not 0 < len(chosen) <= most:
            return iterate, worth, 0
        part, moved = part_of(dual, iterate, chosen), multipliers[chosen]
    # 2.
    multipliers[chosen] = to_face(part, moved)
    if abs(dual.rows.signs @ multipliers - 1.0) > _SUM_ERROR * multipliers.sum():
        # The interior point was cut short before the sum was right.
        multipliers = dual.feasible(multipliers)
    end = dual.at(multipliers)
    ends_worth = dual.optimality(end)
    if ends_worth.gap < worth.gap:
        return end, ends_worth, n_steps
    return iterate, worth, n_steps


def _near_sphere(dual: BallDual, iterate: DualIterate, worth: Optimality, most: int) -> np.ndarray:
    """Return the rows nearest to the sphere."""
    if most == len(dual.rows.signs):
        return np.arange(most)
    distances = np.sqrt(np.maximum(dual.reach(iterate), 0.0))
    apart = np.abs(distances - np.sqrt(max(worth.squared_radius, 0.0)))
    return nearest(apart, most)


def free_rows(dual: BallDual, multipliers: np.ndarray) -> np.ndarray:
    """Return the rows strictly inside their box: on the sphere, if the multipliers are right."""
    return np.flatnonzero((multipliers > 0.0) & (multipliers < dual.rows.price))


def part_of(dual: BallDual, iterate: DualIterate, chosen: np.ndarray) -> BoxQP:
    r"""Return the dual over some rows, near 1 in size; its rows are :math:`\sqrt2 s_i z_i`.

    They are seen from the centre of the iterate or, where all are chosen, the middle of the dual.
    """
    rows = dual.rows
    signs, price = rows.signs[chosen], rows.price[chosen]
    if len(chosen) == len(rows.signs):
        center, squares, total = dual.middle, dual.squares, 0.0
        way = np.zeros_like(center)
    else:
        center, squares = dual.center(iterate), np.maximum(dual.reach(iterate)[chosen], 0.0)
        held = rows.signs * iterate.multipliers
        held[chosen] = 0.0
        total = float(held.sum())
        way = rows.Z.T @ held - total * center
    Z, V0 = _coordinates(rows, center, chosen, way)
    return _box_qp(Z, V0, squares, signs, price, 1.0 - total)


def _box_qp(
    Z: np.ndarray,
    V0: np.ndarray,
    squares: np.ndarray,
    signs: np.ndarray,
    price: np.ndarray,
    total: float,
) -> BoxQP:
    scale = float(np.median(squares)) or float(squares.mean()) or 1.0
    unit = np.sqrt(2.0 / scale)
    Z = Z * (unit * signs)[:, None]
    return BoxQP(Z, signs * squares / scale, price, signs, total, unit * V0)


def _coordinates(
    rows: ShiftedRows, center: np.ndarray, chosen: np.ndarray, way: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return rows seen from a centre, and a direction, in no more columns than there are rows."""
    m, p = len(chosen), rows.Z.shape[1]
    Z = rows.Z[chosen]
    if sparse.issparse(Z) and p > m:
        across = Z @ center
        K = (Z @ Z.T).toarray() - across[:, None] - across + center @ center
        factor, pivots, rank, _ = dpstrf(K, lower=True)
        L, order = np.tril(factor)[:, :rank], pivots - 1
        coordinates = np.empty((m, rank))
        coordinates[order] = L
        inner = (Z @ way - center @ way)[order[:rank]]
        return coordinates, solve_triangular(L[:rank], inner, lower=True)
    Z = (Z.toarray() if sparse.issparse(Z) else Z) - center
    if p > m:
        Q, R = qr(Z.T, mode="economic")
        return np.ascontiguousarray(R.T), Q.T @ way
    return Z, way


def polished_center(dual: BallDual, iterate: DualIterate) -> np.ndarray:
    """Return the centre nearest to the iterate's that has its free rows at one distance.

    Where prices and multipliers are huge, their sum V has lost the digits that matter.
    """
    rows, center = dual.rows, dual.center(iterate)
    free = free_rows(dual, iterate.multipliers)
    if not 0 < len(free) <= min(_ROWS + rows.Z.shape[1], _TIMES * _ROWS):
        return center
    nothing = np.zeros(len(free))
    for _ in range(_POLISHED):
        squares = rows.squared_distances(center)[free]
        Z, V0 = _coordinates(rows, center, free, np.zeros_like(center))
        part = _box_qp(Z, V0, squares, rows.signs[free], nothing, 0.0)
        step, ends = face_step(part, nothing, np.arange(len(free)))
        if not ends:
            break
        weights = rows.signs[free] * step
        center = center + rows.Z[free].T @ weights - weights.sum() * center
    return center


# Steps of the ascent before the second stage.
_ASCENT_STEPS = 30
# Steps from one look at the gap to the next.
_LOOK = 10
# How much longer each step is tried than the last.
_GROWTH = 1.1
_MOST_TRIES = 40
_EPS = 4.0 * float(np.finfo(float).eps)
# Outer steps that do not halve the gap, after which rounding errors are to blame.
_MOST_IDLE = 5
# A gap that rounding errors explain; with a larger one the solver was cut short.
_ROUNDING_GAP = 1e-6


class BallSolution(NamedTuple):
    """A ball, its multipliers, and how the solver ended."""

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
    all, wherever the start. An outer step is:

    1. Accelerated projected gradient on the dual, for up to 30 steps.
    2. An interior point on the rows near the sphere, or on all rows where they are few. Where that
       does not halve the gap, next time on twice as many.
    3. The exact end on the rows that lie on the sphere.

    The best ball and multipliers met so far are kept. Their gap, of which `tol` is the relative one
    to stop at, proves that :math:`\|c - c^*\|^2 \le gap \cdot objective`. Multipliers of a problem
    nearby save steps; the projection makes them feasible.

    Time: some hundred passes over the rows, and 30 m p^2 with m up to 4 p rows near the sphere.

    >>> rows = Points(np.array([[0.0], [1.0], [4.0], [1.5]]), np.zeros(4))
    >>> problem = BallProblem(rows, np.array([1, 1, 1, -1.0]), np.array([np.inf, np.inf, 0.2, 1.0]))
    >>> ball = solve_ball(problem, np.array([0.5]))
    >>> ball.center.round(6).tolist(), round(ball.squared_radius, 6)
    ([0.75], 0.5625)
    """
    rows = ShiftedRows(problem)
    best = _BestBall(rows, np.asarray(start_center, np.float64) - rows.origin)
    dual = BallDual(rows, best.center)
    if start_multipliers is None:
        multipliers = dual.first_multipliers()
    else:
        multipliers = dual.feasible(np.asarray(start_multipliers, np.float64))
    best.multipliers, path = multipliers, [best.value.objective]
    most = affordable_rows(rows)
    n_outer = n_inner = idle = 0
    step: float | None = None
    while n_outer < max_outer and best.gap > tol and idle < _MOST_IDLE:
        last_gap, dual = best.gap, BallDual(rows, best.center)
        # 1.
        found = ascend(dual, multipliers, tol, min(max_inner, _ASCENT_STEPS), step)
        # 2. and 3.
        iterate, worth, n_steps = ended(dual, found.iterate, found.optimality, tol, most, max_inner)
        if n_steps and not worth.gap < 0.5 * found.optimality.gap:
            most = min(2 * most, len(rows.signs))
        best.meet(dual, iterate, worth)
        if best.gap > tol:
            best.meet_center(dual, polished_center(dual, iterate))
        path.append(best.value.objective)
        n_outer, n_inner, step = n_outer + 1, n_inner + found.n_steps + n_steps, found.step
        multipliers = best.multipliers
        idle = 0 if best.gap < 0.5 * last_gap else idle + 1
    status = Status.ROUNDING if best.gap <= _ROUNDING_GAP else Status.MAX_ITER
    return BallSolution(
        rows.origin + best.center,
        best.value.squared_radius,
        multipliers,
        best.value.objective,
        tuple(path),
        best.gap,
        n_outer,
        n_inner,
        Status.CONVERGED if best.gap <= tol else status,
    )


class _BestBall:
    """The best ball and the best multipliers so far: bounds of the objective from both sides."""

    def __init__(self, rows: ShiftedRows, center: np.ndarray) -> None:
        self._rows, self.center, self.value = rows, center, rows.value(center)
        self._dual_value, self.gap = -np.inf, np.inf
        self.multipliers = np.zeros(0)

    def meet(self, dual: BallDual, iterate: DualIterate, worth: Optimality) -> None:
        """Keep multipliers and their centre where they are better."""
        if worth.objective - worth.excess > self._dual_value:
            self._dual_value = worth.objective - worth.excess
            self.multipliers = iterate.multipliers
        self.meet_center(dual, dual.center(iterate))

    def meet_center(self, dual: BallDual, center: np.ndarray) -> None:
        """Keep a centre if it is better, by distances from the origin of the rows."""
        value = self._rows.value(center)
        if value.objective <= self.value.objective:
            self.center, self.value = center, value
        excess = max(self.value.objective - self._dual_value, 0.0)
        self.gap = dual.relative(excess, self.value.objective)


def one_class_center(
    points: Points, weight: np.ndarray, nu: float = 0.5
) -> tuple[np.ndarray, float]:
    r"""Find the ball that leaves out at most a share nu of the weight: centre, squared radius.

    .. math::
        \min_{c, R^2} R^2 + \frac{1}{\nu \sum_i w_i} \sum_i w_i \max(0, \|x_i - c\|^2 - R^2)

    the support vector data description (Tax and Duin, Machine Learning, 2004). A higher nu, in
    (0, 1], draws the centre to the mean of the rows. Of several radii as good a small one is taken:
    0 for a single row. Raises `ValueError` if no weight is above 0.

    >>> rows = Points(np.array([[0.0], [1.0], [2.0], [9.0]]), np.zeros(4))
    >>> center, squared_radius = one_class_center(rows, np.ones(4), nu=0.01)
    >>> center.tolist(), squared_radius
    ([4.5], 20.25)
    """
    weight = np.asarray(weight, np.float64)
    if not (weight > 0.0).any():
        raise ErrorKind.LABELS.error(
            "No row has a weight above 0: there is nothing to put a ball around."
        )
    used = np.flatnonzero(weight > 0.0)
    points, weight = points.take(used), weight[used]
    price = weight / (nu * weight.sum())
    start = points.combine(weight / weight.sum())
    solution = solve_ball(BallProblem(points, np.ones(len(weight)), price), start)
    return solution.center, solution.squared_radius


class Ascent(NamedTuple):
    """Iterate of smallest gap, where the ascent stopped."""

    iterate: DualIterate
    optimality: Optimality
    n_steps: int
    step: float | None  # the last step size: one to begin with in a problem much like this one


def ascend(
    dual: BallDual, start: np.ndarray, tol: float, most_steps: int, step: float | None = None
) -> Ascent:
    r"""Climb from feasible multipliers until the relative gap, seen every 10 steps, is tol or less.

    1. Project :math:`y + t \nabla D(y)` on the box and the hyperplane: the knapsack.
    2. The dual lies below its tangent at y by exactly :math:`\|c - c_y\|^2`, the c being centres.
       Where that is more than :math:`\|l - y\|^2 / 2 t`, the step was too long: again, with half of
       it or less. Otherwise the next one may be a tenth longer.
    3. y goes beyond l by Nesterov's share, which starts anew whenever the step turned back
       (O'Donoghue, Candes, Foundations of Computational Mathematics, 2015).

    `step` is the t to begin with. Time for a step: two products with the rows, and a knapsack.
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
        if n_steps % _LOOK == 0 or n_steps == most_steps:
            now = dual.optimality(here)
            if now.gap < worth.gap:
                best, worth = here, now
    return Ascent(best, worth, n_steps, step)


def _stepped(
    dual: BallDual, ahead: DualIterate, step: float, radius: float
) -> tuple[DualIterate, float, float]:
    """Return the projected step from an iterate, its length once it is short enough, and R^2."""
    signs, price = dual.rows.signs, dual.rows.price
    gradient, first = signs * (dual.reach(ahead) - radius), step
    for _ in range(_MOST_TRIES):
        multipliers, mu = project_knapsack(ahead.multipliers + step * gradient, price, signs, 1.0)
        moved = dual.at(multipliers)
        longest = _longest_step(dual, ahead, moved)
        if step <= longest:
            return moved, step, radius - mu / step
        step = max(min(0.5 * step, longest), 1e-3 * step)
    return moved, first, radius  # nothing but rounding errors lies between the two


def _longest_step(dual: BallDual, a: DualIterate, b: DualIterate) -> float:
    """Return the longest step that keeps the dual at b above the parabola at a, to rounding."""
    way, turn = b.multipliers - a.multipliers, b.V - a.V
    blur = _EPS**2 * float(b.multipliers.sum()) * float(b.multipliers @ dual.squares)
    fall = 2.0 * (float(turn @ turn) - blur)
    return float(way @ way) / fall if fall > 0.0 else np.inf
