"""The dual of MIBC by an interior point, ended on the face that holds its solution."""

import numpy as np
from scipy.linalg import qr, solve_triangular

from rareclass.moments.box_qp import BoxQP, interior_point

_MOST_STEPS = 60
# Relative gap at which the bounds that hold are told from those that do not.
_TOLD_APART = 1e-10
# Below this share of the largest pivot, a row of the face depends on those before it.
_DEPENDENT = 1e-11
_MOST_WALLS = 10


def solve_box_qp(Z: np.ndarray, b: np.ndarray, upper: np.ndarray) -> np.ndarray:
    r"""Maximise :math:`b'\alpha - \frac12 |Z'\alpha|^2` over :math:`0 \le \alpha \le upper`.

    `interior_point`, from multipliers of 1; if rounding ends it early, once more from multipliers
    that solve the linear conditions. A row is put to a bound that it would meet on its own, that
    is, in a step of coordinate descent. Upper bounds are above 0; inf is no bound (Z u >= b must
    then have a solution). The free rows of alpha are those of the solution but for degenerate
    ones; `to_face` makes it exact.
    """
    norms = np.einsum("ij,ij->i", Z, Z)
    free_start = 1.0 / max(float(norms.mean()), np.finfo(float).tiny)
    with np.errstate(divide="ignore"):
        per_score = 1.0 / norms
    for balanced in (False, True):
        found = interior_point(
            BoxQP(Z, b, upper), free_start, per_score, _TOLD_APART, _MOST_STEPS, balanced
        )
        if found.arrived:
            break
    return found.alpha


def to_face(Z: np.ndarray, b: np.ndarray, upper: np.ndarray, alpha: np.ndarray) -> np.ndarray:
    """The maximum of the same objective over the rows strictly inside the box, others held.

    1. For the free rows F, find d with Z_F Z_F'd = b_F - Z_F Z'alpha. With Z_F' = Q R by column
       pivots that is R'R d = the right-hand side, over the rows that depend on no others.
    2. Go along d, to its end or to the first bound.
    3. Rows that have met a bound leave F. From 1 again, ten times at most.

    Alpha (n,) stays within the box, its objective not below that of the one given but for rounding.
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
