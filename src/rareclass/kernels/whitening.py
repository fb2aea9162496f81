"""Whitened landmark coordinates: equation (14) of the paper, with its pseudo-inverse."""

from collections.abc import Callable

import numpy as np
from scipy import linalg

Coordinates = Callable[[np.ndarray, np.dtype], np.ndarray]
"""Makes T in beta = T w from the kernel between the landmarks and the dtype of kernel blocks."""

# Rounding errors of eigenvalues were seen at a few times n eps max(Lambda) on repeated landmarks.
_SAFETY = 16.0


def whiten(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A matrix T with :math:`T' K T = I`, one column for every direction that K resolves.

    With the eigendecomposition :math:`K = U \Lambda U'`, :math:`T = U \Lambda^{-1/2}` over the
    eigenvalues above a cut-off. Coefficients are then :math:`\beta = T w`, the
    regulariser :math:`\beta' K \beta` is :math:`\|w\|^2`, and :math:`k(x, \cdot) T` are the
    coordinates of x in the span of the landmarks (the Nyström features).

    Duplicated or nearly equal landmarks make K singular; their common directions are kept once.

    `dtype` is what the kernel blocks of other rows are stored in. An eigenvalue l turns their
    rounding error eps k(x, x) into an error eps k(x, x) / sqrt(l) of a coordinate: l must be above
    eps times the mean of k(x, x), which keeps that under sqrt(eps). It must also be above the
    rounding error of the eigenvalues themselves, ``16 n eps64 max(Lambda)``.

    K and the columns of T are in float64; columns come in order of decreasing eigenvalue, and none
    when K is zero.

    Cost: O(n_landmarks^3) time, three matrices of that size.
    """
    if not len(K):
        return np.empty((0, 0))
    values, vectors = linalg.eigh(K, check_finite=False)
    values, vectors = values[::-1], vectors[:, ::-1]
    scale = max(float(np.trace(K)) / len(K), 0.0)
    noise = _SAFETY * len(K) * np.finfo(np.float64).eps * max(values[0], 0.0)
    rank = int(np.count_nonzero(values > max(np.finfo(dtype).eps * scale, noise)))
    T = vectors[:, :rank] / np.sqrt(values[:rank])
    # An eigenvector has no sign of its own: its largest entry is made positive.
    signs = np.sign(T[np.abs(T).argmax(axis=0), np.arange(rank)]) if rank else 1.0
    return np.ascontiguousarray(T * signs)
