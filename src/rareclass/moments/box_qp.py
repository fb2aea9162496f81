"""A quadratic programme in a box, with a sum to keep or none: interior point, then exact end.

Where coordinate descent and projected gradients creep (large bounds, rows nearly collinear) the
interior point takes some twenty factorisations, whatever the bounds and the conditioning. `to_face`
makes its solution exact on the face of the box that holds the solution.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, lapack

# Largest error of a score Z u, where b is near 1 in size, that counts as none.
_FEASIBLE = 1e-8
# Share of the way to the boundary that a step goes.
_NEARLY = 0.995
# Keeps a matrix positive that rounding made singular; later steps put the error right.
_JITTER = 1e-15
# With a sum, holds alpha to where it is, in each step. Where rows of either sign are alike, only
# this keeps theirs from growing together until the sum has lost its digits.
_PROXIMAL = 1e-12
# Of `solve_box_qp`: most steps, and the relative gap at which active bounds are known.
_MOST_STEPS, _BOUNDS_KNOWN = 60, 1e-10
# Below this share of the largest pivot, a row of the face depends on those before it.
_DEPENDENT = 1e-11
# Scores off by less than this, where b is near 1, are rounding errors.
_ROUNDING = 1e-12
_MOST_WALLS, _MOST_REFINED = 60, 3


class BoxQP(NamedTuple):
    r"""A concave quadratic function of alpha, to be maximised in a box.

    .. math::
        \max_\alpha b'\alpha - \tfrac12 |u|^2, \quad u = u_0 + Z'\alpha, \qquad
        0 \le \alpha \le upper, \quad \text{and, where there are signs,} \quad s'\alpha = total.
    """

    Z: np.ndarray  # (n, r)
    b: np.ndarray  # (n,), near 1 in size
    upper: np.ndarray  # above 0; inf is no bound
    signs: np.ndarray | None = None  # s, +1 or -1
    total: float = 0.0
    shift: np.ndarray | float = 0.0  # u_0, (r,)

    def combined(self, alpha: np.ndarray) -> np.ndarray:
        """Return u of an alpha."""
        return self.shift + self.Z.T @ alpha

    def pulled(self, rho: np.ndarray) -> np.ndarray | float:
        """Return the part of each score that comes from the multiplier of the sum."""
        return 0.0 if self.signs is None else self.signs * rho


class _Iterate(NamedTuple):
    """u and rho; alpha and room = upper - alpha (n,); the multipliers low and high of both (n,).

    Where there is no upper bound, room is 1 and high is 0 throughout; without a sum rho is 0.
    """

    u: np.ndarray
    rho: np.ndarray  # a single number
    alpha: np.ndarray
    room: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def moved(self, direction: "_Iterate", step: float) -> "_Iterate":
        return _Iterate(*(x + step * d for x, d in zip(self, direction, strict=True)))

    def longest(self, direction: "_Iterate") -> float:
        """Return the longest step up to 1 after which nothing is below 0."""
        longest = 1.0
        for x, d in zip(self[2:], direction[2:], strict=True):
            falls = d < 0.0
            longest = min(longest, float((x[falls] / -d[falls]).min(initial=longest)))
        return longest

    def products(self) -> float:
        return float(self.alpha @ self.low + self.room @ self.high)


class _NewtonSystem:
    r"""The Newton equations at an iterate, factorised once for both right-hand sides.

    With :math:`r_u = u_0 + Z'\alpha - u`, :math:`r_t = total - s'\alpha`,
    :math:`r_d = b - Z u - s \rho + low - high`, and products alpha low and room high aimed at a, c:

    .. math::
        D = low / \alpha + high / room + \delta, \qquad
        h = r_d + (a / \alpha - low) - (c / room - high)

        d\alpha = D^{-1} (h - Z\, du - s\, d\rho), \qquad du = r_u + Z' d\alpha, \qquad
        s' d\alpha = r_t

        dlow = a / \alpha - low - low\, d\alpha / \alpha, \qquad
        dhigh = c / room - high + high\, d\alpha / room

    with a small :math:`\delta` where there is a sum. Its rows are then centred, s z at their mean
    in the weights 1 / D, and drho is a division; du comes from the matrix
    :math:`I + \bar Z' D^{-1} \bar Z` in any case.
    """

    def __init__(self, qp: BoxQP, capped: np.ndarray, at: _Iterate, r_d: np.ndarray) -> None:
        self._qp, self._capped, self._at, self._r_d = qp, capped, at, r_d
        self._D = at.low / at.alpha + at.high / at.room
        self._Z, self._r_u = qp.Z, qp.combined(at.alpha) - at.u
        if qp.signs is not None:
            self._D += _PROXIMAL
            self._sum = float((1.0 / self._D).sum())
            self._mean = (qp.signs / self._D) @ qp.Z / self._sum
            self._Z = qp.Z - qp.signs[:, None] * self._mean
            self._r_t = qp.total - float(qp.signs @ at.alpha)
        scaled = self._Z / np.sqrt(self._D)[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += 1.0 + _JITTER * np.trace(matrix)
        # Lapack itself: what scipy puts before it takes longer than a small matrix.
        self._factor, failed = lapack.dpotrf(matrix.T, lower=1, overwrite_a=1)
        if failed:
            raise LinAlgError("not positive definite")

    def direction(self, a: np.ndarray | float, c: np.ndarray | float) -> _Iterate:
        """Return the step that aims the products alpha low at a and room high at c."""
        at, signs = self._at, self._qp.signs
        low = a / at.alpha - at.low
        high = np.where(self._capped, c / at.room - at.high, 0.0)
        h = self._r_d + low - high
        right = self._r_u + self._Z.T @ (h / self._D)
        if signs is None:
            du, drho = self._solve(right), np.zeros(1)
            dalpha = (h - self._Z @ du) / self._D
        else:
            level = (float(signs @ (h / self._D)) - self._r_t) / self._sum
            du = self._solve(right + self._mean * self._r_t)
            drho = np.array([level - self._mean @ du])
            dalpha = (h - self._Z @ du - signs * level) / self._D
        droom = np.where(self._capped, -dalpha, 0.0)
        low -= at.low * dalpha / at.alpha
        return _Iterate(du, drho, dalpha, droom, low, high - at.high * droom / at.room)

    def _solve(self, right: np.ndarray) -> np.ndarray:
        solution: np.ndarray = lapack.dpotrs(self._factor, right, lower=1, overwrite_b=1)[0]
        return solution


class InteriorResult(NamedTuple):
    """Result of the interior point: alpha, number of steps, and whether it reached the end."""

    alpha: np.ndarray
    n_steps: int
    arrived: bool


def interior_point(
    qp: BoxQP,
    free_start: float,
    per_score: np.ndarray,
    near: float,
    most_steps: int,
    balanced: bool = True,
) -> InteriorResult:
    r"""Maximise by Mehrotra's predictor and corrector on the optimality conditions

    .. math::
        u = u_0 + Z'\alpha, \quad Z u + s \rho - b = low - high, \quad \alpha\, low = 0, \quad
        (upper - \alpha)\, high = 0, \quad low, high \ge 0.

    1. Start in the middle of the box, without an upper bound at `free_start`; with low and high of
       1, or, balanced, such that the second condition holds: slower, and safer where bounds are
       huge.
    2. Predict: the Newton step to products of 0, as far as it stays inside.
    3. Correct: aim each product at (left / all)^3 of the mean, less what the prediction adds.
    4. Go 0.995 of the way to the boundary. Repeat from 2 until the products sum to `near` of the
       objective and the scores are right to 1e-8, or rounding ends it.
    5. Alpha is put to a bound that is nearer than its multiplier times `per_score` (n,), which is
       the distance that alpha would move for each unit of error in its score.

    Time n r^2 a step, 10 to 30 steps; memory 2 n r.
    """
    capped = np.isfinite(qp.upper)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        start = _start(qp, capped, free_start, balanced)
        at, n_steps, arrived = _follow(qp, capped, start, near, most_steps)
        # 5.
        to_0 = (at.alpha < per_score * at.low) & (at.high < at.low)
        to_upper = capped & (at.room < per_score * at.high) & (at.low < at.high)
    alpha = np.where(to_upper, qp.upper, np.where(to_0, 0.0, at.alpha))
    return InteriorResult(alpha, n_steps, arrived)


def _start(qp: BoxQP, capped: np.ndarray, free_start: float, balanced: bool) -> _Iterate:
    """Run step 1 of `interior_point`."""
    alpha = np.where(capped, qp.upper / 2, free_start)
    u, rho = qp.combined(alpha), np.zeros(1)
    over = qp.Z @ u - qp.b
    if qp.signs is not None:
        rho = np.median(-qp.signs * over, keepdims=True)
        over += qp.pulled(rho)
    over = over if balanced else np.zeros_like(over)
    shift = max(1.0, float(np.abs(over).mean()))
    low, high = shift + np.maximum(over, 0.0), shift + np.maximum(-over, 0.0)
    return _Iterate(u, rho, alpha, np.where(capped, alpha, 1.0), low, np.where(capped, high, 0.0))


def _follow(
    qp: BoxQP, capped: np.ndarray, at: _Iterate, near: float, most_steps: int
) -> tuple[_Iterate, int, bool]:
    """Run steps 2 to 4 of `interior_point`."""
    capped_upper = np.where(capped, qp.upper, 0.0)
    for n_steps in range(most_steps + 1):
        r_d = qp.b - qp.Z @ at.u - qp.pulled(at.rho) + at.low - at.high
        value = abs(float(at.rho[0]) + 0.5 * float(at.u @ at.u) + float(capped_upper @ at.high))
        products = at.products()
        if products <= near * max(value, near) and np.abs(r_d).max() <= _FEASIBLE:
            return at, n_steps, True
        if n_steps == most_steps:
            break
        try:
            # The last system lives until this one is made: memory given back to the operating
            # system in each step, and taken anew, costs a third of it.
            system = _NewtonSystem(qp, capped, at, r_d)
            # 2.
            ahead = system.direction(0.0, 0.0)
            left = at.moved(ahead, at.longest(ahead)).products() / products
            # 3.
            aim = left**3 * products / (len(at.alpha) + np.count_nonzero(capped))
            ahead = system.direction(aim - ahead.alpha * ahead.low, aim - ahead.room * ahead.high)
        except (LinAlgError, ValueError):  # not positive or not finite: rounding ends it
            break
        # 4.
        moved = at.moved(ahead, _NEARLY * at.longest(ahead))
        if not np.isfinite(moved.products()):
            break
        at = moved
    return at, n_steps, False


def solve_box_qp(qp: BoxQP) -> np.ndarray:
    r"""Maximise without a sum to keep, from no start.

    `interior_point`, from multipliers of 1; if rounding ends it early, once more from multipliers
    that solve the linear conditions. A row is put to a bound that it would meet on its own, that
    is, in a step of coordinate descent. Upper bounds are above 0; inf is no bound (Z u >= b must
    then have a solution). The free rows of alpha are those of the solution but for degenerate
    ones; `to_face` makes it exact.
    """
    norms = np.einsum("ij,ij->i", qp.Z, qp.Z)
    free_start = 1.0 / max(float(norms.mean()), np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        per_score = 1.0 / norms
    for balanced in (False, True):
        found = interior_point(qp, free_start, per_score, _BOUNDS_KNOWN, _MOST_STEPS, balanced)
        if found.arrived:
            break
    return found.alpha


def to_face(qp: BoxQP, alpha: np.ndarray) -> np.ndarray:
    """Maximise over the rows strictly inside the box, the others held.

    1. Find the step of `face_step`.
    2. Go along it, to its end or to the first bound.
    3. Rows that have met a bound are not free any more. From 1 again; once no bound is met, up to
       three times more against rounding errors.

    Alpha (n,) stays within the box, its objective not below that of the one given but for rounding,
    and its sum is right if there was a free row. Time r |F|^2 each time, for the free rows F.
    """
    alpha = alpha.copy()
    free = np.flatnonzero((alpha > 0.0) & (alpha < qp.upper))
    refined = 0
    for _ in range(_MOST_WALLS):
        if not len(free) or refined == _MOST_REFINED:
            break
        # 1.
        step, ends = face_step(qp, alpha, free)
        # 2.
        wall = np.where(step < 0.0, 0.0, qp.upper[free])
        room = wall - alpha[free]
        reach = np.divide(room, step, out=np.full(len(free), np.inf), where=step != 0.0)
        share = min(1.0 if ends else np.inf, float(reach.min()))
        if not np.isfinite(share):
            break
        met = reach <= share
        alpha[free] = np.where(met, wall, alpha[free] + share * step)
        # 3.
        free = free[~met]
        refined += not met.any()
    return alpha


def face_step(qp: BoxQP, alpha: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, bool]:
    r"""Return the way to the maximum over the free rows F, bounds apart, and whether it ends there.

    With rows z and b times their signs, the maximum has :math:`A A' w = e - \mu 1` and
    :math:`1'w = t`, where w is the step times the signs, :math:`e = b_F - Z_F u`, t what the sum
    lacks, and A the centred rows with a constant column. Without a sum A is Z, and mu is 0. Let
    :math:`A P = Q R`, rank revealing.

    - Where e is not within the columns of Q, some rows miss more than others on which they depend.
      Along what is left of e the objective rises without end and u stays.
    - Elsewhere w is the shortest solution, :math:`Q (R R')^{-1} Q' (e - \mu 1)`.
    """
    signs = np.ones(len(free)) if qp.signs is None else qp.signs[free]
    A, lacks = signs[:, None] * qp.Z[free], 0.0
    e = signs * qp.b[free] - A @ qp.combined(alpha)
    if qp.signs is not None:
        lacks = qp.total - float(qp.signs @ alpha)
        e -= e.mean()
        A -= A.mean(axis=0)
        width = float(np.sqrt(np.einsum("ij,ij->i", A, A).max())) or 1.0
        A = np.column_stack([A, np.full(len(free), width)])
    QR, _, reflectors = lapack.dgeqp3(A)[:3]
    sizes = np.abs(np.diagonal(QR))
    rank = int(np.count_nonzero(sizes > _DEPENDENT * sizes[0]))
    if not rank:  # rows of zeros
        return signs * e, False
    Q = lapack.dorgqr(QR[:, :rank], reflectors[:rank])[0]
    both = Q.T @ np.column_stack([e, np.ones(len(free))])
    if rank < len(free):
        left = e - Q @ both[:, 0]
        left -= Q @ (Q.T @ left)
        blur = _ROUNDING * (1.0 + float(np.abs(alpha).sum()))
        if np.abs(left).max() > blur and abs(lacks) <= blur:
            return signs * left, False
    T = lapack.dgeqrf(np.triu(QR[:rank]).T)[0][:rank]  # R R' = T'T, T above the diagonal
    w, level = (Q @ lapack.dtrtrs(T, lapack.dtrtrs(T, both, trans=1)[0])[0]).T
    if qp.signs is not None:
        w = w - level * ((w.sum() - lacks) / level.sum())
    return signs * w, True
