"""A quadratic programme in a box by an interior point, ended on the face that holds its solution.

Where coordinate descent creeps (large bounds, rows nearly collinear) this takes some twenty
factorisations, whatever the bounds and the conditioning.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr, solve_triangular

_MOST_STEPS = 60
# Relative gap at which the bounds that hold are told from those that do not.
_TOLD_APART = 1e-10
# Largest error of a score, which is about 1 at the margin, that is none.
_FEASIBLE = 1e-8
# Share of the way to the boundary that a step goes.
_NEARLY = 0.995
# Below this share of the largest pivot, a row of the face depends on those before it.
_DEPENDENT = 1e-11
_MOST_WALLS = 10
# Keeps what rounding makes of a singular matrix positive; later steps put right what it costs.
_JITTER = 1e-15


class _Iterate(NamedTuple):
    """u (r,); alpha and room = upper - alpha (n,); the multipliers low and high of both (n,).

    Where there is no upper bound, room is 1 and high is 0 throughout.
    """

    u: np.ndarray
    alpha: np.ndarray
    room: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def moved(self, direction: "_Iterate", step: float) -> "_Iterate":
        return _Iterate(*(x + step * d for x, d in zip(self, direction, strict=True)))

    def longest(self, direction: "_Iterate") -> float:
        """The longest step up to 1 after which nothing is below 0."""
        longest = 1.0
        for x, d in zip(self[1:], direction[1:], strict=True):
            falls = d < 0.0
            longest = min(longest, float((x[falls] / -d[falls]).min(initial=longest)))
        return longest

    def products(self) -> float:
        return float(self.alpha @ self.low + self.room @ self.high)


class _System:
    r"""The Newton equations at an iterate, factorised once for both right-hand sides.

    With :math:`r_u = Z'\alpha - u`, :math:`r_d = b - Z u + low - high` and the products
    alpha low and room high aimed at a and c:

    .. math::
        D = low / \alpha + high / room, \qquad
        h = r_d + (a / \alpha - low) - (c / room - high)

        (I + Z' D^{-1} Z)\, du = r_u + Z' D^{-1} h, \qquad d\alpha = D^{-1} (h - Z\, du)

        dlow = a / \alpha - low - low\, d\alpha / \alpha, \qquad
        dhigh = c / room - high + high\, d\alpha / room
    """

    def __init__(self, Z: np.ndarray, capped: np.ndarray, at: _Iterate, r_d: np.ndarray) -> None:
        self._Z, self._capped, self._at = Z, capped, at
        self._D = at.low / at.alpha + at.high / at.room
        scaled = Z / np.sqrt(self._D)[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += 1.0 + _JITTER * np.trace(matrix)
        self._factor = cho_factor(matrix, overwrite_a=True)
        self._r_u = Z.T @ at.alpha - at.u
        self._r_d = r_d

    def direction(self, a: np.ndarray | float, c: np.ndarray | float) -> _Iterate:
        """The step that aims the products alpha low at a and room high at c."""
        at = self._at
        low = a / at.alpha - at.low
        high = np.where(self._capped, c / at.room - at.high, 0.0)
        h = self._r_d + low - high
        du = cho_solve(self._factor, self._r_u + self._Z.T @ (h / self._D))
        dalpha = (h - self._Z @ du) / self._D
        droom = np.where(self._capped, -dalpha, 0.0)
        low -= at.low * dalpha / at.alpha
        return _Iterate(du, dalpha, droom, low, high - at.high * droom / at.room)


def solve_box_qp(Z: np.ndarray, b: np.ndarray, upper: np.ndarray) -> np.ndarray:
    r"""Maximise :math:`b'\alpha - \frac12 |Z'\alpha|^2` over :math:`0 \le \alpha \le upper`.

    Mehrotra's predictor and corrector on the optimality conditions

    .. math::
        u = Z'\alpha, \quad Z u - b = low - high, \quad \alpha\, low = 0, \quad
        (upper - \alpha)\, high = 0, \quad low, high \ge 0.

    1. Start in the middle of the box, with multipliers of 1.
    2. Predict: the Newton step to products of 0, as far as it stays inside.
    3. Correct: aim each product at (left / all)^3 of the mean, less what the prediction adds.
    4. Go 0.995 of the way to the boundary. Repeat from 2 until the products sum to 1e-10 of the
       objective and the scores are right to 1e-8. If rounding ends it before, once more from
       multipliers that solve the second condition: slower, and safer where bounds are huge.
    5. A row is put to a bound that it would meet on its own, that is, in a step of coordinate
       descent: alpha_i < low_i / |z_i|^2, or room_i < high_i / |z_i|^2.

    Z has the shape (n, r), b is near 1 in size, and upper is positive; inf is no bound (Z u >= b
    must then have a solution). The free rows of alpha are those of the solution but for degenerate
    ones; `to_face` makes it exact.

    Time n r^2 a step, 10 to 30 steps; memory n r.
    """
    capped, norms = np.isfinite(upper), np.einsum("ij,ij->i", Z, Z)
    for balanced in (False, True):
        # 1.
        at, arrived = _followed(Z, b, capped, _start(Z, b, upper, norms, balanced))
        if arrived:
            break
    # 5.
    alpha = np.where((at.alpha * norms < at.low) & (at.high < at.low), 0.0, at.alpha)
    return np.where(capped & (at.room * norms < at.high) & (at.low < at.high), upper, alpha)


def _start(
    Z: np.ndarray, b: np.ndarray, upper: np.ndarray, norms: np.ndarray, balanced: bool
) -> _Iterate:
    """The middle of the box; multipliers of 1, or such that the linear conditions hold."""
    capped = np.isfinite(upper)
    alpha = np.where(capped, upper / 2, 1.0 / max(float(norms.mean()), np.finfo(float).tiny))
    u = Z.T @ alpha
    over = Z @ u - b if balanced else np.zeros_like(b)
    shift = max(1.0, float(np.abs(over).mean()))
    low, high = shift + np.maximum(over, 0.0), shift + np.maximum(-over, 0.0)
    return _Iterate(u, alpha, np.where(capped, alpha, 1.0), low, np.where(capped, high, 0.0))


def _followed(
    Z: np.ndarray, b: np.ndarray, capped: np.ndarray, at: _Iterate
) -> tuple[_Iterate, bool]:
    """Steps 2 to 4 of `solve_box_qp`, and whether they came to the end."""
    upper = np.where(capped, at.alpha + at.room, 0.0)
    for _ in range(_MOST_STEPS):
        products, r_d = at.products(), b - Z @ at.u + at.low - at.high
        value = 0.5 * float(at.u @ at.u) + float(upper @ at.high)
        if products <= _TOLD_APART * value and np.abs(r_d).max() <= _FEASIBLE:
            return at, True
        try:
            system = _System(Z, capped, at, r_d)
            # 2.
            ahead = system.direction(0.0, 0.0)
            left = at.moved(ahead, at.longest(ahead)).products() / products
            # 3.
            aim = left**3 * products / (len(b) + np.count_nonzero(capped))
            ahead = system.direction(aim - ahead.alpha * ahead.low, aim - ahead.room * ahead.high)
        except (LinAlgError, ValueError):  # not positive or not finite: rounding ends it
            break
        # 4.
        moved = at.moved(ahead, _NEARLY * at.longest(ahead))
        if not np.isfinite(moved.products()):
            break
        at = moved
    return at, False


def to_face(Z: np.ndarray, b: np.ndarray, upper: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The maximum of the same objective over the rows strictly inside the box, others held.

    1. For the free rows F, find d with Z_F Z_F'd = b_F - Z_F Z'alpha. With Z_F' = Q R by column
       pivots that is R'R d = the right-hand side, over the rows that depend on no others.
    2. Go along d, to its end or to the first bound.
    3. Rows that have met a bound leave F. From 1 again, ten times at most.

    `alpha` is within the box, and so is what comes: its objective is not below that of the one
    given but for rounding.

    Time r |F|^2 each time.
    """
    alpha, F = alpha.copy(), np.flatnonzero((alpha > 0.0) & (alpha < upper))
    for _ in range(_MOST_WALLS):
        if not len(F):
            break
        # 1.
        rows, R = _independent(Z, F)
        missing = b[rows] - Z[rows] @ (Z.T @ alpha)
        d = solve_triangular(R, solve_triangular(R, missing, trans="T"))
        # 2.
        wall = np.where(d < 0.0, 0.0, upper[rows])
        moves = d != 0.0
        reach = np.divide(wall - alpha[rows], d, out=np.full(len(d), np.inf), where=moves)
        step = min(1.0, float(reach.min(initial=1.0)))
        met = reach <= step
        alpha[rows] = np.where(met, wall, alpha[rows] + step * d)
        if not met.any():
            break
        # 3.
        F = np.setdiff1d(F, rows[met])
    return alpha


def _independent(Z: np.ndarray, F: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of F of which no one depends on the others, and R of their Q R."""
    R, pivots = qr(Z[F].T, mode="r", pivoting=True)
    sizes = np.abs(np.diagonal(R))
    rank = int(np.count_nonzero(sizes > _DEPENDENT * sizes[0]))
    return F[pivots[:rank]], R[:rank, :rank]
