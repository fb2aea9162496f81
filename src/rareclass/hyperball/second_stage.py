"""From where the ascent is slow to the solution: on which rows, and in which coordinates."""

import numpy as np
from scipy import sparse
from scipy.linalg import qr, solve_triangular
from scipy.linalg.lapack import dpstrf

from rareclass.hyperball.ball_problem import BallDual, Optimality, Place, ShiftedRows
from rareclass.hyperball.dual_ascent import feasible
from rareclass.hyperball.interior_point import BallPart, face_step, solve_part, to_face

# Nanoseconds: of a product in all factorisations together; of a product with the rows; of a row in
# a step of the ascent; of such a step, and of an interior point, however small.
_FACTORISE, _PRODUCT, _ROW = 2.0, 0.6, 60.0
_STEP, _INTERIOR = 1e5, 5e6
# Rows of the interior point: so many in any case, and so many for a coordinate, but no more than
# come to so many products of a factorisation; all rows where they come to fewer than this.
_ROWS, _TIMES, _MOST_PRODUCTS, _FEW_PRODUCTS = 500, 4, 5e8, 3e6
# So many products, where the gap is small already, is exactness worth.
_WORTH = 1e8
# Of a signed sum of multipliers, beside what rounding makes of it.
_SUM_ERROR = 1e-10
_POLISHED = 3


class SecondStage:
    """The interior point and the exact end, on more rows if fewer do not help."""

    def __init__(self, rows: ShiftedRows) -> None:
        self._rows = rows
        n, p = rows.Z.shape
        r = max(min(n, p), 1)
        wanted = max(_ROWS, min(_TIMES * (r + 1), _MOST_PRODUCTS / r**2), _FEW_PRODUCTS / r**2)
        self._most = int(min(n, wanted))
        self._at_bounds, self._in_vain = False, np.inf

    def most_steps(self) -> int:
        """So many steps of the ascent cost as much as the interior point."""
        rows = self._rows
        numbers = rows.Z.nnz if sparse.issparse(rows.Z) else rows.Z.size
        step = _STEP + _ROW * len(rows.signs) + 2.0 * _PRODUCT * numbers
        return int((_INTERIOR + _FACTORISE * self._products(self._most)) / step) + 1

    def _products(self, n_rows: int) -> float:
        """Multiplications of a factorisation of so many rows."""
        return n_rows * float(min(n_rows, self._rows.Z.shape[1])) ** 2

    def ended(
        self, dual: BallDual, place: Place, worth: Optimality, tol: float, max_steps: int
    ) -> tuple[Place, Optimality, int]:
        """The better of a place and where the exact end leads; the steps that it took.

        1. Where the gap is not small, the interior point on the rows near the sphere.
        2. The exact end on the rows that this, or the ascent, has left strictly inside their box.

        Where 1 on all rows does not halve the gap, only 2 is done until the gap has halved.
        """
        multipliers, n_steps = place.multipliers, 0
        if tol < worth.gap < 0.5 * self._in_vain:
            # 1.
            chosen = self._near_sphere(dual, place, worth)
            multipliers = self._held(dual, place, worth, chosen)
            part = part_of(dual, place, multipliers, chosen)
            moved, n_steps = solve_part(part, max_steps)
        else:
            chosen = free_rows(dual, multipliers)
            most = _WORTH if worth.gap <= tol else self._products(self._most)
            if not 0.0 < self._products(len(chosen)) <= most:
                return place, worth, 0
            part, moved = part_of(dual, place, multipliers, chosen), multipliers[chosen]
        # 2.
        multipliers = multipliers.copy()
        multipliers[chosen] = to_face(part, moved)
        if abs(dual.rows.signs @ multipliers - 1.0) > _SUM_ERROR * multipliers.sum():
            # The interior point was cut short before the sum was right.
            multipliers = feasible(dual, multipliers)
        ended = dual.at(multipliers)
        ends_worth = dual.optimality(ended)
        if n_steps and not ends_worth.gap < 0.5 * worth.gap:
            self._try_harder(worth.gap)
        if ends_worth.gap < worth.gap:
            return ended, ends_worth, n_steps
        return place, worth, n_steps

    def _try_harder(self, gap: float) -> None:
        n = len(self._rows.signs)
        self._in_vain = gap if self._most == n else np.inf
        self._most = min(2 * self._most, n)

    def _near_sphere(self, dual: BallDual, place: Place, worth: Optimality) -> np.ndarray:
        """The rows nearest to the sphere."""
        if self._most == len(self._rows.signs):
            return np.arange(self._most)
        distances = np.sqrt(np.maximum(dual.reach(place), 0.0))
        apart = np.abs(distances - np.sqrt(max(worth.squared_radius, 0.0)))
        return np.sort(np.argpartition(apart, self._most - 1)[: self._most])

    def _held(
        self, dual: BallDual, place: Place, worth: Optimality, chosen: np.ndarray
    ) -> np.ndarray:
        """Multipliers for the rows not chosen: at the bound of their side, or as they are, in turn.

        The bound is right once the sphere is nearly known. Until then, and where more rows lie on
        the sphere than are chosen, leaving them is safe: the dual then rises in any case.
        """
        rows = self._rows
        self._at_bounds = not self._at_bounds
        multipliers = place.multipliers.copy()
        if self._at_bounds:
            outside = rows.signs * (dual.reach(place) - worth.squared_radius) > 0.0
            multipliers = np.where(outside & np.isfinite(rows.price), rows.price, 0.0)
            multipliers[chosen] = place.multipliers[chosen]
        return multipliers


def free_rows(dual: BallDual, multipliers: np.ndarray) -> np.ndarray:
    """Those strictly inside their box: the rows on the sphere, if the multipliers are right."""
    return np.flatnonzero((multipliers > 0.0) & (multipliers < dual.rows.price))


def part_of(dual: BallDual, place: Place, multipliers: np.ndarray, chosen: np.ndarray) -> BallPart:
    """The dual over some rows, near 1 in size.

    Seen from the centre of the place, and, where all rows are chosen, from the middle of the dual:
    the best centre so far, while that of a place can be anywhere.
    """
    rows = dual.rows
    signs, price = rows.signs[chosen], rows.price[chosen]
    if len(chosen) == len(rows.signs):
        center, squares, total = dual.middle, dual.squares, 0.0
        way = np.zeros_like(center)
    else:
        center, squares = dual.center(place), np.maximum(dual.reach(place)[chosen], 0.0)
        held = rows.signs * multipliers
        held[chosen] = 0.0
        total = float(held.sum())
        way = rows.Z.T @ held - total * center
    scale = _scale(squares)
    Z, V0 = _coordinates(rows, center, chosen, way)
    return BallPart(
        Z / np.sqrt(scale), squares / scale, signs, price, 1.0 - total, V0 / np.sqrt(scale)
    )


def _scale(squares: np.ndarray) -> float:
    return float(np.median(squares)) or float(squares.mean()) or 1.0


def _coordinates(
    rows: ShiftedRows, center: np.ndarray, chosen: np.ndarray, way: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Rows seen from a centre, and a direction, in no more columns than there are rows.

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


def polished_center(dual: BallDual, place: Place) -> np.ndarray:
    """The centre from which the free rows of a place are at one distance, nearest to its own.

    Where prices and multipliers are huge, the sum V of them has lost the digits that tell; the
    way from it to this centre has not.
    """
    rows, center = dual.rows, dual.center(place)
    free = free_rows(dual, place.multipliers)
    if not 0 < len(free) <= _ROWS + rows.Z.shape[1] or len(free) > _TIMES * _ROWS:
        return center
    nothing = np.zeros(len(free))
    for _ in range(_POLISHED):
        squares = rows.squared_distances(center)[free]
        scale = _scale(squares)
        Z, V0 = _coordinates(rows, center, free, np.zeros_like(center))
        part = BallPart(Z / np.sqrt(scale), squares / scale, rows.signs[free], nothing, 0.0, V0)
        step, ends = face_step(part, nothing, np.arange(len(free)))
        if not ends:
            break
        weights = rows.signs[free] * step
        center = center + rows.Z[free].T @ weights - weights.sum() * center
    return center
