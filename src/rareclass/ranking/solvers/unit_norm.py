"""Coordinates in which the penalty on absolute coefficients treats all landmarks alike."""

import numpy as np


def unit_norm(K: np.ndarray, dtype: np.dtype) -> np.ndarray:
    r"""A matrix T that makes the functions of all landmarks equally large.

    It is diagonal with :math:`T_{rr} = k(z_r, z_r)^{-1/2}`: :math:`k(z_r, \cdot)` has the norm
    :math:`k(z_r, z_r)^{1/2}` in the space of the kernel. With
    :math:`\beta = T w` an absolute weight :math:`|w_r|` is the norm of what landmark r adds to f,
    whatever its kernel's scale; for the Gaussian and Laplace kernels T is the identity.

    `K` is the kernel between the landmarks; T is zero where a landmark's function is zero. `dtype`
    is not used: these coordinates do not magnify rounding errors.
    """
    size = np.sqrt(np.maximum(np.diag(K), 0.0))
    return np.diag(np.divide(1.0, size, out=np.zeros_like(size), where=size > 0.0))
