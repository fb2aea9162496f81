"""OAM, diagonal CBR, UniExp and logistic regression are their formulas, on extreme streams too."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from draws import draws
from oracles import first_order
from rareclass.decide.threshold import balanced_accuracy_threshold
from rareclass.online import CBR, OAM, OnlineLogistic, UniExp, univariate
from rareclass.online.state import POLICIES

STEPS = {"exact": first_order.exact_step, "printed": first_order.printed_step}


@st.composite
def streams(draw, most=40):
    """Rows on a coarse grid (ties, repeats and zeros are common, sums are exact) and signs."""
    n = draw(st.integers(1, most))
    d = draw(st.integers(1, 4))
    cell = st.sampled_from([0.0, 0.0, 0.25, 0.5, 1.0, -1.0, -0.25, 2.0])
    X = draw(st.lists(st.lists(cell, min_size=d, max_size=d), min_size=n, max_size=n))
    sign = draw(st.lists(st.sampled_from([1, -1, -1, 0]), min_size=n, max_size=n))
    return np.array(X), np.array(sign)


def mixture(n=400, d=12, rare=0.1, seed=0):
    rng = np.random.default_rng(seed)
    sign = np.where(rng.random(n) < rare, 1, -1)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.5)
    X[sign > 0, :3] += 1.0
    return X, sign


def diagonal(**parameters):
    return CBR(covariance="diagonal", **parameters)


def of_state(model):
    """Weights, and precisions or the intercept where there are any."""
    if isinstance(model, CBR):
        return model.coef_, model.state_.precision
    return (model.coef_, model.intercept_) if hasattr(model, "intercept_") else (model.coef_,)


def follow(model, X, sign):
    """Scores before each row, and `of_state` after all; sign 0 has no label."""
    return model.test_then_train(X, np.where(sign == 0, np.nan, sign)), *of_state(model)


def oracle(model, X, sign, step=None):
    """The same by the formulas, for a model that has seen nothing."""
    given = X, sign, np.ones(len(sign)) if step is None else step
    if isinstance(model, UniExp):
        return first_order.uniexp(*given, model.eta)
    if isinstance(model, OnlineLogistic):
        balanced = model.class_weight == "balanced"
        if model.steps == "adagrad":
            return first_order.logistic(*given, model.eta, balanced)
        return first_order.logistic_newton(*given, model.eta, balanced, univariate._FULL)
    rng = copy.deepcopy(model.state_.rng)
    buffers = first_order.Buffers(model.buffer_size, model.policy, rng)
    if isinstance(model, OAM):
        return first_order.oam(*given, buffers, model.C)
    step = STEPS[model.diagonal_step]
    return first_order.cbr_diagonal(*given, buffers, model.C, norm.ppf(model.eta), step)


def assert_same(found, wanted, rtol=1e-9):
    size = max(1.0, np.abs(wanted[1]).max())
    for a, b in zip(found[:2], wanted, strict=False):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size)
    for a, b in zip(found[2:], wanted[2:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e3 * rtol)


LEARNERS = [
    *(OAM(C=0.1, buffer_size=7, random_state=3, policy=policy) for policy in POLICIES),
    UniExp(eta=0.05),
    *(
        OnlineLogistic(eta, class_weight, steps)
        for eta, steps in ((0.2, "adagrad"), (0.5, "newton"))
        for class_weight in (None, "balanced")
    ),
    *(
        diagonal(C=C, buffer_size=5, policy=policy, random_state=3, diagonal_step=step)
        for C, policy in zip([2.0**-6, 1.0, 2.0**6], [*POLICIES, "fifo"], strict=True)
        for step in STEPS
    ),
]


def assert_formula(learner, kind):
    """The formulas give the same, and so they do where steps are scaled by fractional weights."""
    X, sign = mixture(100 if isinstance(learner, CBR) else 400)
    X, rtol = X.astype(np.float32), 1e-9 if getattr(learner, "steps", "") != "newton" else 1e-7
    sign[::17] = 0
    model = clone(learner).start(12, [-1, 1])
    wanted = oracle(model, X, sign)
    assert_same(follow(model, kind(X), sign), wanted, rtol)
    assert np.abs(model.coef_).max() > 0.01
    X, sign = X[sign != 0], sign[sign != 0]
    weight = np.random.default_rng(0).choice([0.25, 1.0], len(sign))
    model.start(12, [-1, 1])
    _, *wanted = oracle(model, X, sign, weight)
    model.partial_fit(kind(X), sign, sample_weight=weight)
    assert_same((0.0, *of_state(model)), (0.0, *wanted), rtol)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
@pytest.mark.parametrize("learner", LEARNERS, ids=repr)
def test_learners_are_their_formulas(learner, kind):
    assert_formula(learner, kind)


@pytest.mark.parametrize("class_weight", [None, "balanced"])
def test_newton_steps_where_few_features_have_covariances(class_weight, monkeypatch):
    monkeypatch.setattr("rareclass.online.univariate._FULL", 5)
    assert_formula(OnlineLogistic(0.5, class_weight, "newton"), sparse.csr_array)


SIZES, WEIGHTS = st.integers(-60, 60).map(lambda k: 2.0**k), st.sampled_from([None, "balanced"])
BUFFERS = {
    "C": SIZES,
    "buffer_size": st.sampled_from([1, 2, 3, 4]),
    "policy": st.sampled_from(POLICIES),
    "random_state": st.integers(0, 9),
}
ETAS = st.sampled_from([1e-6, 0.125, 1.0])
ANY_LEARNER = {
    "oam": st.builds(OAM, **BUFFERS),
    "diagonal": st.builds(
        diagonal,
        **BUFFERS,
        eta=st.sampled_from([0.7, 0.99865]),
        diagonal_step=st.sampled_from([*STEPS]),
    ),
    "uniexp": st.builds(UniExp, eta=ETAS),
    "adagrad": st.builds(OnlineLogistic, eta=ETAS, class_weight=WEIGHTS),
    "newton": st.builds(
        OnlineLogistic,
        eta=st.sampled_from([1e-3, 1.0, 30.0]),
        class_weight=WEIGHTS,
        steps=st.just("newton"),
    ),
}


@pytest.mark.parametrize("name", ANY_LEARNER)
@given(stream=streams(25), data=st.data())
@draws(100)
def test_the_formulas_hold_on_ties_repeats_and_any_size_of_step(name, stream, data):
    X, sign = stream
    model = data.draw(ANY_LEARNER[name]).start(X.shape[1], [-1, 1])
    wanted = oracle(model, X, sign)
    assert_same(follow(model, X, sign), wanted, 1e-9 if name == "oam" else 1e-6)
    assert np.isfinite([*model.coef_, model.offset_]).all()
    if name == "diagonal":
        assert np.isfinite(model.state_.precision).all()
        assert (model.state_.precision >= 1.0).all()


@pytest.mark.parametrize("learner", [UniExp(), OnlineLogistic(), OnlineLogistic(steps="newton")])
@given(streams(), st.sampled_from([1e-300, 1e6, 1e300]), st.sampled_from([1e-200, 1.0, 1e200]))
@draws(60)
def test_weights_stay_finite(learner, stream, eta, scale):
    X, sign = stream
    model = clone(learner).set_params(eta=eta).start(X.shape[1], [-1, 1])
    with np.errstate(all="ignore"):
        follow(model, scale * X, sign)
    assert np.isfinite([*model.coef_, model.offset_]).all()
    if isinstance(model, UniExp):
        assert (model.state_.weight_seen == [np.sum(sign < 0), np.sum(sign > 0)]).all()
    elif model.steps == "adagrad":  # a step is eta at most, whatever the row
        assert np.abs(model.coef_).max() <= eta * len(sign) * (1 + 1e-12)
        assert np.isfinite(model.intercept_)
    else:
        assert np.isfinite(model.state_.covariance).all()
        assert (model.state_.covariance == model.state_.covariance.T).all()


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("columns", [[0], [0, 3], [3]])
def test_rows_that_are_nearly_equal(gap, columns):
    X = np.array([[1.0, 2.0, -1.0, 0.0]] * 3)
    X[1, columns] += gap
    X[2, 1] -= gap
    sign = np.array([-1, 1, 1])
    model = OAM(C=2.0**60).start(4, [-1, 1]).partial_fit(X[:2], sign[:2])
    z = X[1] - X[0]
    np.testing.assert_allclose(model.coef_, min(2.0**60, 1 / (z @ z)) * z, rtol=1e-9)
    model = diagonal(C=2.0**20).start(4, [-1, 1])
    wanted = oracle(model, X, sign)
    for a, b in zip(follow(model, X, sign)[1:], wanted[1:], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("gap", [1e-4, 1e-7])
def test_oam_on_a_row_with_one_small_number_more(gap, kind):
    X = np.array([[0, 0, 0, 1.0], [0, 0.5, 0, -1], [1, 2, -1, 0], [1, 2, -1, gap]])
    sign = np.array([-1, 1, -1, 1])
    model = OAM(C=2.0**60).start(4, [-1, 1])
    wanted = oracle(model, X, sign)
    assert_same(follow(model, kind(X), sign), wanted)
    assert np.abs(model.coef_[3]) > 0.1 / gap


def test_the_share_of_rows_that_a_buffer_stands_for():
    model = OAM(C=0.001, buffer_size=2, policy="fifo").start(1, [0, 1])
    model.partial_fit(np.zeros((10, 1)), np.zeros(10))
    model.partial_fit([[1.0]], [1])
    # Two pairs, each worth 10 / 2 rows.
    assert model.coef_[0] == pytest.approx(2 * 0.001 * 5)


@pytest.mark.parametrize("eta", [0.01, 1e6])
def test_uniexp_recovers_from_the_first_rare_row_after_a_million(eta):
    X, sign = mixture(2000, rare=0.3)
    model = UniExp(eta=eta).start(12, [-1, 1])
    model.state_.weight_seen[0] = 1e6
    model.partial_fit(X[sign < 0][:50], sign[sign < 0][:50])
    model.partial_fit(X[sign > 0][:1], [1])
    assert np.isfinite(model.coef_).all()
    model.partial_fit(X, sign)
    assert model.score(X, sign) > 0.65


def test_the_offset_is_the_best_threshold_of_the_buffered_rows():
    X, sign = mixture(300)
    model = OAM(C=0.1, buffer_size=20, policy="fifo").start(12, [-1, 1]).partial_fit(X, sign)
    last = np.concatenate([np.flatnonzero(sign == y)[-20:] for y in (-1, 1)])
    scores = X[last] @ model.coef_
    assert model.offset_ == pytest.approx(balanced_accuracy_threshold(sign[last] > 0, scores))
    assert OAM().start(12, [-1, 1]).partial_fit(X[sign < 0], sign[sign < 0]).offset_ == 0.0


def test_newton_steps_reach_where_all_rows_lead():
    """Beside the ridge regression of all rows at once, whose rows were taken one by one."""
    X, sign = mixture(4000)
    model = OnlineLogistic(1.0, steps="newton").partial_fit(X, sign, classes=[-1, 1])
    at_once = LogisticRegression(C=1.0, tol=1e-8).fit(X, sign).coef_[0]
    assert np.linalg.norm(model.coef_ - at_once) < 0.1 * np.linalg.norm(at_once)


@pytest.mark.parametrize("full", [128, 5, 3])
def test_features_that_come_later_are_as_if_zero_before(full, monkeypatch):
    monkeypatch.setattr("rareclass.online.univariate._FULL", full)
    X, sign = mixture()
    X[:200, 4:] = 0.0
    whole = OnlineLogistic(steps="newton").partial_fit(X, sign, classes=[-1, 1])
    grown = OnlineLogistic(steps="newton").partial_fit(X[:200, :4], sign[:200], classes=[-1, 1])
    grown.add_features(X.shape[1] - 4).partial_fit(X[200:], sign[200:])
    np.testing.assert_array_equal(grown.coef_, whole.coef_)
    assert grown.reset_steps().state_.covariance[1, 1] == pytest.approx(0.09)


def test_the_offset_is_where_a_row_is_as_likely_rare_as_rows_are():
    X, sign = mixture(4000)
    for class_weight, odds in ((None, np.mean(sign > 0) / np.mean(sign < 0)), ("balanced", 1.0)):
        model = OnlineLogistic(class_weight=class_weight).partial_fit(X, sign, classes=[-1, 1])
        assert model.offset_ + model.intercept_ == pytest.approx(np.log(odds))
