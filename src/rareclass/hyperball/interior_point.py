"""The dual of the ball by an interior point, some twenty factorisations whatever the prices.

Projected gradient creeps where prices are high or rows nearly on a line; this does not. It ends
exactly, once it is known which rows lie on the sphere.
"""

from typing import NamedTuple

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, qr, solve_triangular

_MOST_STEPS = 80
# Relative gap to stop at, and the largest error of a margin.
_NEAR, _FEASIBLE = 1e-12, 1e-8
# Share of the way to the boundary that a step goes.
_NEARLY = 0.995
# Keeps what rounding makes of a singular matrix positive; later steps put right what it costs.
_JITTER = 1e-15
# Holds multipliers to where they are, in each step. Where rows on either side of the sphere are
# alike, only this keeps theirs from growing together until the sum has lost its digits.
_PROXIMAL = 1e-12
# Below this share of the largest pivot, a column depends on those before it.
_DEPENDENT = 1e-11
# Margins off by less than this, where squares are near 1, are rounding errors.
_ROUNDING = 1e-12
_MOST_WALLS, _MOST_REFINED = 60, 3


class BallPart(NamedTuple):
    r"""Rows of a dual whose multipliers are free to move while those of all others are held.

    .. math::
        \max_l \sum_i s_i l_i q_i - \Big\|V_0 + \sum_i s_i l_i z_i\Big\|^2, \qquad
        0 \le l_i \le price_i, \quad \sum_i s_i l_i = total.
    """

    Z: np.ndarray  # (m, r)
    squares: np.ndarray  # q, near 1 in size
    signs: np.ndarray
    price: np.ndarray
    total: float
    V0: np.ndarray

    def combined(self, multipliers: np.ndarray) -> np.ndarray:
        """The centre that goes with the multipliers."""
        return self.V0 + self.Z.T @ (self.signs * multipliers)


class _Iterate(NamedTuple):
    """Centre V and rho; multipliers l, room = price - l, and the multipliers low and high of both.

    Where there is no upper bound, room is 1 and high is 0 throughout.
    """

    V: np.ndarray
    rho: np.ndarray  # a single number
    l: np.ndarray  # noqa: E741
    room: np.ndarray
    low: np.ndarray
    high: np.ndarray

    def moved(self, direction: "_Iterate", step: float) -> "_Iterate":
        return _Iterate(*(x + step * d for x, d in zip(self, direction, strict=True)))

    def longest(self, direction: "_Iterate") -> float:
        """The longest step up to 1 after which nothing is below 0."""
        longest = 1.0
        for x, d in zip(self[2:], direction[2:], strict=True):
            falls = d < 0.0
            longest = min(longest, float((x[falls] / -d[falls]).min(initial=longest)))
        return longest

    def products(self) -> float:
        return float(self.l @ self.low + self.room @ self.high)


class _System:
    r"""The Newton equations at an iterate, factorised once for both right-hand sides.

    With :math:`r_V = V_0 + Z'(s l) - V`, :math:`r_t = total - s'l`,
    :math:`r_d = s (q - 2 Z V - \rho) + low - high`, and products l low and room high aimed at a, c:

    .. math::
        D = low / l + high / room + \delta, \qquad h = r_d + (a / l - low) - (c / room - high)

        dl = D^{-1} (h - s (2 Z\, dV + d\rho)), \qquad dV = r_V + Z'(s\, dl), \qquad s'dl = r_t.

    with a small :math:`\delta`. With the rows centred at their mean in the weights 1 / D,
    :math:`2 dV` comes from the matrix :math:`I/2 + \bar Z' D^{-1} \bar Z`, d rho from a division.
    """

    def __init__(self, part: BallPart, capped: np.ndarray, at: _Iterate, r_d: np.ndarray) -> None:
        self._part, self._capped, self._at, self._r_d = part, capped, at, r_d
        self._D = at.low / at.l + at.high / at.room + _PROXIMAL
        weight = 1.0 / self._D
        self._sum = float(weight.sum())
        self._mean = weight @ part.Z / self._sum
        self._centred = part.Z - self._mean
        scaled = self._centred * np.sqrt(weight)[:, None]
        matrix = scaled.T @ scaled
        matrix.flat[:: len(matrix) + 1] += 0.5 + _JITTER * np.trace(matrix)
        self._factor = cho_factor(matrix, overwrite_a=True)
        self._r_V = part.combined(at.l) - at.V
        self._r_t = part.total - float(part.signs @ at.l)

    def direction(self, a: np.ndarray | float, c: np.ndarray | float) -> _Iterate:
        """The step that aims the products l low at a and room high at c."""
        at, signs = self._at, self._part.signs
        low = a / at.l - at.low
        high = np.where(self._capped, c / at.room - at.high, 0.0)
        h = self._r_d + low - high
        w = signs * h / self._D
        level = (float(w.sum()) - self._r_t) / self._sum
        y = cho_solve(self._factor, self._r_V + self._centred.T @ w + self._mean * self._r_t)
        dl = (h - signs * (self._centred @ y + level)) / self._D
        droom = np.where(self._capped, -dl, 0.0)
        low -= at.low * dl / at.l
        high -= at.high * droom / at.room
        drho = np.array([level - self._mean @ y])
        return _Iterate(0.5 * y, drho, dl, droom, low, high)


def solve_part(part: BallPart, most_steps: int = _MOST_STEPS) -> tuple[np.ndarray, int]:
    """Maximise the dual over the rows of a part, by Mehrotra's predictor and corrector.

    1. Start in the middle of the box, with multipliers of the bounds that leave all products alike.
    2. Predict: the Newton step to products of 0, as far as it stays inside.
    3. Correct: aim each product at (left / all)^3 of the mean, less what the prediction adds.
    4. Go 0.995 of the way to the boundary. Repeat from 2 until the products sum to 1e-12 of the
       objective, or rounding ends it.
    5. A multiplier is put to a bound that is nearer than the margin is to 0.

    The multipliers (m,) are within the box, their sum right to what the rounding of 5 leaves:
    `to_face` puts it right. With them comes the number of steps: 10 to 30, of time m r^2; memory 3
    m r.
    """
    capped = np.isfinite(part.price)
    at = _start(part, capped)
    n_steps = 0
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        while n_steps < min(most_steps, _MOST_STEPS) and not _arrived(part, at, capped):
            moved = _moved(part, at, capped)
            if moved is None:
                break
            at, n_steps = moved, n_steps + 1
    # 5.
    reach = np.minimum(part.price, 1.0)
    to_0 = (at.l < reach * at.low) & (at.high < at.low)
    to_price = capped & (at.room < reach * at.high) & (at.low < at.high)
    inside = np.clip(at.l, 0.0, part.price)
    return np.where(to_price, part.price, np.where(to_0, 0.0, inside)), n_steps


def _start(part: BallPart, capped: np.ndarray) -> _Iterate:
    """Step 1 of `solve_part`."""
    multipliers = np.where(capped, part.price / 2, 1.0)
    V = part.combined(multipliers)
    reach = part.squares - 2.0 * (part.Z @ V)
    rho = np.median(reach, keepdims=True)
    margin = part.signs * (reach - rho)
    shift = max(1.0, float(np.abs(margin).mean()))
    low, high = shift + np.maximum(-margin, 0.0), shift + np.maximum(margin, 0.0)
    room = np.where(capped, multipliers, 1.0)
    return _Iterate(V, rho, multipliers, room, low, np.where(capped, high, 0.0))


def _margins_off(part: BallPart, at: _Iterate) -> np.ndarray:
    """r_d: by how much margins and the multipliers of the bounds disagree."""
    reach = part.squares - 2.0 * (part.Z @ at.V) - at.rho
    return part.signs * reach + at.low - at.high


def _arrived(part: BallPart, at: _Iterate, capped: np.ndarray) -> bool:
    over = float(np.where(capped, part.price, 0.0) @ at.high)
    value = float(at.rho[0]) + float(at.V @ at.V) + over
    if at.products() > _NEAR * max(abs(value), _NEAR):
        return False
    return bool(np.abs(_margins_off(part, at)).max() <= _FEASIBLE)


def _moved(part: BallPart, at: _Iterate, capped: np.ndarray) -> _Iterate | None:
    """Steps 2 to 4 of `solve_part`; None where rounding ends it."""
    products = at.products()
    try:
        system = _System(part, capped, at, _margins_off(part, at))
        # 2.
        ahead = system.direction(0.0, 0.0)
        left = at.moved(ahead, at.longest(ahead)).products() / products
        # 3.
        aim = left**3 * products / (len(at.l) + np.count_nonzero(capped))
        ahead = system.direction(aim - ahead.l * ahead.low, aim - ahead.room * ahead.high)
    except (LinAlgError, ValueError):  # not positive or not finite
        return None
    # 4.
    moved = at.moved(ahead, _NEARLY * at.longest(ahead))
    return moved if np.isfinite(moved.products()) else None


def to_face(part: BallPart, multipliers: np.ndarray) -> np.ndarray:
    """The maximum of the dual over the rows strictly inside the box, the others held.

    1. Find the step of `face_step`.
    2. Go along it, to its end or to the first bound.
    3. Rows that have met a bound are not free any more. From 1 again; once no bound is met, up to
       three times more against rounding errors.

    The multipliers (m,) stay within the box. The signed sum is right, if there was a free row. Time
    r^2 |F| each time, for the free rows F.
    """
    multipliers = multipliers.copy()
    free = np.flatnonzero((multipliers > 0.0) & (multipliers < part.price))
    refined = 0
    for _ in range(_MOST_WALLS):
        if not len(free) or refined == _MOST_REFINED:
            break
        # 1.
        step, ends = face_step(part, multipliers, free)
        # 2.
        wall = np.where(step < 0.0, 0.0, part.price[free])
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


def face_step(part: BallPart, multipliers: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, bool]:
    r"""The way to the maximum over the free rows F, bounds apart, and whether it ends there.

    With w = s dl and what the sum lacks, t, the maximum has :math:`2 Z_F Z_F' w + \mu 1 = e`,
    :math:`e = q_F - 2 Z_F V` and :math:`1'w = t`. Let A be the centred rows with a constant column,
    and :math:`A P = Q R`, rank revealing.

    - Where e is not within the columns of Q, some rows are not at the distance of others on which
      they depend. Along what is left of e the dual rises without end and the centre stays.
    - Elsewhere w is the shortest solution, :math:`Q (R R')^{-1} Q' (e - \mu 1) / 2`.
    """
    Z, signs = part.Z, part.signs[free]
    lacks = part.total - float(part.signs @ multipliers)
    e = part.squares[free] - 2.0 * (Z[free] @ part.combined(multipliers))
    e -= e.mean()
    centred = Z[free] - Z[free].mean(axis=0)
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
    a, b = 0.5 * (Q @ solve_triangular(T, solve_triangular(T, both, trans="T"))).T
    return signs * (a - b * ((a.sum() - lacks) / b.sum())), True
