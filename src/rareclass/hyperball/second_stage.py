"""The second stage of the solver: an interior point on rows near the sphere, and an exact end."""

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from rareclass.hyperball.problem import BallDual, DualIterate, Optimality, ShiftedRows
from rareclass.moments.box_qp import BoxQP, interior_point

# Rows of the interior point: so many in any case, so many for a coordinate, and as many as these
# products of a factorisation allow.
_ROWS, _TIMES, _FEW_PRODUCTS = 500, 4, 3e6
# Steps of the ascent that cost as much as the interior point, factorisations apart.
_STEPS = 30
# Relative error of a signed sum of multipliers beyond rounding.
_SUM_ERROR = 1e-10
_POLISHED = 3
# Of the interior point: most steps, and the relative gap to stop at.
_MOST_STEPS, _NEAR = 80, 1e-12
# Below this share of the largest pivot, a column depends on those before it.
_DEPENDENT = 1e-11
# Margins off by less than this, where squares are near 1, are rounding errors.
_ROUNDING = 1e-12
_MOST_WALLS, _MOST_REFINED = 60, 3


class SecondStage:
    """Interior point and exact end, on more rows if fewer do not help."""

    def __init__(self, rows: ShiftedRows) -> None:
        self._rows = rows
        n, p = rows.Z.shape
        r = max(min(n, p), 1)
        self._most = min(n, max(_ROWS, _TIMES * (r + 1), int(_FEW_PRODUCTS / r**2)))
        self._at_bounds, self._in_vain = False, np.inf

    def most_steps(self) -> int:
        """Return the number of ascent steps that cost about as much as the interior point.

        A step takes two products with all n rows, the factorisations some 2 m r^2 multiplications.
        """
        n, p = self._rows.Z.shape
        return _STEPS + min(n, p) * self._most // n

    def _products(self, n_rows: int) -> float:
        """Return the number of multiplications to factorise so many rows."""
        return n_rows * float(min(n_rows, self._rows.Z.shape[1])) ** 2

    def ended(
        self, dual: BallDual, iterate: DualIterate, worth: Optimality, tol: float, max_steps: int
    ) -> tuple[DualIterate, Optimality, int]:
        """Return the better of an iterate and its exact end, and the steps that were taken.

        1. Where the gap is not small, the interior point on the rows near the sphere.
        2. The exact end on the rows that this, or the ascent, has left strictly inside their box.

        Where 1 on all rows does not halve the gap, only 2 is done until the gap has halved.
        """
        multipliers, n_steps = iterate.multipliers, 0
        if tol < worth.gap < 0.5 * self._in_vain:
            # 1.
            chosen = self._near_sphere(dual, iterate, worth)
            multipliers = self._held(dual, iterate, worth, chosen)
            part = part_of(dual, iterate, multipliers, chosen)
            moved, n_steps = solve_part(part, max_steps)
        else:
            chosen = free_rows(dual, multipliers)
            if not 0.0 < self._products(len(chosen)) <= self._products(self._most):
                return iterate, worth, 0
            part, moved = part_of(dual, iterate, multipliers, chosen), multipliers[chosen]
        # 2.
        multipliers = multipliers.copy()
        multipliers[chosen] = to_face(part, moved)
        if abs(dual.rows.signs @ multipliers - 1.0) > _SUM_ERROR * multipliers.sum():
            # The interior point was cut short before the sum was right.
            multipliers = dual.feasible(multipliers)
        ended = dual.at(multipliers)
        ends_worth = dual.optimality(ended)
        if n_steps and not ends_worth.gap < 0.5 * worth.gap:
            n = len(self._rows.signs)
            self._in_vain = worth.gap if self._most == n else np.inf
            self._most = min(2 * self._most, n)
        if ends_worth.gap < worth.gap:
            return ended, ends_worth, n_steps
        return iterate, worth, n_steps

    def _near_sphere(self, dual: BallDual, iterate: DualIterate, worth: Optimality) -> np.ndarray:
        """Return the rows nearest to the sphere."""
        if self._most == len(self._rows.signs):
            return np.arange(self._most)
        distances = np.sqrt(np.maximum(dual.reach(iterate), 0.0))
        apart = np.abs(distances - np.sqrt(max(worth.squared_radius, 0.0)))
        return np.sort(np.argpartition(apart, self._most - 1)[: self._most])

    def _held(
        self, dual: BallDual, iterate: DualIterate, worth: Optimality, chosen: np.ndarray
    ) -> np.ndarray:
        """Set the rows not chosen to the bound of their side, or leave them, in turn.

        The bound is right once the sphere is nearly known. Until then, and where more rows lie on
        the sphere than are chosen, leaving them is safe: the dual then rises in any case.
        """
        rows = self._rows
        self._at_bounds = not self._at_bounds
        multipliers = iterate.multipliers.copy()
        if self._at_bounds:
            outside = rows.signs * (dual.reach(iterate) - worth.squared_radius) > 0.0
            multipliers = np.where(outside & np.isfinite(rows.price), rows.price, 0.0)
            multipliers[chosen] = iterate.multipliers[chosen]
        return multipliers


def solve_part(qp: BoxQP, most_steps: int = _MOST_STEPS) -> tuple[np.ndarray, int]:
    """Return multipliers (m,) in the box by the interior point, and its steps.

    `to_face` corrects the small error that rounding to bounds leaves in their sum.
    """
    found = interior_point(qp, 1.0, np.minimum(qp.upper, 1.0), _NEAR, min(most_steps, _MOST_STEPS))
    return np.clip(found.alpha, 0.0, qp.upper), found.n_steps


def to_face(qp: BoxQP, multipliers: np.ndarray) -> np.ndarray:
    """Maximise the dual over the rows strictly inside the box, the others held.

    1. Find the step of `face_step`.
    2. Go along it, to its end or to the first bound.
    3. Rows that have met a bound are not free any more. From 1 again; once no bound is met, up to
       three times more against rounding errors.

    The signed sum of the multipliers (m,) is right, if there was a free row. Time r^2 |F| each
    time, for the free rows F.
    """
    multipliers = multipliers.copy()
    free = np.flatnonzero((multipliers > 0.0) & (multipliers < qp.upper))
    refined = 0
    for _ in range(_MOST_WALLS):
        if not len(free) or refined == _MOST_REFINED:
            break
        # 1.
        step, ends = face_step(qp, multipliers, free)
        # 2.
        wall = np.where(step < 0.0, 0.0, qp.upper[free])
        room = wall - multipliers[free]
        reach = np.divide(room, step, out=np.full(len(free), np.inf), where=step != 0.0)
        share = min(1.0 if ends else np.inf, float(reach.min()))
        if not np.isfinite(share):
            break
        met = reach <= share
        multipliers[free] = np.where(met, wall, multipliers[free] + share * step)
        # 3.
        free = free[~met]
        refined += not met.any()
    return multipliers


def face_step(qp: BoxQP, multipliers: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, bool]:
    r"""Return the way to the maximum over the free rows F, bounds apart, and whether it ends there.

    With rows z and b times their signs, w = s dl and what the sum lacks, t, the maximum has
    :math:`Z_F Z_F' w + \mu 1 = e`, :math:`e = b_F - Z_F u` and :math:`1'w = t`. Let A be the
    centred rows with a constant column, and :math:`A P = Q R`, rank revealing.

    - Where e is not within the columns of Q, some rows are not at the distance of others on which
      they depend. Along what is left of e the dual rises without end and the centre stays.
    - Elsewhere w is the shortest solution, :math:`Q (R R')^{-1} Q' (e - \mu 1)`.
    """
    assert qp.signs is not None
    signs, lacks = qp.signs[free], qp.total - float(qp.signs @ multipliers)
    Z, e = signs[:, None] * qp.Z[free], signs * qp.b[free]
    e -= Z @ qp.combined(multipliers)
    e -= e.mean()
    centred = Z - Z.mean(axis=0)
    width = float(np.sqrt(np.einsum("ij,ij->i", centred, centred).max())) or 1.0
    A = np.column_stack([centred, np.full(len(free), width)])
    Q, R, _ = qr(A, mode="economic", pivoting=True)
    sizes = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(sizes > _DEPENDENT * sizes[0]))
    Q = Q[:, :rank]
    T = qr(R[:rank].T, mode="r")[0][:rank]  # R R' = T'T
    both = Q.T @ np.column_stack([e, np.ones(len(free))])
    if rank < len(free):
        left = e - Q @ both[:, 0]
        left -= Q @ (Q.T @ left)
        blur = _ROUNDING * (1.0 + float(np.abs(multipliers).sum()))
        if np.abs(left).max() > blur and abs(lacks) <= blur:
            return signs * left, False
    a, b = (Q @ solve_triangular(T, solve_triangular(T, both, trans="T"))).T
    return signs * (a - b * ((a.sum() - lacks) / b.sum())), True


def free_rows(dual: BallDual, multipliers: np.ndarray) -> np.ndarray:
    """Return the rows strictly inside their box: on the sphere, if the multipliers are right."""
    return np.flatnonzero((multipliers > 0.0) & (multipliers < dual.rows.price))


def part_of(
    dual: BallDual, iterate: DualIterate, multipliers: np.ndarray, chosen: np.ndarray
) -> BoxQP:
    r"""Return the dual over some rows, near 1 in size; its rows are :math:`\sqrt2 s_i z_i`.

    Rows are seen from the centre of the iterate or, where all are chosen, from the middle of the
    dual: the best centre so far, while the centre of an iterate can be anywhere.
    """
    rows = dual.rows
    signs, price = rows.signs[chosen], rows.price[chosen]
    if len(chosen) == len(rows.signs):
        center, squares, total = dual.middle, dual.squares, 0.0
        way = np.zeros_like(center)
    else:
        center, squares = dual.center(iterate), np.maximum(dual.reach(iterate)[chosen], 0.0)
        held = rows.signs * multipliers
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
    """Return rows seen from a centre, and a direction, in no more columns than there are rows.

    The inner products of the rows with each other and with the direction stay what they are.
    """
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

    Where prices and multipliers are huge, their sum V has lost the digits that matter; the way
    from its centre to this one has not.
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
