"""Slow, plain answers that the moment methods are held against."""

from itertools import product

import numpy as np
from scipy.optimize import lsq_linear, nnls


def dual_value(Z, alpha, b=1.0):
    """D of the dual (4) over rows Z, with b for its ones."""
    u = Z.T @ alpha
    return float(np.sum(b * alpha) - 0.5 * u @ u)


def box_qp_by_faces(Z, upper, b=None):
    """Maximise b'alpha - |Z'alpha|^2 / 2 in the box by trying every face: n up to about 7.

    Some solution has free rows that do not depend on each other, so only such faces count.
    """
    n, K = len(upper), Z @ Z.T
    b = np.ones(n) if b is None else b
    best, best_value = np.zeros(n), 0.0
    for state in product((0, 1, 2), repeat=n):
        state = np.array(state)
        free, at_upper = state == 1, state == 2
        if np.isinf(upper[at_upper]).any():
            continue
        alpha = np.where(at_upper, upper, 0.0)
        if free.any():
            part = K[np.ix_(free, free)]
            sizes = np.linalg.eigvalsh(part)
            if sizes[0] <= 1e-9 * max(sizes[-1], np.diagonal(K).max()):
                continue
            left = b[free] - K[np.ix_(free, at_upper)] @ upper[at_upper]
            alpha[free] = np.linalg.solve(part, left)
            if (alpha < 0).any() or (alpha > upper).any():
                continue
        value = dual_value(Z, alpha, b)
        if value > best_value:
            best, best_value = alpha, value
    return best


def box_qp_by_least_squares(Z, upper):
    """The dual (4) of rows Z as bounded least squares, where some y has Z y = 1."""
    y, *_ = np.linalg.lstsq(Z, np.ones(len(Z)))
    assert np.allclose(Z @ y, 1.0)
    kept = upper > 0
    solved = lsq_linear(Z[kept].T, y, (0, upper[kept]), method="bvls", tol=1e-15, max_iter=5000)
    alpha = np.zeros(len(Z))
    alpha[kept] = solved.x
    return alpha


def nearest_in_hull(Z):
    """The point of the convex hull of the rows of Z that is nearest to 0."""
    size = np.abs(Z).max(initial=0.0) or 1.0  # SciPy 1.14 goes round in circles on long rows
    q, _ = nnls(np.vstack([Z.T / size, np.ones(len(Z))]), np.append(np.zeros(Z.shape[1]), 1.0))
    return Z.T @ q / q.sum()
