r"""How kernel values change with the squared scales of the features.

With :math:`s_d = a_d^2`, kernels of a distance have
:math:`\partial k(x, z) / \partial s_d = S(x, z) (x_d - z_d)^2`, kernels of an inner product
:math:`S(x, z) x_d z_d`: one matrix S serves all features, which then cost a matrix product.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.kernels.kernels import (
    FeatureScaled,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Matrix,
    Polynomial,
)

# Entries of a product of features and landmarks that are worked out at once.
_MOST_ENTRIES = 2**22


def _gaussian(kernel: Gaussian, X: Matrix, Z: Matrix, K: np.ndarray) -> np.ndarray:
    return K * (-1.0 / kernel.width**2)


def _laplace(kernel: Laplace, X: Matrix, Z: Matrix, K: np.ndarray) -> np.ndarray:
    # -k / (2 sigma distance), where the distance is -sigma log k. Where it is zero, or k is, so
    # is the product with a squared difference.
    inside = (K > 0.0) & (K < 1.0)
    logarithm = np.log(K, out=np.ones_like(K), where=inside)
    return np.where(inside, K / (2.0 * kernel.width**2 * logarithm), 0.0)


def _linear(kernel: Linear, X: Matrix, Z: Matrix, K: np.ndarray) -> np.ndarray:
    return np.ones_like(K)


def _polynomial(kernel: Polynomial, X: Matrix, Z: Matrix, K: np.ndarray) -> np.ndarray:
    lower = Polynomial(kernel.width, kernel.degree - 1, kernel.offset)
    return lower.block(X, Z) * (kernel.degree / kernel.width**2)


_SLOPES: dict[type, tuple[Callable[..., np.ndarray], bool]] = {
    Gaussian: (_gaussian, True),
    Laplace: (_laplace, True),
    Linear: (_linear, False),
    Polynomial: (_polynomial, False),
}


def has_slopes(kernel: Kernel) -> bool:
    """Whether the derivative of a kernel by the scales is known."""
    return type(kernel) in _SLOPES


@dataclass(frozen=True, eq=False)
class KernelSlopes:
    r"""Sums of :math:`c_i b_r \, \partial k(x_i, z_r) / \partial s_d` over rows and landmarks."""

    kernel: FeatureScaled
    landmarks: Matrix  # shape (n_landmarks, n_features), in their own units, not scaled

    def sums(
        self, X: Matrix, K: np.ndarray, by_row: np.ndarray, by_landmark: np.ndarray
    ) -> np.ndarray:
        """The sums for several (c, b), by feature: shape (n_pairs, n_features).

        X, of shape (n, n_features), are rows in their own units, K, of shape (n, n_landmarks),
        their kernel; c has a column for each pair, shape (n, n_pairs), and b has shape
        (n_landmarks, n_pairs).

        Cost: as much as the kernel, for each pair.
        """
        slope, is_distance = _SLOPES[type(self.kernel.kernel)]
        Z = self.landmarks.astype(np.float64)
        X, K = X.astype(np.float64), K.astype(np.float64)
        S = slope(self.kernel.kernel, self.kernel.scaled(X), self.kernel.scaled(Z), K)
        if is_distance and not sparse.issparse(X):
            # Differences do not change with the origin; near the landmarks fewer digits cancel.
            centre = Z.mean(axis=0)
            X, Z = X - centre, Z - centre
        result = np.zeros((by_row.shape[1], X.shape[1]))
        for k, (c, b) in enumerate(zip(by_row.T, by_landmark.T, strict=True)):
            rows = slice(None) if c.all() else np.flatnonzero(c)
            result[k] = _products(X[rows], Z, S[rows], c[rows], b)
            if is_distance:
                squares = _squares(X[rows], c[rows] * (S[rows] @ b)) + _squares(Z, b * (c @ S))
                result[k] = squares - 2.0 * result[k]
        return result

    def gradients(self, X: np.ndarray, K: np.ndarray, by_landmark: np.ndarray) -> np.ndarray:
        r"""Gradient by x of :math:`\sum_r b_r k(x, z_r)` at dense rows: shape (n, n_features).

        Kernels of a distance alone: :math:`2 s_d \sum_r b_r S(x, z_r) (x_d - z_{rd})`.

        Cost: as much as the kernel.
        """
        slope, is_distance = _SLOPES[type(self.kernel.kernel)]
        if not is_distance:
            raise ValueError(f"no gradient for {type(self.kernel.kernel).__name__}.")
        Z, X = self.landmarks.astype(np.float64), X.astype(np.float64)
        S = slope(self.kernel.kernel, self.kernel.scaled(X), self.kernel.scaled(Z), K) * by_landmark
        centre = Z.mean(axis=0)
        X, Z = X - centre, Z - centre
        return 2.0 * self.kernel.scales**2 * (S.sum(axis=1)[:, None] * X - S @ Z)


def _products(X: Matrix, Z: Matrix, S: np.ndarray, c: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Sums of c_i b_r S_ir x_id z_rd, some landmarks at a time."""
    total = np.zeros(X.shape[1])
    size = max(1, _MOST_ENTRIES // max(X.shape[1], 1))
    for start in range(0, S.shape[1], size):
        part = slice(start, start + size)
        landmarks = Z[part].toarray() if sparse.issparse(Z) else Z[part]
        pulled: Any = X.T @ (c[:, None] * S[:, part])
        total += np.einsum("dr,rd,r->d", pulled, landmarks, b[part])
    return total


def _squares(X: Matrix, weight: np.ndarray) -> np.ndarray:
    """Weighted sums of squares by column."""
    if sparse.issparse(X):
        return np.asarray(X.multiply(X).T @ weight).ravel()
    return weight @ (X * X)
