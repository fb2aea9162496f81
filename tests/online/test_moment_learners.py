"""OPAUC, OPAUCr and AdaOAM against every pair, and on streams that are hard on moments."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import optimize
from sklearn.metrics import roc_auc_score

from draws import draws
from made_tables import rare_mixture
from oracles.online_moments import (
    as_sparse_rows,
    learn_from_pairs,
    learn_from_projections,
    pair_objective,
    projected_covariance,
)
from rareclass import machine as memory
from rareclass.online import OPAUC, AdaOAM
from rareclass.online._opauc_jit import _LEAST_FOLD, _projected_gradient, _projected_step_length
from rareclass.online.opauc import ClassMoments, equal_error_threshold

LEARNERS = [OPAUC(), OPAUC(rank=3), AdaOAM()]
NAMES = ["opauc", "low rank", "adaoam"]
every_learner = pytest.mark.parametrize("learner", LEARNERS, ids=NAMES)


def begun(learner, n_features, **parameters):
    """A fresh copy of a learner that has seen nothing."""
    parameters = {"random_state": 0} | parameters
    return type(learner)(**learner.get_params() | parameters).start(n_features, [0, 1])


def learned(model, X, sign, step):
    """Scores before each row, through the learner's own hook."""
    rows = as_sparse_rows(X) if model._takes == "sparse" else np.ascontiguousarray(X)
    model.state_, scores = model._learn(model.state_, rows, sign.astype(np.int8), step)
    return scores


def expected(model, X, sign, step):
    """Weights, scores and number of shortened steps from the definitions."""
    if getattr(model, "rank", None):
        drawn = begun(model, X.shape[1]).state_.rng.standard_normal((len(X), model.rank))
        return learn_from_projections(X, sign, step, drawn, model.eta, model.lam)
    return learn_from_pairs(X, sign, step, model.eta, model.lam, getattr(model, "delta", None))


def assert_same_path(learner, X, sign, step=None, tolerance=1e-10, **parameters):
    step = np.ones(len(X)) if step is None else step
    model = begun(learner, X.shape[1], **parameters)
    scores = learned(model, X, sign, step)
    coef, before, shortened = expected(model, X, sign, step)
    np.testing.assert_allclose(model.coef_, coef, atol=tolerance * max(1, abs(coef).max()))
    np.testing.assert_allclose(scores, before, atol=tolerance * max(1, abs(before).max()))
    return shortened


def stream(n, d, seed=0, share=0.2, offset=0.0, missing=0.1):
    """Rows whose classes overlap, some without a label; sparse when there is no offset."""
    rng = np.random.default_rng(seed)
    sign = rng.choice([1, -1, 0], n, p=[share, 1 - share - missing, missing])
    X = rng.normal(size=(n, d)) + 0.7 * (sign[:, None] > 0)
    X[rng.random((n, d)) < 0.3] = 0.0
    return X + offset, sign


def test_oracle_gradient_is_the_slope_of_its_objective():
    rng = np.random.default_rng(0)
    x, others, weight, w = rng.normal(size=4), rng.normal(size=(7, 4)), rng.random(7), np.ones(4)
    slope = optimize.approx_fprime(w, lambda v: pair_objective(v, x, -1, others, weight, 0.1)[0])
    np.testing.assert_allclose(pair_objective(w, x, -1, others, weight, 0.1)[1], slope, rtol=1e-6)


@pytest.mark.sampled(7)
@every_learner
@pytest.mark.parametrize("eta", [0.003, 0.07, 0.9, 1e9])
@pytest.mark.parametrize("d", [1, 3, 6, 13])
def test_weights_and_scores_are_those_of_all_pairs(learner, eta, d):
    X, sign = stream(400, d)
    step = np.random.default_rng(1).choice([1.0, 0.37], len(X))
    shortened = assert_same_path(learner, X, sign, step, eta=eta, lam=1e-2)
    assert (shortened > 0) == (eta == 1e9) or eta in (0.07, 0.9)


@pytest.mark.sampled(1)
@every_learner
@draws(60)
@given(data=st.data())
def test_ties_copies_and_constant_columns(learner, data):
    n, d = data.draw(st.integers(1, 25)), data.draw(st.integers(1, 5))
    cell = st.sampled_from([-1.0, 0.0, 1.0, 2.5])
    row = st.lists(cell, min_size=d, max_size=d)
    X = np.array(data.draw(st.lists(row, min_size=n, max_size=n)))
    if data.draw(st.booleans()):
        X[:, 0] = 1.0
    labels = st.lists(st.sampled_from([-1, 1, 0]), min_size=n, max_size=n)
    sign = np.array(data.draw(labels))
    steps = st.lists(st.sampled_from([1.0, 0.25, 0.7]), min_size=n, max_size=n)
    # Whole multiples of the cells' powers would put steps right at twice the minimum.
    eta = data.draw(st.sampled_from([0.0113, 0.0771]))
    assert_same_path(
        learner, X, sign, np.array(data.draw(steps)), eta=eta, lam=0.0137, tolerance=1e-9
    )


@pytest.mark.parametrize("learner", [OPAUC(), AdaOAM()], ids=["opauc", "adaoam"])
def test_a_million_standard_deviations_from_zero(learner):
    X, sign = stream(300, 4)
    near, far = begun(learner, 4, eta=0.02), begun(learner, 4, eta=0.02)
    learned(near, X, sign, np.ones(len(X)))
    learned(far, X + 1e6, sign, np.ones(len(X)))
    # X + 1e6 itself is rounded to 1e-10.
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-7)
    covariance = far.state_.moments.scatter[0] / far.state_.moments.weight[0]
    np.testing.assert_allclose(covariance, np.cov(X[sign < 0].T, bias=True), atol=1e-7)


def test_low_rank_far_from_zero():
    X, sign = stream(300, 4, offset=1e3)
    assert_same_path(OPAUC(rank=3), X, sign, eta=0.02, tolerance=1e-6)


def test_moments_are_weighted_mean_and_scatter():
    X, sign = stream(200, 5)
    step = np.random.default_rng(2).random(200)
    model = begun(OPAUC(), 5)
    learned(model, X, sign, step)
    for plane, y in ((0, -1), (1, 1)):
        rows, weight = X[sign == y], step[sign == y]
        mean = np.average(rows, axis=0, weights=weight)
        scatter = ((rows - mean).T * weight) @ (rows - mean)
        found = ClassMoments(*(part[plane] for part in model.state_.moments))
        np.testing.assert_allclose(found.weight, weight.sum())
        np.testing.assert_allclose(found.mean, mean)
        np.testing.assert_allclose(found.scatter, scatter, atol=1e-10)
        np.testing.assert_allclose(found.spread, np.trace(scatter))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lam", [0.0, 1e-2, 3.0])
def test_weights_survive_folding(lam):
    # Two folds at the interval of 1,024 rows; lam=3 shrinks the scale to one every 40 rows.
    X, sign = stream(3000, 3)
    assert (sign != 0).sum() > 2 * _LEAST_FOLD
    assert_same_path(OPAUC(rank=2), X, sign, eta=0.05, lam=lam)


def test_products_follow_what_they_are_products_of():
    X, sign = stream(900, 6)
    model = begun(OPAUC(rank=4), 6, eta=0.05)
    learned(model, X, sign, np.ones(len(X)))
    basis, _, gram, *_ = model.state_
    np.testing.assert_allclose(gram, basis.T @ basis, rtol=1e-9, atol=1e-6)
    np.testing.assert_allclose(gram[-1], basis.T @ basis[:, -1], atol=1e-9)


def test_low_rank_offset_is_that_of_its_covariances():
    X, sign = stream(300, 5, offset=2.0)
    step = np.random.default_rng(4).choice([1.0, 0.3], 300)
    model = begun(OPAUC(rank=4), 5)
    drawn = begun(OPAUC(rank=4), 5).state_.rng.standard_normal((300, 4))
    learned(model, X, sign, step)
    mean, deviation = np.empty(2), np.empty(2)
    for plane, y in ((0, -1), (1, 1)):
        centre, covariance = projected_covariance(X[sign == y], step[sign == y], drawn[sign == y])
        mean[plane] = centre @ model.coef_
        deviation[plane] = np.sqrt(model.coef_ @ covariance @ model.coef_)
    assert model.offset_ == pytest.approx(equal_error_threshold(mean, deviation), rel=1e-10)


def test_covariance_error_shrinks_with_rank():
    X, _ = stream(400, 8)
    error = []
    for rank in (5, 50, 500):
        drawn = np.random.default_rng(3).standard_normal((len(X), rank))
        covariance = projected_covariance(X, np.ones(len(X)), drawn)[1]
        error.append(np.linalg.norm(covariance - np.cov(X.T, bias=True)))
    assert error[1] < 0.6 * error[0]
    assert error[2] < 0.6 * error[1]


@pytest.mark.thorough
def test_a_great_rank_is_near_the_full_covariance():
    X, sign = stream(500, 4)
    full, near = begun(OPAUC(), 4), begun(OPAUC(rank=1000), 4)
    learned(full, X, sign, np.ones(len(X)))
    learned(near, X, sign, np.ones(len(X)))
    np.testing.assert_allclose(near.coef_, full.coef_, atol=0.05 * abs(full.coef_).max())
    assert near.offset_ == pytest.approx(full.offset_, abs=0.05)


@every_learner
def test_one_class_leaves_weights_at_zero(learner):
    X, sign = stream(200, 3)
    model = begun(learner, 3)
    scores = learned(model, X[sign < 0], sign[sign < 0], np.ones((sign < 0).sum()))
    assert not scores.any()
    assert not model.coef_.any()
    assert model.offset_ == 0.0
    first = X[sign > 0][:1]
    learned(model, first, np.ones(1), np.ones(1))
    assert model.coef_ @ (first[0] - X[sign < 0].mean(axis=0)) > 0


@pytest.mark.sampled(12)
@every_learner
@pytest.mark.parametrize("eta", [1e-300, 3.0, 1e6, 1e300])
@pytest.mark.parametrize("lam", [0.0, 1e-4, 1e6])
def test_every_eta_leaves_a_usable_model(learner, eta, lam):
    X, y = rare_mixture(3000, 300)
    X[y == 1] += 1.5
    model = begun(learner, 4, eta=eta, lam=lam).partial_fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.offset_)
    assert roc_auc_score(y, model.score_samples(X)) > 0.7


def test_offset_has_equal_tails_of_gaussian_classes():
    rng = np.random.default_rng(0)
    X = np.r_[rng.normal(size=(20_000, 2)), rng.normal(2.0, 2.0, (20_000, 2))]
    y = np.repeat([0, 1], 20_000)
    model = begun(OPAUC(), 2, eta=0.001).partial_fit(*_shuffled(X, y))
    rare = model.score_samples(X) > model.offset_
    assert np.mean(~rare[y == 1]) == pytest.approx(np.mean(rare[y == 0]), abs=0.01)
    # Without spread it is the midpoint.
    assert equal_error_threshold(np.array([1.0, 2.0]), np.zeros(2)) == 1.5


def test_more_features_than_memory_name_the_remedy(monkeypatch):
    monkeypatch.setattr(memory, "available_memory", lambda: 2**30)
    with pytest.raises(ValueError, match=r"6,000 features take 549.3 MiB.*rank=50"):
        OPAUC().start(6000, [0, 1])
    with pytest.raises(ValueError, match="6,000 features"):
        AdaOAM().start(5000, [0, 1]).add_features(1000)
    with pytest.raises(ValueError, match="smaller rank"):
        OPAUC(rank=6000).start(6000, [0, 1])
    OPAUC(rank=50).start(6000, [0, 1])


def _shuffled(X, y):
    order = np.random.default_rng(1).permutation(len(y))
    return X[order], y[order]


@pytest.mark.parametrize("eta", [1e-3, 1e3])
@pytest.mark.parametrize("first", [0, 4])
def test_the_step_of_low_rank_learners_is_that_of_whole_vectors(eta, first):
    rng = np.random.default_rng(0)
    for scale in (0.1, 1.0, 10.0):
        basis, along, x = scale * rng.normal(size=(5, 9)), rng.normal(size=9), rng.normal(size=5)
        draws, lam, y, n = rng.normal(size=3), 0.3, -1.0, 6.0
        gram, w, part = basis.T @ basis, basis @ along, np.empty(9)
        centre = basis[:, first + 3] / n
        Z = basis[:, first : first + 3] - np.outer(centre, draws)
        H = lam * np.eye(5) + np.outer(x - centre, x - centre) + Z @ Z.T / (3 * n)
        of_class = (first, along, gram, draws, n)
        pull = _projected_gradient(y, lam, *of_class, w @ x, part)
        g = basis @ part + pull * x
        np.testing.assert_allclose(g, H @ w - y * (x - centre), atol=1e-9 * abs(g).max())
        products = (first, gram, draws, n, basis.T @ x, x @ x)
        found = _projected_step_length(eta, lam, pull, part, *products)
        assert found == pytest.approx(
            eta if eta * (g @ H @ g) <= 2 * (g @ g) else (g @ g) / (g @ H @ g)
        )
    assert _projected_step_length(eta, lam, 0.0, np.zeros(9), *products) == 0.0
