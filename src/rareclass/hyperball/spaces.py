"""Where a ball lives: among the rows themselves, or in the feature space of a kernel."""

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from scipy import sparse

from rareclass.hyperball.ball_problem import Points
from rareclass.kernels.expansion import whiten
from rareclass.kernels.kernels import Kernel, Matrix
from rareclass.kernels.landmarks import pivoted_cholesky
from rareclass.rows import Block


class Space(Protocol):
    """Turns rows into points, and measures how far rows are from a centre among these."""

    def points(self, X: Matrix) -> Points:
        """The rows as the solver sees them."""
        ...

    def squared_distances(self, X: Matrix, center: np.ndarray) -> np.ndarray:
        """Squared distance of every row of X to a centre given in coordinates, shape (n,)."""
        ...


@dataclass(frozen=True)
class InputSpace:
    """The rows themselves, seen from a point near them: far from zero, squares lose digits.

    The origin is subtracted from dense rows; it is None for sparse ones, which it would fill.
    """

    origin: np.ndarray | None

    def points(self, X: Matrix) -> Points:
        """Rows less the origin, in float64."""
        residual = np.zeros(X.shape[0])
        if sparse.issparse(X):
            return Points(sparse.csr_array(X, dtype=np.float64), residual)
        features = X.astype(np.float64)
        return Points(features if self.origin is None else features - self.origin, residual)

    def squared_distances(self, X: Matrix, center: np.ndarray) -> np.ndarray:
        """Squared distance of every row of X to the centre."""
        center = self.input_center(center)
        if sparse.issparse(X):  # rows that were not shifted, from a centre that was
            return self.points(X).squared_distances(center)
        apart = X - center
        return np.einsum("ij,ij->i", apart, apart)

    def input_center(self, center: np.ndarray) -> np.ndarray:
        """A centre in the units of the features."""
        return center if self.origin is None else self.origin + center


@dataclass(frozen=True)
class KernelSpace:
    r"""The span of some landmarks in the feature space of a kernel.

    The coordinates of a row are :math:`z(x) = T' k(L, x)` with :math:`T' K_{LL} T = I`, T being the
    whitener; the centre with coordinates c is :math:`\sum_l \beta_l \phi(x_l)`, :math:`\beta = T
    c`.
    """

    kernel: Kernel
    landmarks: Matrix  # (n_landmarks, n_features)
    whitener: np.ndarray  # (n_landmarks, rank)

    def points(self, X: Matrix) -> Points:
        """Projections on the span of the landmarks, and what they leave out."""
        X = X.astype(np.float64)
        features = self.kernel.block(X, self.landmarks) @ self.whitener
        residual = self.kernel.diag(X) - np.einsum("ij,ij->i", features, features)
        return Points(features, np.maximum(residual, 0.0))

    def squared_distances(self, X: Matrix, center: np.ndarray) -> np.ndarray:
        r""":math:`k(x, x) - 2 \sum_l \beta_l k(x_l, x) + \|c\|^2` for every row of X."""
        X = X.astype(np.float64)
        inner = self.kernel.block(X, self.landmarks) @ self.coefficients(center)
        return np.maximum(self.kernel.diag(X) - 2.0 * inner + center @ center, 0.0)

    def coefficients(self, center: np.ndarray) -> np.ndarray:
        """Beta: the weight of each landmark in a centre."""
        return self.whitener @ center


def kernel_space(kernel: Kernel, X: Matrix, first: np.ndarray, n_landmarks: int) -> KernelSpace:
    """The span of all rows of X where they are few, else of those that span the others best.

    X (n, n_features) holds the rows that enter the optimisation; `first` are rows of it that are
    landmarks in any case, such as the rare ones; half of all at the most. With as many landmarks as
    rows the centre is exact. Cost: O(n n_landmarks^2) time, 8 n n_landmarks bytes.
    """
    # A sparse array, and no sparse matrix: means of the latter are matrices, of two dimensions.
    X = sparse.csr_array(X, dtype=np.float64) if sparse.issparse(X) else X.astype(np.float64)
    chosen = np.arange(X.shape[0])
    if len(chosen) > n_landmarks:
        first = first[: n_landmarks // 2]
        others = pivoted_cholesky(kernel, X, n_landmarks - len(first))
        chosen = np.union1d(first, others)
    landmarks = X[chosen]
    whitener = whiten(kernel.block(landmarks, landmarks), np.dtype(np.float64))
    return KernelSpace(kernel, landmarks, whitener)


def block_distances(block: Block, space: Any, center: np.ndarray) -> np.ndarray:
    """Squared distances of the rows of a block: what `Rows.map` is given."""
    return space.squared_distances(block.X, center)
