"""Kernel blocks and their products where an array library has them: the array API alone.

The same formulas as `kernels` and `expansion`, which work in numpy and compiled loops. Kernels in
the dtype of the rows, products in float64.
"""

from functools import singledispatch
from typing import Any

from rareclass.array_api import like, namespace, to_numpy
from rareclass.kernels.kernels import (
    FeatureScaled,
    Gaussian,
    Kernel,
    Laplace,
    Linear,
    Polynomial,
)


@singledispatch
def kernel_block(kernel: Kernel, X: Any, Z: Any) -> Any:
    """k(x, z) for all pairs: shape (n_x, n_z).

    A kernel of somebody's own knows numpy alone: it is worked out there, and sent.
    """
    return like(kernel.block(to_numpy(X), to_numpy(Z)), X)


@kernel_block.register
def _(kernel: Gaussian, X: Any, Z: Any) -> Any:
    return namespace(X).exp(squared_distances(X, Z) * (-1.0 / kernel.width**2))


@kernel_block.register
def _(kernel: Laplace, X: Any, Z: Any) -> Any:
    xp = namespace(X)
    return xp.exp(xp.sqrt(squared_distances(X, Z)) * (-1.0 / kernel.width))


@kernel_block.register
def _(kernel: Linear, X: Any, Z: Any) -> Any:
    return X @ Z.T


@kernel_block.register
def _(kernel: Polynomial, X: Any, Z: Any) -> Any:
    return ((X @ Z.T) * (1.0 / kernel.width**2) + kernel.offset) ** kernel.degree


@kernel_block.register
def _(kernel: FeatureScaled, X: Any, Z: Any) -> Any:
    xp = namespace(X)
    used = kernel.scales.nonzero()[0]
    columns, scales = like(used, X), xp.astype(like(kernel.scales[used], X), X.dtype)
    inner = [xp.take(rows, columns, axis=1) * scales for rows in (X, Z)]
    return kernel_block(kernel.kernel, *inner)


def squared_distances(X: Any, Z: Any) -> Any:
    """All squared distances, from one matrix product; those below its rounding error are zero.

    Distances do not change with the origin; near the points fewer digits cancel.
    """
    xp = namespace(X)
    centre = xp.mean(Z, axis=0)
    X, Z = X - centre, Z - centre
    total = xp.sum(X * X, axis=1)[:, None] + xp.sum(Z * Z, axis=1)[None, :]
    distances = total - 2.0 * (X @ Z.T)
    noise = 8.0 * float(xp.finfo(X.dtype).eps)
    return xp.where(distances < noise * total, xp.zeros_like(distances), distances)


def expand(K: Any, coefficients: Any) -> Any:
    """Values ``K @ coefficients``; coefficients may have several columns."""
    return _in_float64(K) @ coefficients


def pull_back(K: Any, by_row: Any) -> Any:
    """``K.T @ by_row``: what the rows of a block ask of each landmark."""
    return _in_float64(K).T @ by_row


def _in_float64(K: Any) -> Any:
    xp = namespace(K)
    return xp.astype(K, xp.float64, copy=False)
