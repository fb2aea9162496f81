"""One sweep from inner products to squared distances, while the block is in cache.

The same in numpy takes five sweeps and a mask: four times the time of the matrix product.
"""

import numpy as np

from rareclass.compiling import njit


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
