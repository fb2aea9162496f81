"""The second stage of the dual solver: an interior point, and exact solutions on free rows."""

from typing import NamedTuple

import numpy as np
from scipy.linalg import eigh, qr
from scipy.sparse import csr_array

from rareclass.findings import Status
from rareclass.machine import blas_threads
from rareclass.moments.dual_problem import NEAREST, Order, Point, Problem, mean_in_hull, passes
from rareclass.moments.interior_point import solve_box_qp, to_face

# So many products of a matrix, and so many sparse rows, at once.
_MOST_PRODUCTS, _MOST_SPARSE = 2e10, 2000
# BLAS threads cost more than they bring below so many products.
_MANY_PRODUCTS = 3e9
# Nanoseconds of a product in all the factorisations together, and in the eigenvalues.
_FACTORISE, _EIGEN = 1.2, 2.0
# A gap from which the free rows are likely to be known.
_NEAR = 1e-3
_PASSES, _MOST_ROUNDS, _MOST_IDLE = 10, 50, 4
# Distances to the hull that one rho serves, and how many are tried.
_SAME_SCALE, _MOST_SCALES = 0.1, 8


class MovableRows(NamedTuple):
    """The rows that the second stage works on: all that may move, unless there are too many."""

    problem: Problem
    rows: np.ndarray
    is_whole: bool

    @classmethod
    def of(cls, problem: Problem, point: Point) -> "MovableRows":
        """As many rows as are affordable; those nearest to the margin, or that carry most."""
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
        """Multiplications of a factorisation."""
        n, p = len(self.rows), self.problem.rows.left.shape[1]
        return float(n) * (min(n, p) if self.problem.is_dense else n) ** 2

    def cost(self) -> float:
        """Nanoseconds of the interior point, roughly."""
        eigenvalues = 0.0 if self.problem.is_dense else _EIGEN
        return (_FACTORISE + eigenvalues) * self.products()

    def factor(self) -> np.ndarray:
        """A Z with Z Z' = K on these rows, of no more columns than rows."""
        rows = self.problem.rows
        left = rows.left[self.rows]
        if self.problem.is_dense:
            n, p = left.shape
            return left if p <= n else np.ascontiguousarray(qr(left.T, mode="r")[0][:n].T)
        shape = (len(self.problem.upper), rows.n_columns)
        A = csr_array((rows.data, rows.indices, rows.indptr), shape=shape)[self.rows]
        K = (A @ A.T).toarray() + left @ rows.right[self.rows].T
        values, vectors = eigh((K + K.T) / 2)
        known = values > len(K) * np.finfo(float).eps * values[-1]
        return np.ascontiguousarray(vectors[:, known] * np.sqrt(values[known]))

    def improved(self, Z: np.ndarray, point: Point, interior: bool) -> np.ndarray:
        """Alpha of all rows after the exact solution on the free ones, from the interior or not."""
        upper, alpha = self.problem.upper[self.rows], point.alpha[self.rows]
        b = np.ones(len(self.rows))
        if not self.is_whole and not self.problem.is_hard:  # what the other rows leave to reach
            b += Z @ (Z.T @ alpha) - point.scores[self.rows]
        if interior and self.problem.is_hard:
            alpha = _nearest_in_hull(Z, alpha, self.problem.longest)
        elif interior:
            alpha = solve_box_qp(Z, b, upper)
        everywhere = np.zeros_like(point.alpha) if self.problem.is_hard else point.alpha.copy()
        everywhere[self.rows] = to_face(Z, b, upper, alpha)
        return everywhere


def _nearest_in_hull(Z: np.ndarray, alpha: np.ndarray, longest: float) -> np.ndarray:
    r"""The hard margin by a problem that has a solution in any case.

    With a column rho added to Z, the mean is at least rho away from the hull, and the solution is
    a multiple of the same point: :math:`|Z'\alpha|^2 + \rho^2 (1'\alpha)^2` is least, given the sum
    of alpha, where :math:`|Z'\alpha|^2` is. It is best known with rho near the distance itself, and
    asked again where that turns out to be far less.
    """
    b, none = np.ones(len(Z)), np.full(len(Z), np.inf)
    for _ in range(_MOST_SCALES):
        total = float(alpha.sum())
        rho = float(np.linalg.norm(Z.T @ alpha)) / total if total > 0.0 else longest
        alpha = solve_box_qp(np.column_stack([Z, np.full(len(Z), rho)]), b, none)
        distance = float(np.linalg.norm(Z.T @ alpha)) / float(alpha.sum())
        if distance <= NEAREST * longest:
            raise mean_in_hull()
        if distance > _SAME_SCALE * rho:
            break
    return alpha / (distance**2 * alpha.sum())


def finish(
    problem: Problem, point: Point, order: Order, tol: float, max_iter: int, n_iter: int
) -> tuple[Point, int, Status]:
    """From where coordinate descent is slow to the solution.

    1. Where the gap is small already, the exact solution on the free rows may do.
    2. The interior point, then the exact solution on its free rows.
    3. Ten passes of coordinate descent, then the exact solution on their free rows. Again, and with
       2 where it is not on all rows, until the gap is small, does not halve in four rounds, or the
       passes are used up.

    Returns the best point, the passes so far and the status.
    """
    part, best, idle = MovableRows.of(problem, point), point, 0
    threads = 1 if part.products() < _MANY_PRODUCTS else None
    with blas_threads(threads):
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
