"""A kernel on features that are each multiplied by a scale of their own."""

from dataclasses import dataclass

import numpy as np
from scipy import sparse

from rareclass.kernels.kernels import Kernel, Matrix


@dataclass(frozen=True, eq=False)
class FeatureScaled:
    r"""The kernel :math:`k(u, v) = k_0(a \circ u, a \circ v)` for scales a of the features.

    Scales are at or above 0, one for each feature. A larger one makes the kernel look at its
    feature more closely; a feature of scale 0 is not read at all.

    Raises `ValueError` when a scale is negative or not finite, or there is not one for each column.

    Cost: that of :math:`k_0` on the features in use, and a copy of these columns of the block.

    >>> from rareclass.kernels.kernels import Linear
    >>> kernel = FeatureScaled(Linear(), np.array([2.0, 0.0]))
    >>> kernel.block(np.array([[1.0, 5.0]]), np.array([[3.0, 7.0]]))
    array([[12.]])
    """

    kernel: Kernel
    scales: np.ndarray

    def __post_init__(self) -> None:
        scales = np.asarray(self.scales, dtype=np.float64)
        if scales.ndim != 1:
            raise ValueError(f"scales has shape {scales.shape}: pass one number a feature.")
        wrong = ~(np.isfinite(scales) & (scales >= 0.0))
        if wrong.any():
            column = int(np.argmax(wrong))
            raise ValueError(
                f"scales holds {scales[column]} for column {column}: scales are finite and at or "
                "above 0."
            )
        object.__setattr__(self, "scales", scales)

    def scaled(self, X: Matrix) -> Matrix:
        """The features in use of the rows of X, times their scales, in the dtype of X."""
        if X.shape[1] != len(self.scales):
            raise ValueError(f"X has {X.shape[1]} columns, scales has {len(self.scales)} entries.")
        used = np.flatnonzero(self.scales)
        factors = self.scales[used].astype(X.dtype, copy=False)
        if not sparse.issparse(X):
            return X[:, used] * factors
        X = sparse.csr_array(X)[:, used]
        return sparse.csr_array((X.data * factors[X.indices], X.indices, X.indptr), X.shape)

    def block(self, X: Matrix, Z: Matrix) -> np.ndarray:
        """k(x, z) for all pairs: shape (n_x, n_z)."""
        return self.kernel.block(self.scaled(X), self.scaled(Z))

    def diag(self, X: Matrix) -> np.ndarray:
        """k(x, x) of every row."""
        return self.kernel.diag(self.scaled(X))
