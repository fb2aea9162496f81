"""Products of a float32 kernel block with float64 vectors, accumulated in float64.

BLAS would round the vectors to float32 first. Here only the kernel entries are rounded, once,
when they are stored: value, gradient and curvature then belong to one and the same (slightly
perturbed) problem, and the solver converges on it as far as it does in float64.
"""

import numpy as np

from rareclass.compiling import njit


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _expand(K, coefficients, scores_out):
    """scores = K coefficients, four rows at a time: memory delivers several streams sooner."""
    last = K.shape[0] - 1
    for i in range(0, last + 1, 4):
        # The last row stands in for rows beyond it.
        j, k, m = min(i + 1, last), min(i + 2, last), min(i + 3, last)
        a = b = c = d = 0.0
        for r in range(K.shape[1]):
            x = coefficients[r]
            a += K[i, r] * x
            b += K[j, r] * x
            c += K[k, r] * x
            d += K[m, r] * x
        scores_out[i], scores_out[j], scores_out[k], scores_out[m] = a, b, c, d


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _expand_fours(K, columns, scores_out):
    """scores = K columns', four columns and two rows at a time: each number read serves several.

    `columns` are a whole number of fours, shape (n_columns, n_landmarks).
    """
    n = K.shape[0]
    for i in range(0, n, 2):
        j = min(i + 1, n - 1)  # an odd last row is its own pair
        for c in range(0, columns.shape[0], 4):
            a0 = a1 = a2 = a3 = b0 = b1 = b2 = b3 = 0.0
            for r in range(K.shape[1]):
                a, b = np.float64(K[i, r]), np.float64(K[j, r])
                c0, c1, c2, c3 = (
                    columns[c, r], columns[c + 1, r], columns[c + 2, r], columns[c + 3, r],
                )  # fmt: skip
                a0 += a * c0
                a1 += a * c1
                a2 += a * c2
                a3 += a * c3
                b0 += b * c0
                b1 += b * c1
                b2 += b * c2
                b3 += b * c3
            scores_out[c, i], scores_out[c, j] = a0, b0
            scores_out[c + 1, i], scores_out[c + 1, j] = a1, b1
            scores_out[c + 2, i], scores_out[c + 2, j] = a2, b2
            scores_out[c + 3, i], scores_out[c + 3, j] = a3, b3


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


@njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _pull_back_fours(K, columns, by_landmark_out):
    """by_landmark += columns K, four columns and four rows at a time.

    `columns` are a whole number of fours, shape (n_columns, n); n is a whole number of fours, too.
    """
    for i in range(0, K.shape[0], 4):
        for c in range(0, columns.shape[0], 4):
            e0, e1 = columns[c, i], columns[c, i + 1]
            e2, e3 = columns[c, i + 2], columns[c, i + 3]
            f0, f1 = columns[c + 1, i], columns[c + 1, i + 1]
            f2, f3 = columns[c + 1, i + 2], columns[c + 1, i + 3]
            g0, g1 = columns[c + 2, i], columns[c + 2, i + 1]
            g2, g3 = columns[c + 2, i + 2], columns[c + 2, i + 3]
            h0, h1 = columns[c + 3, i], columns[c + 3, i + 1]
            h2, h3 = columns[c + 3, i + 2], columns[c + 3, i + 3]
            for r in range(K.shape[1]):
                k0, k1 = np.float64(K[i, r]), np.float64(K[i + 1, r])
                k2, k3 = np.float64(K[i + 2, r]), np.float64(K[i + 3, r])
                by_landmark_out[c, r] += (e0 * k0 + e1 * k1) + (e2 * k2 + e3 * k3)
                by_landmark_out[c + 1, r] += (f0 * k0 + f1 * k1) + (f2 * k2 + f3 * k3)
                by_landmark_out[c + 2, r] += (g0 * k0 + g1 * k1) + (g2 * k2 + g3 * k3)
                by_landmark_out[c + 3, r] += (h0 * k0 + h1 * k1) + (h2 * k2 + h3 * k3)
