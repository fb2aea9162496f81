"""Products of a float32 kernel block with float64 vectors, accumulated in float64.

BLAS would round the vectors to float32 first. Here only the kernel entries are rounded, once,
when they are stored: value, gradient and curvature then belong to one and the same (slightly
perturbed) problem, and the solver converges on it as far as it does in float64.
"""

from rareclass.compiling import njit


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
    """by_landmark += K' by_row, four rows at a time; rows at zero are skipped where four meet."""
    n, whole = K.shape[0], K.shape[0] - K.shape[0] % 4
    for i in range(0, whole, 4):
        g0, g1, g2, g3 = by_row[i], by_row[i + 1], by_row[i + 2], by_row[i + 3]
        if g0 != 0.0 or g1 != 0.0 or g2 != 0.0 or g3 != 0.0:
            for r in range(K.shape[1]):
                by_landmark_out[r] += (g0 * K[i, r] + g1 * K[i + 1, r]) + (
                    g2 * K[i + 2, r] + g3 * K[i + 3, r]
                )
    for i in range(whole, n):
        g = by_row[i]
        if g != 0.0:
            for r in range(K.shape[1]):
                by_landmark_out[r] += g * K[i, r]
