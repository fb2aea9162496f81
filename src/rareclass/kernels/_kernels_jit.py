"""One sweep from inner products to squared distances, or on to the Gaussian kernel.

A block is swept while it is in cache. The same in numpy takes five sweeps and a mask, and one more
for the exponentials: four times the time of the matrix product. Another sweep is for the moments
of rows, which make the mean width.
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
    """P = scale (x + z - 2 P), row by row in place, in the dtype of P.

    What is left of |x|^2 + |z|^2 - 2 x.z below its rounding error is a distance of zero.
    """
    zero, two = P.dtype.type(0.0), P.dtype.type(2.0)
    noise = P.dtype.type(8.0 * np.finfo(P.dtype).eps)
    for i in range(P.shape[0]):
        for j in range(P.shape[1]):
            total = x[i] + z[j]
            distance = total - two * P[i, j]
            P[i, j] = zero if distance < noise * total else scale * distance


@njit(cache=True, nogil=True, fastmath={"contract"})
def _to_gaussian(P, x, z, scale):
    """P = exp(scale (x + z - 2 P)) in place, in float32, for `scale` below zero.

    Distances as in `_to_squared_distances`. The exponential has a relative error of 1e-7, and is
    zero below exp(-87). It is a polynomial without branches, of which LLVM makes vectors; its own
    exponentials are calls, one number at a time.
    """
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
