"""The problem of the ball among points, its dual, and the spaces that points live in.

Rows become `Points` in an `InputSpace` or a `KernelSpace`; a `BallProblem` gives each a side of the
sphere and a price; `BallDual` is its dual, seen from a middle near the ball.
`project_knapsack` is the nearest point in a box and on a hyperplane.
"""

from bisect import bisect_left
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.kernels.expansion import whiten
from rareclass.kernels.kernels import Kernel, Matrix, squared_norms
from rareclass.kernels.landmarks import pivoted_cholesky

# How near, relative to the sum of the numbers added up, a sum is right.
_RIGHT = 1e-15
# Newton steps before the breakpoints are sorted. Five are usual.
_MOST_STEPS = 30


def project_knapsack(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> tuple[np.ndarray, float]:
    r"""Find the point nearest to v in a box and on a hyperplane, exactly, and the multiplier mu.

    .. math::
        \min_l \tfrac12 \|l - v\|^2 \quad \text{subject to} \quad
        0 \le l_i \le upper_i, \quad \sum_i signs_i\, l_i = total.

    The solution is :math:`l_i = \min(\max(v_i + signs_i \mu, 0), upper_i)`; the sum is a piecewise
    linear function of :math:`\mu` that never falls. Newton's method finds the piece that holds the
    total (Cominetti, Mascarenhas, Silva, Mathematical Programming Computation, 2014); where it
    leaves its bracket, the piece is found between sorted breakpoints.

    Arrays are of shape (n,): v finite, `upper` 0 or more (inf is no bound), signs +1 or -1. Some
    point of the box is to have the signed sum `total`. Time O(n log n), mostly some five sums.

    >>> v, upper, signs = np.array([0.9, 0.5, 0.2]), np.ones(3), np.array([1.0, 1.0, -1.0])
    >>> project_knapsack(v, upper, signs, 1.0)[0].round(3).tolist()
    [0.833, 0.433, 0.267]
    """
    low, high, mu = -np.inf, np.inf, 0.0
    for _ in range(_MOST_STEPS):
        clipped = np.clip(v + signs * mu, 0.0, upper)
        lacks = total - float(signs @ clipped)
        if abs(lacks) <= _RIGHT * (abs(total) + float(clipped.sum())):
            return clipped, mu
        low, high = (mu, high) if lacks > 0.0 else (low, mu)
        slope = np.count_nonzero((clipped > 0.0) & (clipped < upper))
        step = lacks / slope if slope else np.inf
        if not low < mu + step < high:
            break
        mu += step
    mu = _between_breakpoints(v, upper, signs, total)
    clipped = np.clip(v + signs * mu, 0.0, upper)
    # Correct the last digits, which mu has lost where v is far from the box.
    inside = np.flatnonzero((clipped > 0.0) & (clipped < upper))
    if len(inside):
        each = (total - float(signs @ clipped)) / len(inside)
        moved = clipped[inside] + signs[inside] * each
        clipped[inside] = np.clip(moved, 0.0, upper[inside])
    return clipped, mu


def _between_breakpoints(
    v: np.ndarray, upper: np.ndarray, signs: np.ndarray, total: float
) -> float:
    """Find mu by bisection: each entry adds a ramp, level below and above its breakpoints."""
    plus = signs > 0.0
    begins, ends = np.where(plus, -v, v - upper), np.where(plus, upper - v, v)
    breakpoints = np.concatenate([begins, ends])
    breakpoints = np.sort(breakpoints[np.isfinite(breakpoints)])

    def lacks(mu: float) -> float:
        return total - float(signs @ np.clip(v + signs * mu, 0.0, upper))

    # The sum is below the total before this place, and not from there on.
    place = bisect_left(breakpoints, True, key=lambda mu: not lacks(mu) > 0.0)
    before = float(breakpoints[place - 1]) if place > 0 else -np.inf
    after = float(breakpoints[place]) if place < len(breakpoints) else np.inf
    slope = np.count_nonzero((begins <= before) & (ends >= after))
    start = before if place > 0 else after
    return float(np.clip(start + lacks(start) / slope, before, after)) if slope else start


def nearest(distances: np.ndarray, n: int) -> np.ndarray:
    """Return the places of the n smallest of n distances or more, in increasing order."""
    return np.sort(np.argpartition(distances, n - 1)[:n])


# How far sums of prices, relative to all of them, may be out by rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Points:
    r"""Coordinates of rows, and how far the rows lie from the space that these span.

    A centre c lies in the space of the coordinates, so that the squared distance of row i to it is
    :math:`r_i + \|z_i - c\|^2` without any approximation. Without a kernel r is zero and z_i is the
    row; with one, z_i is the projection of :math:`\phi(x_i)` on the span of the landmarks and
    :math:`r_i = k(x_i, x_i) - \|z_i\|^2`.
    """

    features: Any  # the coordinates z, float64: ndarray or CSR of shape (n, p)
    residual: np.ndarray  # squared distances r to the space of the coordinates, (n,)

    @property
    def n_rows(self) -> int:
        """Number of points."""
        return self.features.shape[0]

    def squared_norms(self) -> np.ndarray:
        r"""Squared distance of each point to the origin, :math:`r_i + \|z_i\|^2`."""
        return self.residual + squared_norms(self.features)

    def squared_distances(self, center: np.ndarray) -> np.ndarray:
        r"""Squared distance of each point to a centre: :math:`r_i + \|z_i - c\|^2`, shape (n,)."""
        Z = self.features
        if sparse.issparse(Z):
            distances = self.squared_norms() - 2.0 * (Z @ center) + center @ center
            return np.maximum(distances, 0.0)
        return self.residual + squared_norms(Z - center)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        r"""Return the combination :math:`\sum_i w_i z_i`, shape (p,)."""
        return self.features.T @ weights

    def take(self, index: np.ndarray) -> "Points":
        """Choose some of the points, in the order of `index`."""
        return Points(self.features[index], self.residual[index])


@dataclass(frozen=True)
class InputSpace:
    """Space of the rows, seen from an origin near them; sparse rows have none."""

    origin: np.ndarray | None

    @classmethod
    def around(cls, X: Matrix) -> "InputSpace":
        """Return the space seen from the mean of some rows."""
        unseen = sparse.issparse(X) or not X.shape[0]
        return cls(None if unseen else X.mean(axis=0, dtype=np.float64))

    def points(self, X: Matrix) -> Points:
        """Subtract the origin from rows, in float64."""
        residual = np.zeros(X.shape[0])
        if sparse.issparse(X):
            return Points(sparse.csr_array(X, dtype=np.float64), residual)
        features = X.astype(np.float64)
        return Points(features if self.origin is None else features - self.origin, residual)

    def squared_distances(self, X: Matrix, center: np.ndarray) -> np.ndarray:
        """Return the squared distance of every row of X to the centre."""
        center = self.input_center(center)
        if sparse.issparse(X):  # rows that were not shifted, from a centre that was
            return self.points(X).squared_distances(center)
        return squared_norms(X - center)

    def input_center(self, center: np.ndarray) -> np.ndarray:
        """Return a centre in the units of the features."""
        return center if self.origin is None else self.origin + center


@dataclass(frozen=True)
class KernelSpace:
    r"""Span of some landmarks in the feature space of a kernel.

    The coordinates of a row are :math:`z(x) = T' k(L, x)` with :math:`T' K_{LL} T = I`, T being the
    whitener; the centre with coordinates c is :math:`\sum_l \beta_l \phi(x_l)`, :math:`\beta = T
    c`.
    """

    kernel: Kernel
    landmarks: Matrix  # (n_landmarks, n_features)
    whitener: np.ndarray  # (n_landmarks, rank)

    def points(self, X: Matrix) -> Points:
        """Project rows on the span of the landmarks; the residual is what that leaves out."""
        X = X.astype(np.float64)
        features = self.kernel.block(X, self.landmarks) @ self.whitener
        return Points(features, np.maximum(self.kernel.diag(X) - squared_norms(features), 0.0))

    def squared_distances(self, X: Matrix, center: np.ndarray) -> np.ndarray:
        r"""Return :math:`k(x, x) - 2 \sum_l \beta_l k(x_l, x) + \|c\|^2` for every row of X."""
        X = X.astype(np.float64)
        inner = self.kernel.block(X, self.landmarks) @ self.coefficients(center)
        return np.maximum(self.kernel.diag(X) - 2.0 * inner + center @ center, 0.0)

    def coefficients(self, center: np.ndarray) -> np.ndarray:
        """Return beta, the weight of each landmark in a centre."""
        return self.whitener @ center


BallSpace = InputSpace | KernelSpace


def kernel_space(kernel: Kernel, X: Matrix, first: np.ndarray, n_landmarks: int) -> KernelSpace:
    """Span all rows of X where they are few, else landmarks that span the others best.

    `first` are rows of X that are landmarks in any case, half of all at the most. With as many
    landmarks as rows the centre is exact. O(n n_landmarks^2) time, 8 n n_landmarks bytes.
    """
    # A sparse array, and no sparse matrix: means of the latter are matrices, of two dimensions.
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else X.astype(np.float64)
    chosen = np.arange(X.shape[0])
    if len(chosen) > n_landmarks:
        first = first[: n_landmarks // 2]
        others = pivoted_cholesky(kernel, X, n_landmarks - len(first))
        chosen = np.union1d(first, others)
    landmarks = X[chosen]
    whitener = whiten(kernel.block(landmarks, landmarks), np.dtype(np.float64))
    return KernelSpace(kernel, landmarks, whitener)


class BallProblem(NamedTuple):
    r"""Rows, the side of the sphere where each belongs, and the price of being on the other.

    .. math::
        \min_{c, R^2} R^2 + \sum_{-} price_i \max(0, R^2 - \|x_i - c\|^2)
        + \sum_{+} price_k \max(0, \|x_k - c\|^2 - R^2)

    which is Problem 1 of the paper with its slacks left out; an infinite price, allowed for rows of
    sign +1, is a hard constraint. There is one such row at least, and their prices sum to 1 or
    more: with less, no ball would be worth its radius.
    """

    points: Points  # n rows
    # (n,): +1 for rows that belong inside (rare, unlabelled), -1 for the majority
    signs: np.ndarray
    price: np.ndarray  # (n,), above 0


class PrimalValue(NamedTuple):
    """The best squared radius for a centre, and what it costs."""

    squared_radius: float
    objective: float


def best_radius(reach: np.ndarray, signs: np.ndarray, price: np.ndarray) -> PrimalValue:
    """Minimise the cost of the rows over :math:`R^2` at given squared distances, exactly.

    The cost is convex and piecewise linear in :math:`R^2`, its slope 1 + (prices of the majority
    inside) - (prices of the others outside), and :math:`R^2` is not below the distance of any row
    of infinite price. Of several minimisers the smallest is taken. `reach` holds squared distances
    (n,). Time O(n log n).

    >>> best_radius(np.array([1.0, 2.0, 9.0]), np.ones(3), np.full(3, 0.6)).squared_radius
    2.0
    """
    hard = np.isinf(price)
    floor = float(reach[hard].max(initial=-np.inf))
    priced = np.where(hard, 0.0, price)
    order = np.argsort(reach)
    # Right of a breakpoint, the slope is 1 - (all of sign +) + (all passed, of either sign).
    slope = np.cumsum(priced[order]) + (1.0 - float(priced[signs > 0.0].sum()))
    room = _ROUNDING * max(1.0, float(priced.sum()))
    turn = int(np.searchsorted(slope, -room))
    lowest = float(reach[order[turn]]) if turn < len(order) else floor
    squared_radius = max(lowest, floor)
    over = np.maximum(signs * (reach - squared_radius), 0.0)
    return PrimalValue(squared_radius, squared_radius + float(priced @ over))


class ShiftedRows:
    """The rows of a problem seen from a point near the ball, where squares keep their digits.

    ``Z`` (n, p) are coordinates from ``origin`` (p,), ``norms`` their squares, residuals included;
    ``plus`` marks rows of sign +1. Sparse rows stay where they are.
    """

    def __init__(self, problem: BallProblem) -> None:
        points = problem.points
        self.signs = np.asarray(problem.signs, np.float64)
        self.price = np.asarray(problem.price, np.float64)
        self.plus = self.signs > 0.0
        self.Z: Any = points.features
        if sparse.issparse(points.features):
            self.origin = np.zeros(int(points.features.shape[1]))
        else:
            self.origin = self._near_the_ball(points)
            self.Z = np.asarray(points.features, np.float64) - self.origin
        self.norms = Points(self.Z, points.residual).squared_norms()

    def _near_the_ball(self, points: Points) -> np.ndarray:
        """Return the mean of the rows that are surely inside; without any, of those that may be."""
        weight = np.where(np.isinf(self.price) & self.plus, 1.0, 0.0)
        if not weight.any():
            weight = np.where(self.plus, self.price, 0.0)
        weight /= weight.sum()
        middle = points.combine(weight)
        # Far from zero, the first mean is out by rounding; the second, seen from it, is not.
        return middle + weight @ (points.features - middle)

    def squared_distances(self, center: np.ndarray) -> np.ndarray:
        """Return squared distances to a centre given from the origin."""
        return np.maximum(self.norms - 2.0 * (self.Z @ center) + center @ center, 0.0)

    def value(self, center: np.ndarray) -> PrimalValue:
        """Return the objective of the problem at a centre, with its best radius."""
        return best_radius(self.squared_distances(center), self.signs, self.price)


class DualIterate(NamedTuple):
    """Multipliers with their sums of rows, which are linear in the multipliers."""

    multipliers: np.ndarray
    V: np.ndarray  # (p,): sum of signs l z', with z' seen from the middle of the dual
    inner: np.ndarray  # (n,): z'_i . V

    def beyond(self, last: "DualIterate", share: float) -> "DualIterate":
        """Extrapolate along the way from the last iterate."""
        return DualIterate(*(a + share * (a - b) for a, b in zip(self, last, strict=True)))


class Optimality(NamedTuple):
    """Objective and duality gap of multipliers."""

    squared_radius: float  # the best one for their centre
    objective: float  # at this centre and radius
    excess: float  # objective less dual value, a sum of terms that are not negative
    gap: float  # the same relative to the objective


class BallDual:
    r"""Dual of the problem: concave, and the problem is convex.

    The problem looks as if it were not, for a ball that leaves the majority out. But in place of
    the radius take :math:`\rho = R^2 - \|c\|^2`. Then :math:`\|x - c\|^2 - R^2 = \|x\|^2 - 2 z'c -
    \rho` is linear in :math:`(c, \rho)`, and :math:`R^2 = \|c\|^2 + \rho` convex. So there is one
    best centre, and a dual that meets the problem there, with :math:`z'` seen from any middle:

    .. math::
        D(l) = \sum_i s_i l_i \|x'_i\|^2 - \Big\|\sum_i s_i l_i z'_i\Big\|^2, \qquad
        0 \le l_i \le price_i, \quad \sum_i s_i l_i = 1.

    The centre is :math:`V = \sum_i s_i l_i z'_i`, and the gradient :math:`s_i \|x_i - c\|^2`. The
    middle is given from the origin of the rows; near the centre, no digits are lost.
    """

    def __init__(self, rows: ShiftedRows, middle: np.ndarray) -> None:
        self.rows, self.middle = rows, middle
        self.squares = rows.squared_distances(middle)

    def at(self, multipliers: np.ndarray) -> DualIterate:
        """Compute the sums for these multipliers: two products with the rows."""
        weights = self.rows.signs * multipliers
        V = self.rows.Z.T @ weights - weights.sum() * self.middle
        return DualIterate(multipliers, V, self.inner(V))

    def feasible(self, multipliers: np.ndarray) -> np.ndarray:
        """Return the nearest multipliers in the box whose signed sum is 1."""
        return project_knapsack(multipliers, self.rows.price, self.rows.signs, 1.0)[0]

    def first_multipliers(self) -> np.ndarray:
        """Guess multipliers for a ball around the middle: the price on the wrong side, else 0."""
        rows = self.rows
        radius = rows.value(self.middle).squared_radius
        wrong = (rows.signs * (self.squares - radius) > 0.0) & np.isfinite(rows.price)
        return self.feasible(np.where(wrong, rows.price, 0.0))

    def inner(self, way: np.ndarray) -> np.ndarray:
        """Return inner products of the rows, seen from the middle, with a direction."""
        return self.rows.Z @ way - self.middle @ way

    def center(self, iterate: DualIterate) -> np.ndarray:
        """Return the centre of an iterate, from the origin of the rows."""
        return self.middle + iterate.V

    def reach(self, iterate: DualIterate) -> np.ndarray:
        """Return squared distances from the centre: signs times these are the gradient."""
        return self.squares - 2.0 * iterate.inner + iterate.V @ iterate.V

    def optimality(self, iterate: DualIterate) -> Optimality:
        """Return objective and gap: the sum of (price - l) max(0, m) + l max(0, -m), m signed."""
        signs, price, reach = self.rows.signs, self.rows.price, self.reach(iterate)
        radius, objective = best_radius(reach, signs, price)
        margin = signs * (reach - radius)
        room = np.where(np.isfinite(price), price - iterate.multipliers, 0.0)
        excess = float(room @ np.maximum(margin, 0.0))
        excess += float(iterate.multipliers @ np.maximum(-margin, 0.0))
        return Optimality(radius, objective, excess, self.relative(excess, objective))

    def relative(self, excess: float, objective: float) -> float:
        """Return a gap relative to the objective, or to its rounding errors where that is 0."""
        floor = np.finfo(float).eps * float(self.squares.max()) or np.finfo(float).tiny
        return excess / max(abs(objective), floor)
