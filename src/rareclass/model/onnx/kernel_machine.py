"""Kernel expansions: f(x) = sum_r beta_r k(z_r, x), in double precision."""

from typing import Any

import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind, InputError
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import FeatureScaled, Gaussian, Laplace, Linear, Polynomial
from rareclass.model.onnx.graph import Tensor

# What is left of |x|^2 + |z|^2 - 2 x.z below this part of it is rounding: as in the library.
_NOISE = 8.0 * np.finfo(np.float64).eps


def expanded(X: Tensor, expansion: KernelExpansion, coefficients: np.ndarray) -> Tensor:
    """Values of the expansion, of shape (n_rows,) or (n_rows, n_functions) as coefficients have.

    Distances are those of the library, from one matrix product of centred rows: as exact, and
    memory for n_rows x n_landmarks numbers.

    Raises `InputError` for landmarks that are sparse and kernels that are no formula.
    """
    if sparse.issparse(expansion.landmarks):
        raise InputError(
            "This model was learned from sparse rows, which ONNX has no tensors for.",
            "Learn it from dense rows, X.toarray(), if these fit in memory.",
            ErrorKind.UNSUPPORTED,
        )
    if not expansion.n_landmarks:  # a sparse model may have none
        return X.graph.op("ReduceSum", X, np.array([1]), keepdims=0) * 0.0
    Z = np.asarray(expansion.landmarks, dtype=np.float64)
    K = _kernel(X, Z, expansion.kernel)
    return K @ np.asarray(coefficients, dtype=np.float64)


def _kernel(X: Tensor, Z: np.ndarray, kernel: Any) -> Tensor:
    """k(x, z), of shape (n_rows, n_landmarks)."""
    if isinstance(kernel, FeatureScaled):
        used = np.flatnonzero(kernel.scales)
        factors = kernel.scales[used]
        return _kernel(X.columns(used) * factors, Z[:, used] * factors, kernel.kernel)
    if isinstance(kernel, Gaussian):
        return (_squared_distances(X, Z) * (-1.0 / kernel.width**2)).exp()
    if isinstance(kernel, Laplace):
        distances = X.graph.op("Sqrt", _squared_distances(X, Z))
        return (distances * (-1.0 / kernel.width)).exp()
    if isinstance(kernel, Linear):
        return X @ Z.T
    if isinstance(kernel, Polynomial):
        base = X @ Z.T * (1.0 / kernel.width**2) + kernel.offset
        return X.graph.op("Pow", base, np.float64(kernel.degree))
    raise InputError(
        f"The kernel {type(kernel).__name__} is code of its own, which ONNX cannot hold.",
        "Those by name are formulas: gaussian, laplace, linear, polynomial.",
        ErrorKind.UNSUPPORTED,
    )


def _squared_distances(X: Tensor, Z: np.ndarray) -> Tensor:
    centre = Z.mean(axis=0)
    X, Z = X - centre, Z - centre
    norms = X.graph.op("ReduceSumSquare", X, np.array([1]))
    total = norms + np.einsum("ij,ij->i", Z, Z)
    distances = total - (X @ Z.T) * 2.0
    return distances.where(distances > total * _NOISE, 0.0)
