"""Kernels, products of their blocks, whitening and the mean width."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import linalg, sparse
from scipy.spatial.distance import cdist
from sklearn.metrics.pairwise import polynomial_kernel, rbf_kernel

from draws import draws
from rareclass import RankRC
from rareclass.findings import FindingKind, finding_of
from rareclass.kernels.expansion import expand, orthonormalise, pull_back, whiten
from rareclass.kernels.kernels import (
    KERNELS,
    CallableKernel,
    Gaussian,
    Laplace,
    Linear,
    Polynomial,
    make_kernel,
    mean_width,
)
from rareclass.rows import ArrayRows, as_source

matrix = arrays(
    np.float64,
    st.tuples(st.integers(2, 8), st.integers(1, 4)),
    elements=st.one_of(st.integers(-3, 3).map(float), st.floats(-50, 50, width=32)),
)


# Each kernel entry by entry.
DEFINITIONS = {
    Gaussian: lambda k, X, Z: rbf_kernel(X, Z, gamma=1 / k.width**2),
    Laplace: lambda k, X, Z: np.exp(-cdist(X, Z) / k.width),
    Linear: lambda k, X, Z: X @ Z.T,
    Polynomial: lambda k, X, Z: polynomial_kernel(
        X, Z, degree=k.degree, gamma=1 / k.width**2, coef0=k.offset
    ),
}
KINDS = [Gaussian(1.7), Laplace(2.0), Linear(), Polynomial(3.0), Polynomial(2.0, 2, 0.5)]


def test_every_kernel_has_its_definition():
    assert {*KERNELS.values()} == DEFINITIONS.keys() == {type(kernel) for kernel in KINDS}


def test_gaussian_in_float32_is_exact_to_its_last_digits():
    """From distances that float32 holds: the exponential alone is judged, zero below exp(-87)."""
    steps = np.arange(0.0, 100.0, 0.125)  # squares have no rounding error
    X = np.zeros((1, 1), dtype=np.float32)
    Z = np.concatenate([steps, -steps]).astype(np.float32)[:, None]  # with their mean at zero
    for width in (1.0, 8.0, 1024.0):
        K = Gaussian(width).block(X, Z)[0]
        true = np.exp(-((Z[:, 0].astype(np.float64) / width) ** 2))
        assert K.dtype == np.float32
        assert (K[true < 1e-38] == 0.0).all()
        np.testing.assert_allclose(K[true > 2e-38], true[true > 2e-38], rtol=3e-7)
    assert Gaussian(1e-15).block(X, Z)[0].tolist() == (Z[:, 0] == 0.0).tolist()
    assert (Gaussian(1e30).block(X, Z) == 1.0).all()


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
@draws(20)
@given(matrix)
def test_a_row_has_the_same_kernel_alone_as_among_many(kernel, X):
    many = kernel.block(X, X)
    # As below: sqrt turns a rounding error e of a squared distance into sqrt(e).
    digits = 1e-6 if isinstance(kernel, Laplace) else 1e-9
    for k in range(len(X)):
        alone = kernel.block(X[k : k + 1], X)[0]
        np.testing.assert_allclose(alone, many[k], rtol=1e-7, atol=digits * np.abs(many).max())


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
@draws(40)
@given(matrix)
def test_block_is_the_definition_and_positive_semi_definite(kernel, X):
    K = kernel.block(X, X)
    wanted = DEFINITIONS[type(kernel)](kernel, X, X)
    # sqrt turns a rounding error e of a squared distance into sqrt(e): Laplace has fewer digits.
    digits = 1e-6 if isinstance(kernel, Laplace) else 1e-9
    np.testing.assert_allclose(K, wanted, rtol=1e-7, atol=digits * np.abs(wanted).max())
    np.testing.assert_allclose(kernel.diag(X), np.diag(wanted), rtol=1e-9, atol=1e-9)
    smallest = np.linalg.eigvalsh(0.5 * (K + K.T))[0]
    assert smallest >= -len(X) * digits * np.abs(wanted).max()


@pytest.mark.parametrize("kernel", KINDS, ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_rows_and_dtypes_give_the_same_block(kernel, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(20, 6)) * (rng.random((20, 6)) < 0.4)).astype(dtype)
    Z = X[:5]
    dense = kernel.block(X, Z)
    thin = kernel.block(sparse.csr_array(X), sparse.csr_array(Z))
    tolerance = 1e-3 if dtype == np.float32 else 1e-7
    assert dense.dtype == thin.dtype == dtype
    np.testing.assert_allclose(dense, thin, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(kernel.diag(sparse.csr_array(X)), kernel.diag(X), rtol=tolerance)


@pytest.mark.parametrize("kernel", [Gaussian(1.0), Laplace(1.0)], ids=repr)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_equal_rows_far_from_the_origin_have_similarity_one(kernel, dtype):
    X = (np.random.default_rng(0).normal(size=(6, 3)) + 1e3).astype(dtype)
    X = np.vstack([X, X])
    np.testing.assert_array_equal(np.diag(kernel.block(X, X)), 1.0)
    np.testing.assert_array_equal(np.diag(kernel.block(X[:6], X[6:])), 1.0)


@draws(50)
@given(matrix, st.integers(1, 5))
def test_mean_width_is_the_mean_over_all_pairs(X, block_rows):
    weight = 1.0 + np.arange(len(X)) % 3
    pairs = weight[:, None] * weight[None, :]
    wanted = (pairs * cdist(X, X) ** 2).sum() / pairs.sum()
    for data in (X, sparse.csr_array(X)):
        rows = ArrayRows(as_source(data), None, weight, block_rows=block_rows)
        shift = X[0] if data is X else None
        found = mean_width(rows, shift) ** 2
        assert found == pytest.approx(wanted, rel=1e-6) or wanted <= 1e-9 * np.abs(X).max() ** 2


def test_make_kernel_reads_names_objects_and_functions():
    assert make_kernel("gaussian", 2.0) == Gaussian(2.0)
    assert make_kernel("linear", 2.0) == Linear()
    own = Polynomial(1.0, degree=2)
    assert make_kernel(own, 9.0) is own
    assert isinstance(make_kernel(lambda X, Z: X @ Z.T, 1.0), CallableKernel)
    for wrong in ("rbf", 3, None):
        with pytest.raises(ValueError, match=sorted(KERNELS)[0]):
            make_kernel(wrong, 1.0)


def test_a_callable_is_checked():
    X = np.eye(3)
    with pytest.raises(ValueError, match=r"shape \(3,\)"):
        CallableKernel(lambda X, Z: np.ones(len(X))).block(X, X)
    with pytest.raises(ValueError, match="not finite"):
        CallableKernel(lambda X, Z: np.full((len(X), len(Z)), np.nan)).block(X, X)
    np.testing.assert_array_equal(CallableKernel(lambda X, Z: X @ Z.T).diag(2 * X), [4, 4, 4])


@draws(50)
@given(matrix, st.integers(1, 3))
def test_whitening_makes_the_kernel_the_identity_and_drops_copies(X, copies):
    K = Gaussian(2.0).block(X, X)
    K = 0.5 * (K + K.T)
    once = whiten(K, np.dtype(np.float64))
    index = np.tile(np.arange(len(X)), copies)
    T = whiten(K[np.ix_(index, index)], np.dtype(np.float64))
    assert T.shape[1] <= len(X)
    assert T.shape[1] == once.shape[1] or np.linalg.eigvalsh(K)[0] < 1e-9
    error = np.abs(T.T @ K[np.ix_(index, index)] @ T - np.eye(T.shape[1]))
    # A rounding error E of the eigenvalues shows as T' E T.
    norms = np.linalg.norm(T, axis=0)
    assert (error <= 50 * len(index) * 2.2e-16 * len(index) * np.outer(norms, norms)).all()


@draws(50)
@given(matrix, st.integers(1, 2), st.sampled_from([0.01, 0.5, 2.0, 1e3]))
def test_coordinates_of_a_fold_span_what_whitening_does(X, copies, width):
    X = np.tile(X, (copies, 1))
    K = Gaussian(width).block(X, X)
    K = 0.5 * (K + K.T)
    for dtype in (np.float32, np.float64):
        T, white = orthonormalise(K, np.dtype(dtype)), whiten(K, np.dtype(dtype))
        assert T.shape == white.shape
        # The projection on the span; a rounding error E of eigenvalues shows as T' E T.
        allowed = 50 * len(K) ** 2 * 2.2e-16 * (white**2).sum()
        np.testing.assert_allclose(K @ T @ T.T @ K, K @ white @ white.T @ K, atol=1e-9 + allowed)
        np.testing.assert_allclose(T.T @ K @ T, np.eye(T.shape[1]), atol=1e-9 + allowed)


def test_coordinates_of_a_fold_need_no_eigenvectors_where_every_direction_counts(monkeypatch):
    monkeypatch.delattr(linalg, "eigh")
    X = np.random.default_rng(0).standard_normal((30, 5))
    K = Gaussian(1.0).block(X, X)
    T = orthonormalise(K, np.dtype(np.float32))
    np.testing.assert_allclose(T.T @ K @ T, np.eye(30), atol=1e-10)


def test_whitening_of_a_zero_kernel_has_no_direction():
    assert whiten(np.zeros((3, 3)), np.dtype(np.float64)).shape == (3, 0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@draws(60)
@given(st.integers(1, 13), st.integers(1, 19), st.one_of(st.none(), st.integers(1, 40)), st.data())
def test_products_are_those_of_matrices(dtype, n, m, n_columns, data):
    """Whatever is left over when rows and columns are taken in twos and fours."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    K = rng.normal(size=(n, m)).astype(dtype)
    shape = () if n_columns is None else (n_columns,)
    coefficients, by_row = rng.normal(size=(m, *shape)), rng.normal(size=(n, *shape))
    by_row[rng.random(n) < 0.5] = 0.0
    for order in "CF":
        wide = K.astype(np.float64)
        found = expand(K, np.asarray(coefficients, order=order))
        np.testing.assert_allclose(found, wide @ coefficients, rtol=1e-12, atol=1e-12)
        found = pull_back(K, np.asarray(by_row, order=order))
        np.testing.assert_allclose(found, wide.T @ by_row, rtol=1e-12, atol=1e-12)


def test_one_column_in_other_units_is_named():
    random = np.random.default_rng(0)
    X = random.normal(size=(200, 4))
    y = np.arange(200) % 10 == 0
    X[:, 2] *= 1e6
    with pytest.warns(UserWarning, match="column 2 makes up 100.0000% of the squared") as caught:
        RankRC().fit(X, y)
    (finding,) = [finding_of(each.message) for each in caught]
    assert (finding.kind, finding.values["column"]) == (FindingKind.ONE_COLUMN_DECIDES, 2)
    X[:, 2] /= 1e5  # ten times the others is a matter of taste
    RankRC().fit(X, y)
