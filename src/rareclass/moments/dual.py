"""The dual of MIBC: rare rows in a box, in the metric of the majority.

`solve_dual` has three steps: coordinate descent (`passes`), an interior point on the rows that may
still move, and exact solutions on the free rows (`finish`).
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse import csr_array

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import Status
from rareclass.moments import _dual_jit as jit
from rareclass.moments.box_qp import BoxQP, solve_box_qp, to_face

# How near to the convex hull, relative to the longest row, doubles still tell inside from outside:
# a score at the projection then has the relative error eps / NEAREST^2, 2 per cent.
NEAREST = 1e-7
# Nanoseconds of a visit to a row, and of a number in it; of passes without a look at Ctrl-C.
_ROW, _NUMBER, _INTERRUPTIBLE = 20.0, 1.0, 1e8
# Passes between two looks at the gap.
_BATCH = 10
# Largest number of products of a matrix, and of sparse rows, in the second stage.
_MOST_PRODUCTS, _MOST_SPARSE = 2e10, 2000
# Nanoseconds of a product in all the factorisations together, and in the eigenvalues.
_FACTORISE, _EIGEN = 1.2, 2.0
# Nanoseconds of an interior point's own steps, however small its matrices: about twenty of them.
_STEPS = 4e6
# A gap from which the free rows are likely to be known.
_NEAR = 1e-3
_PASSES, _MOST_ROUNDS, _MOST_IDLE = 10, 50, 4
# Distances to the hull that one rho serves, and how many are tried.
_SAME_SCALE, _MOST_SCALES = 0.1, 8


class NotSeparableError(InputError):
    """No hyperplane has all rare rows on one side and the majority's mean on the other."""


class RareRows(NamedTuple):
    """The rare rows by their inner products, never as a dense matrix of all columns.

    The inner product of rows i and j, in the metric of Sigma^-1 and centred at the majority's mean,
    is ``a_i . a_j + left_i . right_j``. The a_i are compressed rows, no column twice in a row, and
    may hold nothing: dense rows have left and right both equal to the whitened rows Z. The compiled
    passes take the arrays as they are: in C order, `data`, `left` and `right` float64.
    """

    indptr: np.ndarray  # int64
    indices: np.ndarray  # int32
    data: np.ndarray
    n_columns: int  # of the sparse parts
    left: np.ndarray  # shape (n, p)
    right: np.ndarray


def dense_rows(Z: np.ndarray) -> RareRows:
    """Return rows without a sparse part, of whitened Z of shape (n, p)."""
    Z = np.ascontiguousarray(Z, np.float64)
    nothing = np.zeros(0)
    return RareRows(np.zeros(len(Z) + 1, np.int64), nothing.astype(np.int32), nothing, 0, Z, Z)


class DualSolution(NamedTuple):
    """The solution of the dual, its gap, and how the solver ended."""

    alpha: np.ndarray  # within the box
    sparse_part: np.ndarray  # A'alpha, shape (n_columns,)
    dense_part: np.ndarray  # left'alpha, shape (p,)
    # of the primal, P: at w, or at the multiple of w that takes all free rows to the margin (a
    # factor of 1 but for rounding) where that is less
    objective: float
    gap: float  # relative, (P - D) / P over all rows
    n_iter: int  # passes of coordinate descent
    status: str  # "converged", "stopped at rounding error" or "reached max_iter"


class DualPoint(NamedTuple):
    """An alpha with its scores, objective and relative gap over all rows."""

    alpha: np.ndarray
    scores: np.ndarray
    objective: float
    gap: float


class DualProblem:
    """The rows as the compiled passes take them, the box, and v and g as last measured."""

    def __init__(self, rows: RareRows, upper: np.ndarray) -> None:
        self.rows, self.upper = rows, upper
        self.is_dense = rows.right is rows.left and not len(rows.data)
        self.norms = np.empty(len(upper))
        jit._squared_norms(self.rows, self.norms)
        self.is_hard = bool(np.isinf(upper).any())
        self._used = upper > 0.0
        self.longest = float(np.sqrt(self.norms[self._used].max(initial=0.0)))
        if self.is_hard and (self.norms[self._used] <= (NEAREST * self.longest) ** 2).any():
            raise mean_in_hull()
        self.v, self.g = np.zeros(rows.n_columns), np.zeros(rows.left.shape[1])

    def combined(self, alpha: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Set v = A'alpha and g = left'alpha, the arrays that the passes keep up to date."""
        jit._combine(self.rows, alpha, self.v, self.g)
        return self.v, self.g

    @cached_property
    def row_cost(self) -> float:
        """Mean time of a visit to a row in nanoseconds."""
        numbers = self.rows.left.shape[1] + len(self.rows.data) / max(len(self.upper), 1)
        return _ROW + _NUMBER * numbers

    def measure(self, alpha: np.ndarray, lifted: bool = False) -> DualPoint:
        """Compute v, g and all scores afresh, and from them objective and gap.

        ``lifted`` also tries t w, where all free rows reach the margin: a score of 1 - 1e-12 times
        a large bound is rounding, and no gap.
        """
        scores = np.empty(len(alpha))
        v, g = self.combined(alpha)
        jit._scores(self.rows, v, g, scores)
        square = max(float(alpha @ scores), 0.0)
        if self.is_hard:
            return self._hard_margin(alpha, scores, square)
        objective, gap = self._worth(alpha, scores, square, 1.0)
        if lifted:
            free = (alpha > 0.0) & (alpha < self.upper)
            lowest = float(scores[free].min(initial=1.0))
            if lowest > 0.0:
                objective, gap = min(
                    (objective, gap), self._worth(alpha, scores, square, 1 / lowest)
                )
        return DualPoint(alpha, scores, objective, gap / objective if gap > 0.0 else 0.0)

    def _worth(
        self, alpha: np.ndarray, scores: np.ndarray, square: float, t: float
    ) -> tuple[float, float]:
        """Return P at t w, and P - D as a sum of terms that are not negative."""
        over = t * scores - 1.0
        missing = np.maximum(-over, 0.0)
        objective = 0.5 * t**2 * square + float(self.upper @ missing)
        gap = float(np.maximum(over, 0.0) @ alpha + missing @ (self.upper - alpha))
        return objective, gap + 0.5 * square * (t - 1.0) ** 2

    def blur(self, point: DualPoint) -> float:
        """Return the relative gap that rounding may cause: eps max|z|^2 sum(alpha) a score."""
        error = float(np.finfo(float).eps * self.longest**2 * point.alpha.sum())
        return error if self.is_hard else error * float(self.upper.sum()) / point.objective

    def _hard_margin(self, alpha: np.ndarray, scores: np.ndarray, square: float) -> DualPoint:
        """Measure the best multiple of alpha and, in the primal, of its w."""
        total = float(alpha.sum())
        if total == 0.0:
            return DualPoint(alpha, scores, np.inf, float(self._used.any()))
        if np.sqrt(square) <= NEAREST * self.longest * total:
            raise mean_in_hull()
        scale = total / square
        lowest = float(scores[self._used].min()) * scale
        objective = 0.5 * total * scale / lowest**2 if lowest > 0.0 else np.inf
        gap = 1.0 - min(max(lowest, 0.0), 1.0) ** 2
        return DualPoint(alpha * scale, scores * scale, objective, gap)


def mean_in_hull() -> InputError:
    """Return the error for rows that have no hard margin."""
    return NotSeparableError(
        "The mean of the majority lies within the convex hull of the rare rows, or too near to it "
        "to tell: no hyperplane has all rare rows on one side and the mean on the other, which "
        "C=inf asks for.",
        "Use a finite C, for example C=1.0.",
        ErrorKind.NOT_REACHABLE,
    )


class VisitOrder(NamedTuple):
    """State of the random order of visits to the rows."""

    random: np.ndarray
    rows: np.ndarray


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

    with K the inner products of the rows. P and D meet at the solution. Where upper is inf, the
    solution is the projection of the mean onto the convex hull of the rows: of all multiples of
    alpha the best one is taken, and :math:`(P - D) / P = 1 - \min_i(s_i)^2`.

    1. Coordinate descent over the rows in random order, leaving out rows that stay at a bound,
       until the gap over all rows is small or an interior point is cheaper than what is left.
    2. That interior point, on all rows or on as many nearest to the margin as is affordable.
    3. The exact solution on the free rows, and passes of 1, in turn, until the gap is small or
       does not fall any more. Small problems that 1 has solved get it once.

    `upper` is C times the weights: 0 leaves a row out; inf for all others, or for none of them.
    `tol` is the relative duality gap to stop at, `max_iter` the most passes of coordinate descent;
    the second stage begins after half of them, if not sooner. `start` is clipped into the box.

    Raises `InputError` if upper is inf and the mean lies within the convex hull of the rows, or
    within 1e-7 of it, relative to the longest row. Time: the numbers held for the rows, per pass;
    the second stage 20 n r^2 with r = min(n, p), and n^3 for sparse rows.

    >>> solution = solve_dual(dense_rows(np.array([[1.0], [0.5]])), np.array([1.0, 1.0]))
    >>> solution.alpha.tolist(), solution.dense_part.tolist()  # the second row is at its bound
    ([0.5, 1.0], [1.0])
    """
    problem = DualProblem(rows, np.asarray(upper, np.float64))
    alpha = np.zeros(len(upper)) if start is None else np.clip(start, 0.0, problem.upper)
    order = VisitOrder(np.array([seed], np.uint64), np.arange(len(alpha)))
    # 1.
    point, n_iter = _descend_while_it_pays(problem, alpha, order, tol, (max_iter + 1) // 2)
    # 2. and 3.
    status = Status.CONVERGED if point.gap <= tol else Status.MAX_ITER
    if status == Status.CONVERGED:
        point = _exact(problem, point)
    elif n_iter < max_iter:
        point, n_iter, status = finish(problem, point, order, tol, max_iter, n_iter)
    v, g = problem.combined(point.alpha)
    return DualSolution(point.alpha, v, g, point.objective, point.gap, n_iter, status)


def _descend_while_it_pays(
    problem: DualProblem, alpha: np.ndarray, order: VisitOrder, tol: float, max_iter: int
) -> tuple[DualPoint, int]:
    """Run step 1 until the gap is small, or the rest would cost more than the second stage."""
    point, n_iter, spent = problem.measure(alpha), 0, 0.0
    second = MovableRows.of(problem, point).cost()
    while point.gap > tol and n_iter < max_iter:
        batch = min(max(_BATCH, n_iter // 2), max_iter - n_iter)
        last, (point, n_passes, n_visits) = point, passes(problem, point, order, tol, batch)
        n_iter += n_passes
        cost = n_visits * problem.row_cost
        spent += cost
        if point.gap <= tol:
            break
        fall = np.log(last.gap / point.gap)
        left = cost * np.log(point.gap / tol) / fall if fall > 0.0 and tol > 0.0 else np.inf
        if spent > 2.0 * second or (left > second and spent > 0.25 * second):
            break
    return point, n_iter


def _exact(problem: DualProblem, point: DualPoint) -> DualPoint:
    """Return the exact solution on the free rows, where it costs little and has a smaller gap."""
    part = MovableRows.of(problem, point)
    if point.gap == 0.0 or not part.is_whole or part.cost() > 2.0 * _STEPS:
        return point
    exact = part.improved(part.factor(), point, interior=False)
    return min(point, problem.measure(exact, lifted=True), key=lambda p: p.gap)


def passes(
    problem: DualProblem, point: DualPoint, order: VisitOrder, tol: float, most: int
) -> tuple[DualPoint, int, int]:
    """Run up to ``most`` passes from the point measured last; return point, passes, visits."""
    alpha = point.alpha.copy()
    if problem.is_hard:  # 1 - min(s)^2 is about twice 1 - min(s), and P - D of 1'alpha
        enough = 0.25 * tol * float(alpha.sum())
        problem.combined(alpha)
    else:
        enough = tol * point.objective
    pass_cost = problem.row_cost * max(len(alpha), 1)
    most = max(1, min(most, int(_INTERRUPTIBLE / pass_cost)))
    n_passes, n_visits = jit._descend(
        problem.rows, problem.norms, problem.upper, alpha, problem.v, problem.g,
        order.rows, order.random, enough, most,
    )  # fmt: skip
    return problem.measure(alpha), n_passes, n_visits


class MovableRows(NamedTuple):
    """The rows of the second stage: all that may move, unless there are too many."""

    problem: DualProblem
    rows: np.ndarray
    is_whole: bool

    @classmethod
    def of(cls, problem: DualProblem, point: DualPoint) -> "MovableRows":
        """Choose as many rows as are affordable, nearest to the margin or of largest alpha."""
        movable = np.flatnonzero(problem.upper > 0.0)
        if problem.is_dense:
            p = max(problem.rows.left.shape[1], 1)
            most = int(max(_MOST_PRODUCTS / p**2, min(_MOST_PRODUCTS ** (1 / 3), p)))
        else:
            most = _MOST_SPARSE
        if len(movable) <= most:
            return cls(problem, movable, True)
        far = -point.alpha if problem.is_hard else np.abs(point.scores - 1.0)
        near = movable[np.argsort(far[movable], kind="stable")[:most]]
        return cls(problem, np.sort(near), False)

    def products(self) -> float:
        """Return the number of multiplications in a factorisation."""
        n, p = len(self.rows), self.problem.rows.left.shape[1]
        return float(n) * (min(n, p) if self.problem.is_dense else n) ** 2

    def cost(self) -> float:
        """Return the approximate time of the interior point in nanoseconds."""
        eigenvalues = 0.0 if self.problem.is_dense else _EIGEN
        return _STEPS + (_FACTORISE + eigenvalues) * self.products()

    def factor(self) -> np.ndarray:
        """Return a Z with Z Z' = K on these rows, of no more columns than rows."""
        rows = self.problem.rows
        left = rows.left[self.rows]
        if self.problem.is_dense:
            n, p = left.shape
            return left if p <= n else np.ascontiguousarray(qr(left.T, mode="r")[0][:n].T)
        shape = (len(self.problem.upper), rows.n_columns)
        A = csr_array((rows.data, rows.indices, rows.indptr), shape=shape)
        A = A if len(self.rows) == shape[0] else A[self.rows]
        K = (A @ A.T).toarray() + left @ rows.right[self.rows].T
        values, vectors = eigh((K + K.T) / 2)
        known = values > len(K) * np.finfo(float).eps * values[-1]
        return np.ascontiguousarray(vectors[:, known] * np.sqrt(values[known]))

    def improved(self, Z: np.ndarray, point: DualPoint, interior: bool) -> np.ndarray:
        """Solve exactly on the free rows, after the interior point or not; return alpha of all."""
        upper, alpha = self.problem.upper[self.rows], point.alpha[self.rows]
        b = np.ones(len(self.rows))
        if not self.is_whole and not self.problem.is_hard:  # what the other rows leave to reach
            b += Z @ (Z.T @ alpha) - point.scores[self.rows]
        if interior and self.problem.is_hard:
            alpha = _nearest_in_hull(Z, alpha, self.problem.longest)
        elif interior:
            alpha = solve_box_qp(BoxQP(Z, b, upper))
        everywhere = np.zeros_like(point.alpha) if self.problem.is_hard else point.alpha.copy()
        everywhere[self.rows] = to_face(BoxQP(Z, b, upper), alpha)
        return everywhere


def _nearest_in_hull(Z: np.ndarray, alpha: np.ndarray, longest: float) -> np.ndarray:
    """Solve the hard margin with a column rho added to Z, near the distance of mean and hull."""
    b, none = np.ones(len(Z)), np.full(len(Z), np.inf)
    for _ in range(_MOST_SCALES):
        total = float(alpha.sum())
        rho = float(np.linalg.norm(Z.T @ alpha)) / total if total > 0.0 else longest
        alpha = solve_box_qp(BoxQP(np.column_stack([Z, np.full(len(Z), rho)]), b, none))
        distance = float(np.linalg.norm(Z.T @ alpha)) / float(alpha.sum())
        if distance <= NEAREST * longest:
            raise mean_in_hull()
        if distance > _SAME_SCALE * rho:
            break
    return alpha / (distance**2 * alpha.sum())


def finish(
    problem: DualProblem,
    point: DualPoint,
    order: VisitOrder,
    tol: float,
    max_iter: int,
    n_iter: int,
) -> tuple[DualPoint, int, Status]:
    """Solve from where coordinate descent is slow.

    1. Where the gap is small already, the exact solution on the free rows may do.
    2. The interior point, then the exact solution on its free rows.
    3. Ten passes of coordinate descent, then the exact solution on their free rows. Again, and with
       2 where it is not on all rows, until the gap is small, does not halve in four rounds, or the
       passes are used up.

    Returns the best point, the passes so far and the status.
    """
    part, best, idle = MovableRows.of(problem, point), point, 0
    Z, first = part.factor(), 0 if point.gap > _NEAR else 1
    for number in range(_MOST_ROUNDS):
        if number > first:
            if n_iter >= max_iter:
                break
            most = min(_PASSES, max_iter - n_iter)
            point, n_passes, _ = passes(problem, point, order, tol, most)
            n_iter += n_passes
            if not part.is_whole:
                part = MovableRows.of(problem, point)
                Z = part.factor()
        interior = not part.is_whole or number == first
        point = problem.measure(part.improved(Z, point, interior), lifted=True)
        idle = 0 if point.gap < 0.5 * best.gap else idle + 1
        best = min(best, point, key=lambda p: p.gap)
        if best.gap <= tol:
            return best, n_iter, Status.CONVERGED
        if idle > _MOST_IDLE and best.gap <= problem.blur(best):
            return best, n_iter, Status.ROUNDING
    return best, n_iter, Status.MAX_ITER
