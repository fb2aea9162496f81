"""The exact end: the best multipliers on a face, once it is known which rows lie on the sphere."""

import numpy as np
from scipy.linalg import qr, solve_triangular

from rareclass.hyperball.interior_point import Part

# Below this share of the largest pivot, a column depends on those before it.
_DEPENDENT = 1e-11
# Margins off by less than this, where squares are near 1, are rounding errors.
_ROUNDING = 1e-12
_MOST_WALLS, _MOST_REFINED = 60, 3


def to_face(part: Part, multipliers: np.ndarray) -> np.ndarray:
    """The maximum of the dual over the rows strictly inside the box, the others held.

    1. Find the step of `face_step`.
    2. Go along it, to its end or to the first bound.
    3. Rows that have met a bound are not free any more. From 1 again; once no bound is met, up to
       three times more against rounding errors.

    Parameters
    ----------
    part : Part
    multipliers : ndarray of shape (m,)
        Within the box.

    Returns
    -------
    ndarray of shape (m,)
        Within the box. The signed sum is right, if there was a free row.

    Notes
    -----
    Time r^2 |F| each time, for the free rows F.
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


def face_step(part: Part, multipliers: np.ndarray, free: np.ndarray) -> tuple[np.ndarray, bool]:
    r"""The way to the maximum over the free rows F, bounds apart, and whether it ends there.

    With w = s dl and what the sum lacks, t, the maximum has :math:`2 Z_F Z_F' w + \mu 1 = e`,
    :math:`e = q_F - 2 Z_F V` and :math:`1'w = t`. Let A be the centred rows with a constant column,
    and :math:`A P = Q R`, rank revealing.

    - Where e is not within the columns of Q, some rows are not at the distance of others on which
      they depend. Along what is left of e the dual rises without end and the centre stays.
    - Elsewhere w is the shortest solution, :math:`Q (R R')^{-1} Q' (e - \mu 1) / 2`.

    Returns
    -------
    step : ndarray of shape (len(free),)
        Of the multipliers.
    ends : bool
        Whether the maximum is at its end; else there is none but for bounds.
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
