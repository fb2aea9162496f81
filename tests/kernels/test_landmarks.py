"""Which rows are landmarks: every rule against what it is to choose."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.cluster import kmeans_plusplus

from draws import draws
from made_tables import rare_mixture
from rareclass import RankRC
from rareclass.kernels import landmarks as module
from rareclass.kernels.kernels import Gaussian, Laplace, Linear, Polynomial
from rareclass.kernels.landmarks import choose_landmarks, distinct_landmarks, pivoted_cholesky
from rareclass.labels.two_classes import read_labels
from rareclass.rows import as_source

X, Y = rare_mixture(120, 30)
RARE = np.flatnonzero(Y)
# A row of weight zero is nobody's landmark.
KEPT = np.setdiff1d(np.arange(len(Y)), [2, 5])
KERNEL = Gaussian(2.0)


def drawn(rows, k):
    return np.random.RandomState(7).choice(rows, size=k, replace=False)


def spread(k):
    """Rare rows far apart, among ten times as many drawn where there are more."""
    rng, some = np.random.RandomState(7), RARE
    if 10 * k < len(RARE):
        some = np.sort(rng.choice(RARE, size=10 * k, replace=False))
    return some[kmeans_plusplus(X[some], k, random_state=rng)[1]]


# Every rule by its form, and the rows that it is to choose.
RULES = {
    "rare": lambda: RARE,
    "all": lambda: KEPT,
    "random": lambda: drawn(KEPT, len(RARE)),
    ("rare", 12): lambda: spread(12),
    ("rare", 2): lambda: spread(2),
    ("rare", 12, "kmeans++"): lambda: spread(12),
    ("rare", 12, "pivoted_cholesky"): lambda: RARE[pivoted_cholesky(KERNEL, X[RARE], 12)],
    ("rare", 999): lambda: RARE,
    ("rare+majority", 9): lambda: [*RARE, *drawn(np.setdiff1d(KEPT, RARE), 9)],
    ("rare+majority", 999): lambda: KEPT,
    9: lambda: drawn(KEPT, 9),
    999: lambda: KEPT,
    (3, 1, 8, 3): lambda: [1, 3, 8],
}


def chosen(rule):
    rng = np.random.RandomState(7)
    labels = read_labels(Y, np.isin(np.arange(len(Y)), KEPT).astype(float), 1, len(Y))
    found = choose_landmarks(rule, KERNEL, as_source(X), labels, 2**30, rng)
    return found.rows


@pytest.mark.parametrize("rule", RULES, ids=repr)
def test_every_rule_chooses_its_rows(rule):
    is_array = isinstance(rule, tuple) and not isinstance(rule[0], str)
    found = chosen(np.array(rule) if is_array else rule)
    np.testing.assert_array_equal(found, np.sort(RULES[rule]()))


def test_every_rule_is_tried():
    with pytest.raises(ValueError, match="is not") as told:
        chosen("nonsense")
    plain = set(re.findall(r"(?<!\()'([\w+]+)'", str(told.value))) - {"nonsense"}
    counted = {(name, "kmeans++") for name in module._COUNTED}
    counted |= {("rare", selection) for selection in module._SELECTIONS}
    assert plain == {rule for rule in RULES if isinstance(rule, str)}
    assert counted == {
        (rule[0], (*rule, "kmeans++")[2])
        for rule in RULES
        if isinstance(rule, tuple) and isinstance(rule[0], str)
    }


def test_rows_that_differ_in_stored_zeros_are_one_landmark():
    rows = sparse.csr_array(
        (np.array([1.0, 0.0, 1.0, 2.0]), np.array([0, 2, 0, 1]), np.array([0, 2, 3, 4])),
        shape=(3, 3),
    )
    found = distinct_landmarks(rows, np.array([4, 7, 9]))
    assert found.points.shape == (2, 3)
    assert found.point_of[0] == found.point_of[1]
    assert rows.nnz == 4  # the caller's rows stay as they are


@pytest.mark.parametrize("to", [np.asarray, sparse.csr_array])
def test_of_equal_rows_the_first_stands_for_the_point(to):
    rows = np.array([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0], [1.0, 1.0], [0.0, 3.0]])
    found = distinct_landmarks(to(rows), np.array([10, 11, 12, 13, 14]))
    first = found.first_rows
    assert sorted(first) == [10, 11, 14]
    points = found.points.toarray() if sparse.issparse(found.points) else found.points
    np.testing.assert_array_equal(rows[first - 10], points)


def greedy(K, n_most):
    """Pivoted Cholesky by the residual kernel, all of it, worked out again after every pick."""
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
def test_the_picks_of_pivoted_cholesky_are_the_greedy_ones(kernel):
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


def test_pivoted_cholesky_chooses_landmarks():
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
    # The factor counts against the memory.
    with pytest.raises(ValueError, match=r"factor of 60 rare rows takes 14.1 KiB.*k-means"):
        RankRC(landmarks=("rare", 30, "pivoted_cholesky"), memory="10KiB").fit(X, y)


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
