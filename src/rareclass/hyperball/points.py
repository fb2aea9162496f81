"""Rows as points, wherever a ball around them lives: the only geometry that the solver knows."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse


@dataclass(frozen=True)
class Points:
    r"""Coordinates of rows, and how far the rows lie from the space that these span.

    A centre c lies in the space of the coordinates, so that the squared distance of row i to it is
    :math:`r_i + \|z_i - c\|^2` without any approximation. Without a kernel r is zero and z_i is the
    row; with one, z_i is the projection of :math:`\phi(x_i)` on the span of the landmarks and
    :math:`r_i = k(x_i, x_i) - \|z_i\|^2`.

    Attributes
    ----------
    features : ndarray or CSR of shape (n, p), float64
        The coordinates z.
    residual : ndarray of shape (n,)
        Squared distances r to the space of the coordinates.
    """

    features: Any
    residual: np.ndarray

    @property
    def n_rows(self) -> int:
        """Number of points."""
        return self.features.shape[0]

    def squared_norms(self) -> np.ndarray:
        r"""Squared distance of each point to the origin, :math:`r_i + \|z_i\|^2`."""
        Z = self.features
        if sparse.issparse(Z):
            return self.residual + np.asarray(Z.multiply(Z).sum(axis=1)).ravel()
        return self.residual + np.einsum("ij,ij->i", Z, Z)

    def squared_distances(self, center: np.ndarray) -> np.ndarray:
        r"""Squared distance of each point to a centre: :math:`r_i + \|z_i - c\|^2`, shape (n,)."""
        Z = self.features
        if sparse.issparse(Z):
            distances = self.squared_norms() - 2.0 * (Z @ center) + center @ center
            return np.maximum(distances, 0.0)
        apart = Z - center
        return self.residual + np.einsum("ij,ij->i", apart, apart)

    def combine(self, weights: np.ndarray) -> np.ndarray:
        r"""The combination :math:`\sum_i w_i z_i`, shape (p,)."""
        return self.features.T @ weights

    def take(self, index: np.ndarray) -> "Points":
        """Some of the points, in the order of `index`."""
        return Points(self.features[index], self.residual[index])
