"""MIBC as a whole against problem (3) solved plainly, and against itself in other clothes."""

import pickle

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given as drawn
from hypothesis import strategies as st
from scipy import sparse
from sklearn.exceptions import NotFittedError

from draws import draws, quick
from moments.mibc_cases import EXACT, assert_same_hyperplane, each_covariance, rare_rows
from oracles.moments import hard_margin, population, primal_solution
from rareclass.errors import InputError
from rareclass.moments import MIBC
from rareclass.rows import parquet_batches

X, Y = rare_rows()
BELOW_MARGIN = 1 - 1e-6


@pytest.mark.parametrize("C", [1e-3, 0.03, 1.0, 50.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("ridge", ["auto", 0.3])
def test_w_is_that_of_problem_3(C, weighted, ridge):
    data, y = rare_rows(60, 9, 3, seed=7)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], 60) if weighted else np.ones(60)
    model = MIBC(C, ridge=ridge, pos_label=1, **EXACT)
    model.fit(data, y, weight if weighted else None)
    mean, Sigma = population(data[y == 0], weight[y == 0])
    Sigma = Sigma + (0.0 if ridge == "auto" else ridge) * np.trace(Sigma) / 3 * np.eye(3)
    w = primal_solution(data[y == 1], mean, Sigma, C * weight[y == 1])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-8, atol=1e-8 * np.abs(w).max())
    assert model.offset_ == pytest.approx(w @ mean + BELOW_MARGIN, rel=1e-8)
    assert model.intercept_ == -model.offset_
    assert model.duality_gap_ <= 1e-9
    kappa = BELOW_MARGIN / np.sqrt(w @ Sigma @ w)
    assert model.specificity_bound_ == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-8)
    alpha = model.dual_coef_
    assert alpha.shape == (9,)
    assert ((alpha >= 0) & (alpha <= C * weight[y == 1])).all()
    np.testing.assert_allclose(
        np.linalg.solve(Sigma, (data[y == 1] - mean).T @ alpha), w, atol=1e-7 * np.abs(w).max()
    )


@st.composite
def small_sets(draw):
    """Few rows of few values: ties, duplicates, rare rows anywhere, weights of all sizes."""
    d = draw(st.integers(1, 3))
    n, n_rare = draw(st.integers(d + 2, 10)), draw(st.integers(1, 5))
    number = st.sampled_from([-3.0, -1.0, 0.0, 0.0, 0.5, 1.0, 2.0, 7.0])
    rows = draw(st.lists(number, min_size=(n + n_rare) * d, max_size=(n + n_rare) * d))
    weight = st.sampled_from([0.1, 1.0, 1.0, 2.0, 30.0])
    weights = draw(st.lists(weight, min_size=n + n_rare, max_size=n + n_rare))
    y = np.r_[np.zeros(n, int), np.ones(n_rare, int)]
    return np.array(rows).reshape(-1, d), y, np.array(weights)


@draws(60)
@drawn(small_sets(), st.sampled_from([0.01, 1.0, 20.0]))
def test_w_of_any_small_set(case, C):
    data, y, weight = case
    mean, Sigma = population(data[y == 0], weight[y == 0])
    Sigma = Sigma + 0.1 * (np.trace(Sigma) / len(Sigma) or 1.0) * np.eye(len(Sigma))
    model = MIBC(C, ridge=0.1, pos_label=1, **EXACT).fit(data, y, weight)
    w = primal_solution(data[y == 1], mean, Sigma, C * weight[y == 1])
    np.testing.assert_allclose(model.coef_, w, rtol=1e-7, atol=1e-7 * np.abs(w).max(initial=1e-9))


@pytest.mark.sampled(0)
@pytest.mark.filterwarnings("ignore:The covariance of the majority has no inverse:UserWarning")
@draws(200)
@drawn(small_sets(), st.sampled_from([1e-3, 0.1, 1.0, 100.0]), st.sampled_from(["auto", 0.5]))
def test_no_training_majority_is_worse_than_its_guarantee(case, C, ridge):
    data, y, weight = case
    model = MIBC(C, ridge=ridge, pos_label=1).fit(data, y, weight)
    scores, common = model.score_samples(data), weight * (y == 0)
    near = scores <= model.offset_ + 1e-9 * (1 + np.abs(scores).max())
    assert common[near].sum() / common.sum() >= model.specificity_bound_ - 1e-9
    for offset in np.unique(scores):  # at any other threshold it holds too
        model.offset_ = offset
        near = scores <= offset + 1e-9 * (1 + np.abs(scores).max())
        assert common[near].sum() / common.sum() >= model.specificity_bound_ - 1e-9


def test_the_guarantee_is_reached_by_two_points():
    """Cantelli's inequality is an equality where all the rest is at one point."""
    data = np.r_[np.zeros(9), 1.0, 1.0][:, None]
    model = MIBC(C=np.inf, tol=1e-12).fit(data, np.r_[np.zeros(10), 1])
    assert model.offset_ == pytest.approx(model.coef_[0], rel=1e-5)
    assert model.specificity_bound_ == pytest.approx(0.9, rel=1e-6)
    assert (model.predict(data[:10]) == 0).mean() == 0.9


@pytest.mark.parametrize("n_rare", [1, 4, 30])
def test_hard_margin_is_the_projection_of_the_mean(n_rare):
    data, y = rare_rows(300, n_rare, 4, seed=1, shift=6.0)
    model = MIBC(C=np.inf, tol=1e-12).fit(data, y)
    mean, Sigma = population(data[y == 0])
    w, kappa = hard_margin(data[y == 1], mean, Sigma)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-7, atol=1e-8 * np.abs(w).max())
    kappa *= BELOW_MARGIN
    assert model.specificity_bound_ == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-8)
    margins = (data[y == 1] - mean) @ model.coef_
    assert margins.min() == pytest.approx(1.0, abs=1e-8)
    assert (model.predict(data[y == 1]) == 1).all()  # those at the margin too
    large = MIBC(C=1e6, **EXACT).fit(data, y)
    np.testing.assert_allclose(large.coef_, w, rtol=1e-6, atol=1e-7 * np.abs(w).max())


@each_covariance
def test_no_hard_margin_where_the_mean_is_among_the_rare_rows(given):
    data, y = rare_rows(300, 60, 2, seed=1, shift=0.0)
    with pytest.raises(InputError, match=r"convex hull of the rare rows.*Use a finite C"):
        MIBC(C=np.inf, **given).fit(data, y)


def test_units_of_features_do_not_matter_to_the_full_covariance():
    """A x + b in place of x: scores are the same."""
    rng = np.random.default_rng(0)
    A, b = rng.normal(size=(5, 5)) * 10.0 ** rng.integers(-3, 4, 5), 10 * rng.normal(size=5)
    for C in (0.01, 1.0, 100.0):
        one, other = MIBC(C, **EXACT).fit(X, Y), MIBC(C, **EXACT).fit(X @ A + b, Y)
        scores, moved = one.score_samples(X), other.score_samples(X @ A + b)
        np.testing.assert_allclose(moved - other.offset_, scores - one.offset_, atol=1e-6)
        assert other.specificity_bound_ == pytest.approx(one.specificity_bound_, rel=1e-7)
    fresh = MIBC(ridge=0.5).fit(X @ A + b, Y)
    ridged = MIBC(ridge=0.5).fit(X, Y)
    assert not np.allclose(fresh.score_samples(X @ A + b), ridged.score_samples(X), atol=1e-2)


@pytest.mark.sampled(4)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_weight_k_is_k_copies_and_0_is_absence(given, container):
    weight = np.random.default_rng(1).integers(0, 4, len(X))
    copies, labels = np.repeat(X, weight, axis=0), np.repeat(Y, weight)
    weighted = MIBC(pos_label=1, **given, **EXACT).fit(container(X), Y, weight)
    wanted = MIBC(pos_label=1, **given, **EXACT).fit(container(copies), labels)
    assert_same_hyperplane(weighted, wanted, 1e-7)
    kept = weight > 0
    without = MIBC(pos_label=1, **given, **EXACT).fit(container(X[kept]), Y[kept], weight[kept])
    assert_same_hyperplane(weighted, without, 1e-7)
    streamed = MIBC(**given, **EXACT).partial_fit(container(X), Y, [0, 1], weight)
    assert_same_hyperplane(streamed, weighted, 1e-7)


def test_weights_are_in_the_units_of_the_price():
    """Twice the weight of rare rows is twice the price; of all majority rows it is nothing."""
    one = MIBC(0.02, **EXACT, pos_label=1).fit(X, Y, np.where(Y == 1, 1.0, 7.0))
    two = MIBC(0.01, **EXACT, pos_label=1).fit(X, Y, np.where(Y == 1, 2.0, 0.3))
    plain = MIBC(0.02, **EXACT).fit(X, Y)
    assert_same_hyperplane(one, plain)
    assert_same_hyperplane(two, plain)
    np.testing.assert_allclose(two.rare_weight_, 2.0, rtol=1e-15)
    np.testing.assert_allclose(two.moments_.weight, 0.3 * (Y == 0).sum(), rtol=1e-12)


CUTS = [
    pytest.param([1, 2, 3], id="few"),
    pytest.param([200], id="half"),
    pytest.param(range(1, 400), id="all"),
]


@pytest.mark.sampled(4)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("cuts", quick(1, CUTS))
def test_any_cut_of_the_rows_gives_the_same_model(given, container, cuts):
    wanted = MIBC(**given, **EXACT).fit(container(X), Y)
    parts = MIBC(**given, **EXACT)
    pieces = zip(np.split(X, cuts), np.split(Y, cuts), strict=True)
    for k, (rows, labels) in enumerate(pieces):
        parts.partial_fit(container(rows), labels, classes=None if k else [0, 1])
    assert_same_hyperplane(parts, wanted)
    np.testing.assert_allclose(parts.dual_coef_.sum(), wanted.dual_coef_.sum(), rtol=1e-6)


@pytest.mark.sampled(3)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_merged_parts_are_the_whole(given, container):
    wanted = MIBC(**given, **EXACT).fit(container(X), Y)
    a, b, c = (
        MIBC(**given, **EXACT).partial_fit(container(rows), labels, classes=[0, 1])
        for rows, labels in zip(np.split(X, [7, 300]), np.split(Y, [7, 300]), strict=True)
    )
    before = pickle.dumps(a)
    for model in (MIBC.merge(MIBC.merge(a, b), c), MIBC.merge(c, MIBC.merge(b, a))):
        assert_same_hyperplane(model, wanted)
    assert pickle.dumps(a) == before
    merged = MIBC.merge(a, b).partial_fit(container(X[300:]), Y[300:])
    assert_same_hyperplane(merged, wanted)
    fitted = MIBC.merge(
        MIBC(**given, **EXACT).fit(container(X[:200]), Y[:200]),
        MIBC(**given, **EXACT).fit(container(X[200:]), Y[200:]),
    )
    assert_same_hyperplane(fitted, wanted)


def test_parts_of_dense_and_compressed_rows():
    wanted = MIBC(ridge=0.1, **EXACT).fit(X, Y)
    for kinds in ([np.asarray, sparse.csr_array], [sparse.csr_array, np.asarray]):
        model = MIBC(ridge=0.1, **EXACT)
        for kind, part in zip(kinds, (slice(0, 150), slice(150, None)), strict=True):
            model.partial_fit(kind(X[part]), Y[part], classes=[0, 1])
        assert_same_hyperplane(model, wanted)


@each_covariance
def test_batches_of_a_file_give_the_model_of_its_rows(given, tmp_path):
    weight = np.random.default_rng(0).random(len(X)) + 0.1
    columns = dict(zip("abcde", X.T, strict=True))
    table = pa.table({**columns, "label": np.where(Y == 1, "bad", "good"), "w": weight})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=130)
    wanted = MIBC(pos_label=1, **given, **EXACT).fit(X, Y, weight)
    model = MIBC(pos_label="bad", **given, **EXACT)
    for batch in parquet_batches(tmp_path / "t.parquet", "label", weight="w", batch_rows=70):
        model.partial_fit(batch, batch.y, ["bad", "good"], batch.sample_weight)
    assert_same_hyperplane(model, wanted)
    assert list(model.feature_names_in_) == list("abcde")
    with pytest.raises(TypeError, match="from_table"):
        MIBC().fit_rows(tmp_path / "t.parquet")


@pytest.mark.sampled(12)
@each_covariance
@pytest.mark.filterwarnings("ignore:The covariance of the majority has no inverse:UserWarning")
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize(("n", "n_rare", "d"), [(100, 1, 4), (2, 1, 3), (31, 30, 4), (12, 3, 80)])
def test_one_of_a_class_and_more_features_than_rows(given, container, n, n_rare, d):
    data, y = rare_rows(n, n_rare, d, shift=3.0)
    model = MIBC(pos_label=1, **given).fit(container(data), y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.score_samples(container(data))).all()
    assert 0.0 <= model.specificity_bound_ <= 1.0
    assert model.status_ == "converged"
    assert model.duality_gap_ <= model.tol
    assert model.score(container(data), y) > 0.5


def test_problems_are_solved_when_asked_for_and_no_sooner(monkeypatch):
    solved = []
    original = MIBC._solve
    monkeypatch.setattr(MIBC, "_solve", lambda self, *a: solved.append(1) or original(self, *a))
    model = MIBC()
    for k in range(0, 400, 50):
        model.partial_fit(X[k : k + 50], Y[k : k + 50], classes=[0, 1])
    assert not solved
    assert model.status_ == "converged"
    model.predict(X)
    assert (model.coef_.shape, model.n_iter_ >= 1, len(solved)) == ((5,), True, 1)
    first = model.coef_
    assert not np.array_equal(model.partial_fit(X[:9] + 1, Y[:9]).coef_, first)
    assert len(solved) == 2


def test_a_threshold_of_ones_own():
    model = MIBC().fit(X, Y)
    scores = model.score_samples(X)
    model.offset_ = np.quantile(scores, 0.9)
    assert (model.predict(X) == 1).mean() == pytest.approx(0.1, abs=0.01)
    mean, spread = scores[Y == 0].mean(), scores[Y == 0].std()
    kappa = (model.offset_ - mean) / spread
    assert model.specificity_bound_ == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-6)
    model.offset_ = mean - 1.0
    assert model.specificity_bound_ == 0.0


def test_fit_forgets_what_was_learned():
    model = MIBC().fit(X, Y)
    other = MIBC().partial_fit(X + 1, 1 - Y, classes=[0, 1]).fit(X, Y)
    np.testing.assert_array_equal(other.coef_, model.coef_)
    wide = other.fit(X[:, :2], Y)
    assert wide.coef_.shape == (2,)


def test_a_model_that_forgot_its_rows_predicts_and_learns_no_more():
    model = MIBC().fit(X, Y)
    wanted, size = model.predict(X), len(pickle.dumps(model))
    for forgetful in (model.forget_rows(), MIBC().partial_fit(X, Y, [0, 1]).forget_rows()):
        np.testing.assert_array_equal(forgetful.predict(X), wanted)
        assert len(pickle.dumps(forgetful)) < size / 1.4
        forgetful.offset_ = 1.0
        assert forgetful.specificity_bound_ >= 0
        with pytest.raises(ValueError, match="forgotten its rows"):
            forgetful.partial_fit(X, Y)
        with pytest.raises(NotFittedError, match="forgotten"):
            MIBC.merge(forgetful, MIBC().fit(X, Y))
    assert model.fit(X, Y).partial_fit(X, Y).coef_.shape == (5,)


def test_another_seed_is_another_sketch():
    data, y = rare_rows(d=30)
    one, other = (
        MIBC(random_state=k, covariance="factor", n_factors=1).fit(data, y) for k in (0, 1)
    )
    assert not np.allclose(one.coef_, other.coef_, rtol=1e-9)
