"""Products of a float32 kernel block with float64 vectors, accumulated in float64.

BLAS would round the vectors to float32 first. Here only the kernel entries are rounded, once,
when they are stored: value, gradient and curvature then belong to one and the same (slightly
perturbed) problem, and the solver converges on it as far as it does in float64.
"""

from numba import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _expand(K, coefficients, scores_out):
    """scores = K coefficients."""
    for i in range(K.shape[0]):
        total = 0.0
        for r in range(K.shape[1]):
            total += K[i, r] * coefficients[r]
        scores_out[i] = total


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _pull_back(K, by_row, by_landmark_out):
    """by_landmark += K' by_row; rows at zero, which are most of them, are skipped."""
    for i in range(K.shape[0]):
        g = by_row[i]
        if g != 0.0:
            for r in range(K.shape[1]):
                by_landmark_out[r] += g * K[i, r]
