"""Models of the covariance against dense inverses, scikit-learn, and what they promise."""

import re
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.covariance import oas

from draws import draws
from moments.mibc_cases import moments_of_array
from rareclass.errors import InputError
from rareclass.moments import MIBC
from rareclass.moments.covariance import (
    DenseMetric,
    Diagonal,
    Factor,
    Full,
    factors_of,
    make_covariance,
    normal_shrinkage,
)
from rareclass.moments.dual import solve_dual
from rareclass.moments.moments import merge

SEED = 3
RIDGES = [0.0, 0.3]


def low_rank(n=400, d=12, rank=3, noise=0.0, seed=0):
    """Rows near a space of few dimensions, of scales that differ, away from 0."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d)) + noise * rng.normal(size=(n, d))
    return (X + rng.normal(size=d)) * 10.0 ** rng.uniform(-1, 1, d)


def modelled(covariance, X, is_sparse=False):
    moments = moments_of_array(X, covariance.wanted(SEED))
    return moments, covariance.model(moments, is_sparse)


def formed(covariance, X):
    """Sigma as a dense matrix, from numpy's covariance and the definition of the model."""
    full = np.atleast_2d(np.cov(X.T, bias=True))
    unit = np.trace(full) / len(full)
    ridge = covariance.ridge * unit * np.eye(len(full))
    if isinstance(covariance, Full):
        return full + ridge
    if isinstance(covariance, Diagonal):
        return np.diag(full.diagonal()) + ridge
    F = factors_of(moments_of_array(X, covariance.wanted(SEED)), covariance.n_factors)
    together = F @ F.T
    return together + np.diag(full.diagonal() - together.diagonal()) + ridge


MODELS = [
    *(Full(ridge) for ridge in RIDGES),
    *(Diagonal(ridge) for ridge in RIDGES),
    *(Factor(4, ridge) for ridge in RIDGES),
    Factor(1, 0.0),
]
each_model = pytest.mark.parametrize("covariance", MODELS, ids=repr)


def inner_products(rows):
    A = sparse.csr_array((rows.data, rows.indices, rows.indptr), (len(rows.left), rows.n_columns))
    return (A @ A.T).toarray() + rows.left @ rows.right.T


@pytest.mark.sampled(7)
@each_model
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_metric_is_that_of_the_dense_inverse(covariance, container):
    X = low_rank(noise=0.7)
    rare = low_rank(9, noise=0.7, seed=1) * (np.random.default_rng(2).random((9, 12)) < 0.7)
    moments, model = modelled(covariance, container(X), container is sparse.csr_array)
    Sigma = formed(covariance, X)
    mean, Y = X.mean(axis=0), rare - X.mean(axis=0)
    rows = model.metric.rare_rows(container(rare), moments.mean)
    wanted = Y @ np.linalg.solve(Sigma, Y.T)
    np.testing.assert_allclose(inner_products(rows), wanted, rtol=1e-8, atol=1e-8 * wanted.max())
    solution = solve_dual(rows, np.full(9, 0.1), 1e-10)
    w = np.linalg.solve(Sigma, Y.T @ solution.alpha)
    found, variance = model.metric.weights(solution, moments.mean)
    np.testing.assert_allclose(found, w, rtol=1e-7, atol=1e-8 * np.abs(w).max())
    np.testing.assert_allclose(variance, w @ Sigma @ w, rtol=1e-7)
    np.testing.assert_allclose(moments.mean, mean, rtol=1e-12)


@pytest.mark.parametrize("covariance", [Diagonal(0.1), Factor(2, 0.1)], ids=repr)
@pytest.mark.parametrize("mean", [0.0, 9.0, 11.0, 1e3, 1e8])
def test_compressed_rows_far_from_zero_keep_their_digits(covariance, mean):
    """Columns that all rows store are centred before they are multiplied."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 6)) * (rng.random((500, 6)) < 0.5)
    X[:, 0] = rng.normal(size=500) + mean
    X[:, 3] = rng.normal(size=500) - mean
    rare = X[:20] + 0.5 * (X[:20] != 0.0)
    if mean <= 1e3:
        rare[4, 0] = 0.0  # a cell that is not stored, far from all others
    found = []
    for container in (np.asarray, sparse.csr_array):
        moments, model = modelled(covariance, container(X))
        rows = model.metric.rare_rows(container(rare), moments.mean)
        solution = solve_dual(rows, np.full(20, 0.1), 1e-9)
        assert solution.gap <= 1e-8
        w, variance = model.metric.weights(solution, moments.mean)
        found.append((inner_products(rows), w, variance))
    (K, w, variance), (K_sparse, w_sparse, variance_sparse) = found
    scale = np.sqrt(np.outer(K.diagonal(), K.diagonal()))
    assert (np.abs(K - K_sparse) <= 1e-7 * scale).all()
    np.testing.assert_allclose(w_sparse, w, atol=1e-6 * np.abs(w).max())
    np.testing.assert_allclose(variance_sparse, variance, rtol=1e-6)


def test_compressed_rows_stay_compressed():
    X = sparse.random(300, 5000, 0.002, format="csr", random_state=0)
    for covariance, p in ((Diagonal(), 2), (Factor(5), 7)):
        moments, model = modelled(covariance, X, is_sparse=True)
        rows = model.metric.rare_rows(X[:10], moments.mean)
        assert rows.left.shape == (10, p)
        assert len(rows.data) == X[:10].nnz
        assert moments.scatter.size == 0


@given(st.integers(0, 10_000), st.integers(2, 30), st.integers(2, 8))
@draws(60)
def test_shrinkage_is_that_of_scikit_learn(seed, n, d):
    X = low_rank(n, d, min(d, 2), 0.5, seed)
    np.testing.assert_allclose(normal_shrinkage(moments_of_array(X)), oas(X)[1], rtol=1e-8)


@pytest.mark.parametrize("rank", [1, 3, 6])
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_factors_are_all_of_a_covariance_of_low_rank(rank, container):
    X = low_rank(rank=rank)
    moments = moments_of_array(container(X), Factor(6).wanted(SEED))
    F, full = factors_of(moments, 6), np.cov(X.T, bias=True)
    np.testing.assert_allclose(F @ F.T, full, rtol=0, atol=1e-12 * full.max())
    assert np.linalg.matrix_rank(F, 1e-6 * np.linalg.norm(F)) == rank


@pytest.mark.parametrize("n_factors", [1, 4, 11])
@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_factor_model_has_the_variances_exactly(n_factors, noise):
    X = low_rank(noise=noise)
    _, model = modelled(Factor(n_factors, 0.2), X)
    metric = model.metric
    inside = (metric.directions * metric.strength) @ metric.directions.T
    Sigma = (np.eye(12) + inside) / np.outer(metric.inverse_root, metric.inverse_root)
    variance = X.var(axis=0)
    np.testing.assert_allclose(Sigma.diagonal(), variance + 0.2 * variance.mean(), rtol=1e-10)
    # Of all that lies off the diagonal the largest part is there.
    full = np.cov(X.T, bias=True)
    left = np.linalg.norm(np.triu(Sigma - full, 1)) / np.linalg.norm(np.triu(full, 1))
    assert left < (1e-9 if noise == 0.0 and n_factors > 3 else 0.8 if n_factors == 1 else 0.2)


@pytest.mark.parametrize("ridge", [None, 0.0, 0.5])
def test_as_many_factors_as_features_are_the_covariance(ridge):
    X = low_rank(noise=0.7)
    rows = [
        inner_products(modelled(covariance, X)[1].metric.rare_rows(X[:5], X.mean(axis=0)))
        for covariance in (Full(ridge), Factor(12, ridge), Factor(50, ridge))
    ]
    np.testing.assert_allclose(rows[1], rows[0], rtol=1e-7, atol=1e-7)
    np.testing.assert_allclose(rows[2], rows[0], rtol=1e-7, atol=1e-7)
    assert modelled(Factor(50, ridge), X)[1].was_singular is False


def test_features_much_smaller_than_others_keep_their_variances_beside_factors():
    X = np.random.default_rng(0).normal(size=(300, 12)) * np.where(np.arange(12) % 2, 1.0, 1e-6)
    variance = X.var(axis=0)
    _, model = modelled(Factor(50, 1e-13), X)
    metric = model.metric
    inside = (metric.directions * metric.strength) @ metric.directions.T
    found = (1.0 + inside.diagonal()) / metric.inverse_root**2
    np.testing.assert_allclose(found, variance + 1e-13 * variance.mean(), rtol=1e-8)


def test_sketches_of_parts_give_the_factors_of_all():
    X = low_rank(noise=0.4)
    wanted = Factor(4).wanted(SEED)
    a, b, whole = (moments_of_array(part, wanted) for part in (X[:150], X[150:], X))
    F, G = factors_of(merge(a, b), 4), factors_of(whole, 4)
    np.testing.assert_allclose(F @ F.T, G @ G.T, rtol=1e-9, atol=1e-9 * np.abs(G @ G.T).max())


def test_one_feature_in_every_model():
    X = np.random.default_rng(0).normal(size=(50, 1))
    for name in ("full", "diagonal", "factor"):
        moments, model = modelled(make_covariance(name, 3, "auto"), X)
        K = inner_products(model.metric.rare_rows(np.array([[2.0]]), moments.mean))
        np.testing.assert_allclose(K, (2.0 - X.mean()) ** 2 / X.var(), rtol=1e-9)


def labelled(X):
    """The rows as a majority, with two rare ones."""
    return np.vstack([X, X.mean(axis=0) + 1.0, X.mean(axis=0) + 2.0]), np.r_[np.zeros(len(X)), 1, 1]


SINGULAR = {
    "constant": np.column_stack([low_rank(50, 3, 3), np.full(50, 7.0)]),
    "copy": low_rank(50, 3, 3)[:, [0, 1, 2, 0]],
    "wide": low_rank(5, 9, 9),
    "one row": low_rank(1, 3, 3),
    "nothing varies": np.ones((30, 2)),
}
BOTH = np.column_stack([SINGULAR["copy"], np.ones(50)])
HAS_INVERSE = {("diagonal", "copy"), ("diagonal", "wide"), ("factor", "wide")}


@pytest.mark.parametrize(
    ("name", "case"), sorted({*product(["full", "diagonal", "factor"], SINGULAR)} - HAS_INVERSE)
)
def test_a_singular_covariance_gets_a_ridge_and_says_so(name, case):
    X, y = labelled(SINGULAR[case])
    with pytest.warns(UserWarning, match="covariance of the majority has no inverse") as caught:
        model = MIBC(covariance=name, pos_label=1, n_factors=4).fit(X, y)
    text, unit = str(caught[0].message), SINGULAR[case].var(axis=0).mean() or 1.0
    assert len(caught) == 1
    assert caught[0].filename == __file__
    assert "Pass ridge=" in text
    if (SINGULAR[case].var(axis=0) == 0).any():  # of these columns nothing else is missing
        assert f"constant columns were given the variance {1e-3 * unit:.3g}." in text
        assert model.ridge_ == 0.0
    else:
        as_given = f"as ridge={model.ridge_ / unit:.3g} would"
        assert f"{model.ridge_:.3g} was added to each variance, {as_given}" in text
        assert model.ridge_ >= 1e-3 * unit * (1 - 1e-12)
    assert np.isfinite(model.coef_).all()
    assert model.score(X, y) > 0.9
    # One's own number says nothing, and is in units of the mean variance.
    chosen = MIBC(covariance=name, pos_label=1, ridge=0.05).fit(X, y)
    assert chosen.ridge_ == pytest.approx(0.05 * unit)
    with pytest.raises(InputError, match=r"ridge=0 leaves.*Use ridge='auto', or a larger"):
        MIBC(covariance=name, pos_label=1, n_factors=4, ridge=0).fit(X, y)


@pytest.mark.parametrize("case", ["copy", "wide", "constant and copy"])
def test_the_automatic_ridge_is_what_shrinkage_for_normal_rows_amounts_to(case):
    majority = BOTH if case == "constant and copy" else SINGULAR[case]
    X, y = labelled(majority)
    with pytest.warns(UserWarning, match="no inverse"):
        model = MIBC().fit(X, y)
    rho, unit = oas(majority)[1], majority.var(axis=0).mean()
    assert model.ridge_ == pytest.approx(max(rho / max(1 - rho, 1e-3), 1e-3) * unit)


@pytest.mark.parametrize("name", ["full", "diagonal"])
def test_a_constant_column_leaves_the_others_alone(name):
    """Beside it the weights are those of the model without it."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)) * [1.0, 30.0, 0.1], np.repeat([0, 1], [280, 20])
    beside = np.column_stack([X, np.full(300, 5.0)])
    with pytest.warns(UserWarning, match="column 3 constant"):
        model = MIBC(covariance=name, tol=1e-12).fit(beside, y)
    alone = MIBC(covariance=name, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, [*alone.coef_, 0.0], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("named", [False, True])
def test_the_warning_names_the_constant_columns(named):
    pd = pytest.importorskip("pandas")
    X, y = labelled(np.column_stack([np.ones((40, 5)), low_rank(40, 3, 3)]))
    data = pd.DataFrame(X, columns=[f"column {j}" for j in "abcdefgh"]) if named else X
    wanted = "'column a', 'column b', 'column c' and 2 more" if named else "0, 1, 2 and 2 more"
    with pytest.warns(UserWarning, match=re.escape(f"column {wanted} constant in it")):
        MIBC().fit(data, y)
    with pytest.warns(UserWarning, match="depend on each other, or are more than the rows"):
        MIBC().fit(*labelled(SINGULAR["copy"]))


def test_no_ridge_is_added_where_there_is_an_inverse():
    X, y = labelled(low_rank(noise=0.5))
    for name in ("full", "diagonal", "factor"):
        assert MIBC(covariance=name, n_factors=3).fit(X, y).ridge_ == 0.0


def test_compressed_rows_get_one_mean_variance_in_diagonals_and_factors():
    X, y = labelled(low_rank(noise=0.5))
    X[:, 4] = 0.0
    unit = X[y == 0].var(axis=0).mean()
    for name in ("diagonal", "factor"):
        model = MIBC(covariance=name, n_factors=3).fit(sparse.csr_array(X), y)
        assert model.ridge_ == pytest.approx(unit)
        small = MIBC(covariance=name, n_factors=3, ridge=0.01).fit(sparse.csr_array(X), y)
        assert small.ridge_ == pytest.approx(0.01 * unit)


def test_the_scale_of_a_feature_alone_is_not_singular():
    X = np.random.default_rng(0).normal(size=(60, 4)) * [1.0, 1e-7, 1e7, 1e-3] + [0, 0, 0, 1.0]
    assert modelled(Full(), X)[1].was_singular is False


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"ridge": -1.0}, "ridge=-1.0 is not 'auto' or a number"),
        ({"ridge": np.nan}, "ridge=nan"),
        ({"ridge": np.inf}, "ridge=inf"),
        ({"ridge": "none"}, "ridge='none'"),
        ({"covariance": "fully"}, "covariance='fully' is not one of 'full', 'diagonal'"),
        ({"covariance": Full}, "covariance=<class"),
        ({"covariance": None}, "covariance=None"),
        ({"n_factors": 0}, "n_factors=0 must be a whole number above 0"),
        ({"n_factors": 2.5}, "n_factors=2.5"),
    ],
)
def test_what_cannot_be_is_refused_by_name(parameters, text):
    with pytest.raises(ValueError, match=re.escape(text)):
        MIBC(**parameters).fit(*labelled(low_rank()))


@pytest.mark.parametrize(("apart", "is_singular"), [(1e-13, True), (1e-11, False)])
def test_weights_of_less_than_four_digits_are_refused(apart, is_singular):
    """Two features that differ by so little: the reciprocal condition number is half of that."""
    covariance = np.array([[1.0, 1.0 - 2 * apart], [1.0 - 2 * apart, 1.0]])
    assert (DenseMetric.of(covariance) is None) == is_singular
