"""Compiled kernels, and products of a float32 kernel block with float64 vectors.

BLAS would round the vectors of a product to float32 first. Here only the kernel entries are
rounded, once, when they are stored: value, gradient and curvature then belong to one and the same
(slightly perturbed) problem, and the solver converges on it as far as it does in float64.
"""

import numpy as np

from rareclass.compiling import njit

# exp(t) = 2^n exp(r) with whole n and |r| <= log(2) / 2: log(2) in two parts, the first of which
# times n has no rounding error, and Cephes's polynomial for exp(r) in float32.
_PER_LOG_2, _LOG_2, _REST_OF_LOG_2 = map(np.float32, (1.44269504, 0.693359375, -2.12194440e-4))
_C2, _C3, _C4, _C5, _C6, _C7 = map(
    np.float32,
    (
        0.50000001201,
        0.16666665459,
        0.041665795894,
        8.3334519073e-3,
        1.3981999507e-3,
        1.987569150e-4,
    ),
)
# Added to a number below 2^22 it leaves the nearest whole one in the last bits.
_TO_WHOLE = np.float32(1.5 * 2**23)
_MANTISSA_BITS = np.int32(23)
# exp(t) below it would be a denormal number.
_LEAST = np.float32(-87.0)
_NOISE = np.float32(8.0 * np.finfo(np.float32).eps)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _to_squared_distances(P, x, z, scale):
    """P = scale (x + z - 2 P) in place; what is below the rounding error of x + z is zero."""
    zero, two = P.dtype.type(0.0), P.dtype.type(2.0)
    noise = P.dtype.type(8.0 * np.finfo(P.dtype).eps)
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            total = x[i] + z[j]
            distance = total - two * P[i, j]
            P[i, j] = zero if distance < noise * total else scale * distance


@njit(cache=True, nogil=True, fastmath={"contract"})
def _to_gaussian(P, x, z, scale):
    """P = exp(scale (x + z - 2 P)) in place, in float32: a polynomial without branches."""
    zero, one, two = np.float32(0.0), np.float32(1.0), np.float32(2.0)
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            total = x[i] + z[j]
            distance = total - two * P[i, j]
            exponent = zero if distance < _NOISE * total else scale * distance
            t = max(exponent, _LEAST)
            shifted = np.float32(t * _PER_LOG_2 + _TO_WHOLE)
            n = shifted - _TO_WHOLE
            r = (t - n * _LOG_2) - n * _REST_OF_LOG_2
            tail = ((((_C7 * r + _C6) * r + _C5) * r + _C4) * r + _C3) * r + _C2
            y = np.float32(tail * r * r + r + one)
            # n is added to the exponent of y.
            bits = np.int32(y.view(np.int32) + (shifted.view(np.int32) << _MANTISSA_BITS))
            P[i, j] = zero if exponent < _LEAST else bits.view(np.float32)


@njit(cache=True, nogil=True, fastmath={"contract"})
def _add_moments(X, weight, shift, first, second):
    """first += sum_i w_i d_i and second += sum_i w_i d_i^2 by column, d = x - shift, in float64."""
    for i in range(X.shape[0]):
        w = weight[i]
        for j in range(X.shape[1]):
            d = np.float64(X[i, j]) - shift[j]
            first[j] += w * d
            second[j] += w * d * d


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
    """scores = K columns', four columns and two rows at a time: each number read serves several."""
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
    """by_landmark += columns K, four columns and four rows at a time; both are whole fours."""
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
