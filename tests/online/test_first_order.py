"""OAM, UniExp and logistic regression are their formulas, and hold on extreme streams."""

import copy

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.linear_model import LogisticRegression

from draws import draws
from oracles import first_order
from rareclass.decide.threshold import balanced_accuracy_threshold
from rareclass.online import OAM, OnlineLogistic, UniExp
from rareclass.online.buffers import POLICIES


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


def follow(model, X, sign):
    """Scores before each row and the weights after all; sign 0 has no label."""
    return model.test_then_train(X, np.where(sign == 0, np.nan, sign)), model.coef_


def oam_oracle(model, X, sign, step=None):
    step = np.ones(len(sign)) if step is None else step
    buffers = first_order.Buffers(model.buffer_size, model.policy, copy.deepcopy(model.state_.rng))
    return first_order.oam(X, sign, step, buffers, model.C)


def assert_same(found, wanted, rtol=1e-9):
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * max(1.0, np.abs(wanted[1]).max()))


@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
@pytest.mark.parametrize("policy", POLICIES)
def test_oam_is_its_formula(policy, kind):
    X, sign = mixture()
    X = X.astype(np.float32)
    model = OAM(C=0.1, buffer_size=7, random_state=3, policy=policy).start(12, [-1, 1])
    wanted = oam_oracle(model, X, sign)
    given_rows = sparse.csr_array(X) if kind is sparse.csr_array else X.astype(kind)
    assert_same(follow(model, given_rows, sign), wanted)
    assert np.abs(model.coef_).max() > 0.01


@given(
    streams(),
    st.sampled_from(POLICIES),
    st.integers(-60, 60),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 9),
)
@draws(150)
def test_oam_is_its_formula_on_ties_repeats_and_any_size_of_step(stream, policy, power, size, seed):
    X, sign = stream
    model = OAM(C=2.0**power, buffer_size=size, random_state=seed, policy=policy)
    model.start(X.shape[1], [-1, 1])
    wanted = oam_oracle(model, X, sign)
    assert_same(follow(model, X, sign), wanted)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.offset_)


def test_a_fraction_of_a_weight_scales_the_step():
    X, sign = mixture(100)
    weight = np.random.default_rng(0).choice([0.25, 1.0], 100)
    model = OAM(C=0.01, policy="fifo").start(12, [-1, 1])
    wanted = oam_oracle(model, X, sign, weight)
    model.partial_fit(X, sign, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, wanted[1], rtol=1e-10)
    model = UniExp().start(12, [-1, 1]).partial_fit(X, sign, sample_weight=weight)
    np.testing.assert_allclose(
        model.coef_, first_order.uniexp(X, sign, weight, 0.01)[1], rtol=1e-10
    )


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("columns", [[0], [0, 3], [3]])
def test_oam_on_rows_that_are_nearly_equal(gap, columns):
    X = np.array([[1.0, 2.0, -1.0, 0.0]] * 2)
    X[1, columns] += gap
    model = OAM(C=2.0**60).start(4, [0, 1])
    model.partial_fit(X, [0, 1])
    z = X[1] - X[0]
    np.testing.assert_allclose(model.coef_, min(2.0**60, 1 / (z @ z)) * z, rtol=1e-9)


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("gap", [1e-4, 1e-7])
def test_oam_on_a_row_with_one_small_number_more(gap, kind):
    X = np.array([[0, 0, 0, 1.0], [0, 0.5, 0, -1], [1, 2, -1, 0], [1, 2, -1, gap]])
    sign = np.array([-1, 1, -1, 1])
    model = OAM(C=2.0**60).start(4, [-1, 1])
    wanted = oam_oracle(model, X, sign)
    assert_same(follow(model, kind(X), sign), wanted)
    assert np.abs(model.coef_[3]) > 0.1 / gap


def test_the_share_of_rows_that_a_buffer_stands_for():
    model = OAM(C=0.001, buffer_size=2, policy="fifo").start(1, [0, 1])
    model.partial_fit(np.zeros((10, 1)), np.zeros(10))
    model.partial_fit([[1.0]], [1])
    # Two pairs, each worth 10 / 2 rows.
    assert model.coef_[0] == pytest.approx(2 * 0.001 * 5)


@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
def test_uniexp_is_its_formula(kind):
    X, sign = mixture()
    X = X.astype(np.float32)
    sign[::17] = 0
    model = UniExp(eta=0.05).start(12, [-1, 1])
    wanted = first_order.uniexp(X, sign, np.ones(len(sign)), 0.05)
    given_rows = sparse.csr_array(X) if kind is sparse.csr_array else X.astype(kind)
    assert_same(follow(model, given_rows, sign), wanted)


@given(streams(), st.sampled_from([1e-6, 0.125, 1.0]))
@draws(60)
def test_uniexp_is_its_formula_on_ties_and_repeats(stream, eta):
    X, sign = stream
    model = UniExp(eta=eta).start(X.shape[1], [-1, 1])
    wanted = first_order.uniexp(X, sign, np.ones(len(sign)), eta)
    assert_same(follow(model, X, sign), wanted, rtol=1e-6)


@given(streams(), st.sampled_from([1e-300, 1e6, 1e300]), st.sampled_from([1e-200, 1.0, 1e200]))
@draws(60)
def test_uniexp_stays_finite(stream, eta, scale):
    X, sign = stream
    model = UniExp(eta=eta).start(X.shape[1], [-1, 1])
    with np.errstate(all="ignore"):
        follow(model, scale * X, sign)
    assert np.isfinite(model.coef_).all()
    assert (model.state_.weight_seen == [np.sum(sign < 0), np.sum(sign > 0)]).all()


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


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (OAM(C=0), "C=0 must be a finite number above 0"),
        (OAM(C=float("inf")), "C=inf"),
        (OAM(buffer_size=0), "buffer_size=0"),
        (OAM(policy="lifo"), "policy='lifo'"),
        (OAM(n_epochs=0), "n_epochs=0"),
        (UniExp(eta=-1), "eta=-1"),
        (UniExp(n_epochs=1.5), r"n_epochs=1\.5"),
    ],
)
def test_parameters_out_of_range_are_named(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit([[0.0], [1.0]], [0, 1])


def test_the_offset_is_the_best_threshold_of_the_buffered_rows():
    X, sign = mixture(300)
    model = OAM(C=0.1, buffer_size=20, policy="fifo").start(12, [-1, 1]).partial_fit(X, sign)
    last = np.concatenate([np.flatnonzero(sign == y)[-20:] for y in (-1, 1)])
    scores = X[last] @ model.coef_
    assert model.offset_ == pytest.approx(balanced_accuracy_threshold(sign[last] > 0, scores))
    assert OAM().start(12, [-1, 1]).partial_fit(X[sign < 0], sign[sign < 0]).offset_ == 0.0


@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("kind", [np.float64, np.float32, sparse.csr_array])
def test_logistic_regression_is_its_formula(kind, class_weight):
    X, sign = mixture()
    X = X.astype(np.float32)
    sign[::17] = 0
    weight = np.random.default_rng(0).choice([0.25, 1.0], len(sign))
    model = OnlineLogistic(eta=0.2, class_weight=class_weight).start(12, [-1, 1])
    *wanted, intercept = first_order.logistic(X, sign, np.ones(len(sign)), 0.2, bool(class_weight))
    given_rows = sparse.csr_array(X) if kind is sparse.csr_array else X.astype(kind)
    assert_same(follow(model, given_rows, sign), wanted)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-9)
    some = sign != 0
    model.start(12, [-1, 1]).partial_fit(X[some], sign[some], sample_weight=weight[some])
    _, coef, _ = first_order.logistic(X[some], sign[some], weight[some], 0.2, bool(class_weight))
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-9)


@given(streams(), st.sampled_from([1e-6, 0.125, 1.0]), st.sampled_from([None, "balanced"]))
@draws(60)
def test_logistic_regression_is_its_formula_on_ties_and_repeats(stream, eta, class_weight):
    X, sign = stream
    model = OnlineLogistic(eta=eta, class_weight=class_weight).start(X.shape[1], [-1, 1])
    *wanted, _ = first_order.logistic(X, sign, np.ones(len(sign)), eta, bool(class_weight))
    assert_same(follow(model, X, sign), wanted, rtol=1e-6)


@given(streams(), st.sampled_from([1e-300, 1e6, 1e300]), st.sampled_from([1e-200, 1.0, 1e200]))
@draws(60)
def test_logistic_regression_stays_finite(stream, eta, scale):
    X, sign = stream
    model = OnlineLogistic(eta=eta).start(X.shape[1], [-1, 1])
    with np.errstate(all="ignore"):
        follow(model, scale * X, sign)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite([model.intercept_, model.offset_]).all()
    # A step is eta at most, whatever the row.
    assert np.abs(model.coef_).max() <= eta * len(sign) * (1 + 1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("class_weight", [None, "balanced"])
@pytest.mark.parametrize("kind", [np.float64, sparse.csr_array])
@pytest.mark.parametrize("full", [128, 5])
def test_newton_steps_are_their_formula(kind, class_weight, full, monkeypatch):
    monkeypatch.setattr("rareclass.online.univariate._FULL", full)
    X, sign = mixture()
    sign[::17] = 0
    weight = np.random.default_rng(0).choice([0.25, 1.0], len(sign))
    model = OnlineLogistic(0.5, class_weight, steps="newton").start(12, [-1, 1])
    of = 0.5, bool(class_weight), full
    *wanted, intercept = first_order.logistic_newton(X, sign, np.ones(len(sign)), *of)
    assert_same(follow(model, kind(X), sign), wanted, rtol=1e-7)
    assert model.intercept_ == pytest.approx(intercept, rel=1e-7)
    some = sign != 0
    model.start(12, [-1, 1]).partial_fit(X[some], sign[some], sample_weight=weight[some])
    _, coef, _ = first_order.logistic_newton(X[some], sign[some], weight[some], *of)
    np.testing.assert_allclose(model.coef_, coef, rtol=1e-7)


@given(streams(), st.sampled_from([1e-3, 1.0, 30.0]), st.sampled_from([None, "balanced"]))
@draws(60)
def test_newton_steps_are_their_formula_on_ties_and_repeats(stream, eta, class_weight):
    X, sign = stream
    model = OnlineLogistic(eta, class_weight, steps="newton").start(X.shape[1], [-1, 1])
    balanced = bool(class_weight)
    *wanted, _ = first_order.logistic_newton(X, sign, np.ones(len(sign)), eta, balanced)
    assert_same(follow(model, X, sign), wanted, rtol=1e-6)


@given(streams(), st.sampled_from([1e-300, 1e6, 1e300]), st.sampled_from([1e-200, 1.0, 1e200]))
@draws(60)
def test_newton_steps_stay_finite(stream, eta, scale):
    X, sign = stream
    model = OnlineLogistic(eta, steps="newton").start(X.shape[1], [-1, 1])
    with np.errstate(all="ignore"):
        follow(model, scale * X, sign)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.state_.covariance).all()
    assert (model.state_.covariance == model.state_.covariance.T).all()


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
    with pytest.raises(ValueError, match="class_weight='even' is not one of None, 'balanced'"):
        OnlineLogistic(class_weight="even").fit(X, sign)
    with pytest.raises(ValueError, match="steps='long' is not one of 'adagrad', 'newton'"):
        OnlineLogistic(steps="long").fit(X, sign)
