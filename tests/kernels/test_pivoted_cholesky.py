"""Landmarks by pivoted Cholesky, against the residual kernel formed whole."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from made_tables import rare_mixture
from rareclass import RankRC
from rareclass.kernels.kernels import Gaussian, Laplace, Linear, Polynomial
from rareclass.kernels.landmarks import pivoted_cholesky


def greedy(K, n_most):
    """The same choice with the residual kernel, all of it, worked out again after every pick."""
    picked = []
    for _ in range(n_most):
        A = K[:, picked]
        residual = np.diag(K - A @ np.linalg.pinv(K[np.ix_(picked, picked)], rcond=1e-13) @ A.T)
        residual = np.where(np.isin(np.arange(len(K)), picked), 0.0, residual)
        if residual.max() <= 1e-9 * np.diag(K).max():
            break
        picked.append(int(residual.argmax()))
    return picked


@pytest.mark.parametrize("kernel", [Gaussian(2.0), Laplace(1.0), Linear(), Polynomial(3.0)])
def test_the_picks_are_the_greedy_ones(kernel):
    X = np.random.default_rng(0).normal(size=(40, 3))
    K = kernel.block(X, X)
    # Ties at the start (all rows of a Gaussian are alike) go to the first row in both.
    np.testing.assert_array_equal(pivoted_cholesky(kernel, X, 12)[:3], greedy(K, 12)[:3])
    assert list(pivoted_cholesky(kernel, X, 12)) == greedy(K, 12)


@draws(50)
@given(st.integers(0, 2**32 - 1), st.integers(1, 12), st.integers(1, 4))
def test_equal_rows_are_picked_once_and_the_others_are_spanned(seed, n_distinct, copies):
    X = np.random.default_rng(seed).normal(size=(n_distinct, 3))
    many = np.repeat(X, copies, axis=0)
    picked = pivoted_cholesky(Gaussian(1.0), many, len(many))
    assert len(np.unique(many[picked], axis=0)) == len(picked) <= n_distinct
    K = Gaussian(1.0).block(many, many)
    A = K[:, picked]
    left = K - A @ np.linalg.solve(K[np.ix_(picked, picked)], A.T)
    assert np.abs(left).max() < 1e-6


def test_the_linear_kernel_needs_no_more_rows_than_features():
    X = np.random.default_rng(0).normal(size=(50, 4))
    assert len(pivoted_cholesky(Linear(), X, 50)) == 4
    assert len(pivoted_cholesky(Linear(), np.zeros((5, 2)), 5)) == 0


def test_it_chooses_landmarks():
    X, y = rare_mixture(600, 60)
    rule = ("rare", 15, "pivoted_cholesky")
    model = RankRC(landmarks=rule).fit(X, y)
    assert model.landmarks_.shape == (15, 4)
    assert (y[model.landmark_rows_] == 1).all()
    like = RankRC(landmarks=rule).fit(sparse.csr_matrix(X), y)
    np.testing.assert_allclose(np.sort(like.landmark_rows_), np.sort(model.landmark_rows_))
    assert RankRC(landmarks=("rare", 99, "pivoted_cholesky")).fit(X, y).landmarks_.shape == (60, 4)
    narrow = RankRC(landmarks=rule).fit(X.astype(np.float32), y)
    assert narrow.score(X.astype(np.float32), y) == pytest.approx(model.score(X, y), abs=0.02)
    for wrong in [("rare", 3, "best"), ("rare+majority", 3, "kmeans++"), ("rare", 2.5), ("rare",)]:
        with pytest.raises(ValueError, match="pivoted_cholesky"):
            RankRC(landmarks=wrong).fit(X, y)


def test_float32_goes_as_far_as_its_kernel_resolves():
    X = np.random.default_rng(0).normal(size=(5000, 3))
    wide = pivoted_cholesky(Gaussian(8.0), X, 60)
    narrow = pivoted_cholesky(Gaussian(8.0), X.astype(np.float32), 60)
    assert len(wide) == 60
    assert len(narrow) >= 40
    K = Gaussian(8.0).block(X, X[narrow])
    S = Gaussian(8.0).block(X[narrow], X[narrow])
    left = 1.0 - np.einsum("ij,ji->i", K, np.linalg.lstsq(S, K.T, rcond=1e-14)[0])
    assert left.max() < 1e-5


def test_its_factor_counts_against_the_memory():
    X, y = rare_mixture(600, 60)
    with pytest.raises(ValueError, match=r"factor of 60 rare rows takes 14.1 KiB.*k-means"):
        RankRC(landmarks=("rare", 30, "pivoted_cholesky"), memory="10KiB").fit(X, y)
