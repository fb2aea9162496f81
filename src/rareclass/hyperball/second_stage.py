"""The second stage of the solver: an interior point on rows near the sphere, and an exact end."""

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from rareclass.hyperball.problem import BallDual, DualIterate, Optimality, ShiftedRows
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
    return np.sort(np.argpartition(apart, most - 1)[:most])


def free_rows(dual: BallDual, multipliers: np.ndarray) -> np.ndarray:
    """Return the rows strictly inside their box: on the sphere, if the multipliers are right."""
    return np.flatnonzero((multipliers > 0.0) & (multipliers < dual.rows.price))


def part_of(dual: BallDual, iterate: DualIterate, chosen: np.ndarray) -> BoxQP:
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
