"""Kernels by the array API equal those by numpy and compiled sweeps."""

import array_api_strict as xp
import numpy as np
import pytest

from rareclass.kernels.expansion import expand, pull_back, whiten
from rareclass.kernels.kernels import CallableKernel, FeatureScaled, make_kernel
from rareclass.kernels.on_device import kernel_block
from rareclass.rows.devices import ArrayLibrary

KERNELS = [
    *(make_kernel(name, 1.5) for name in ("gaussian", "laplace", "linear", "polynomial")),
    FeatureScaled(make_kernel("gaussian", 0.8), np.array([0.5, 0.0, 2.0])),
    CallableKernel(lambda A, B: 1.0 + A @ B.T),
]


@pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: type(kernel).__name__)
@pytest.mark.parametrize(("dtype", "tol"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_a_block_is_the_same_by_the_array_api(kernel, dtype, tol):
    rng = np.random.default_rng(0)
    Z = (100.0 + rng.normal(size=(7, 3))).astype(dtype)
    X = np.concatenate([Z[:2], (100.0 + rng.normal(size=(9, 3))).astype(dtype)])
    K, wanted = kernel_block(kernel, xp.asarray(X), xp.asarray(Z)), kernel.block(X, Z)
    assert K.dtype == {np.float64: xp.float64, np.float32: xp.float32}[dtype]
    np.testing.assert_allclose(np.asarray(K), wanted, rtol=tol)
    if type(kernel).__name__ in ("Gaussian", "Laplace"):
        assert [float(K[k, k]) for k in range(2)] == [1.0, 1.0]  # equal rows are at no distance


@pytest.mark.parametrize("n_columns", [None, 3])
def test_products_are_in_float64(n_columns):
    rng = np.random.default_rng(0)
    K = rng.normal(size=(50, 8)).astype(np.float32)
    shape = () if n_columns is None else (n_columns,)
    beta, by_row = rng.normal(size=(8, *shape)), rng.normal(size=(50, *shape))
    found = expand(xp.asarray(K), xp.asarray(beta)), pull_back(xp.asarray(K), xp.asarray(by_row))
    wide = K.astype(np.float64)
    for one, wanted in zip(found, (wide @ beta, wide.T @ by_row), strict=True):
        np.testing.assert_allclose(np.asarray(one), wanted, atol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_whitening_keeps_the_same_directions(dtype):
    Z = np.random.default_rng(0).normal(size=(30, 3))
    Z = np.concatenate([Z, Z[:5], Z[:3] + 1e-9])  # copies, and nearly
    K = make_kernel("gaussian", 2.0).block(Z, Z)
    here, there = (
        whiten(K, np.dtype(dtype), at) for at in (None, ArrayLibrary("array_api_strict"))
    )
    assert there.shape == here.shape
    np.testing.assert_allclose(there.T @ K @ there, np.eye(here.shape[1]), atol=1e-8)
    np.testing.assert_allclose(K @ there @ there.T @ K, K @ here @ here.T @ K, atol=1e-8)


def test_full_memory_is_told_with_the_size_of_the_matrix():
    class Full(ArrayLibrary):
        def put(self, array):
            raise MemoryError("wanted 8 bytes")

        def __str__(self):
            return "small"

    with pytest.raises(
        ValueError, match=r"small is full \(wanted 8 bytes\): it was to work on a m"
    ):
        whiten(np.eye(3), np.dtype(float), Full("numpy"))
