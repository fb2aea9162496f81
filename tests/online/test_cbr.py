"""CBR with a full covariance against the plain pair-by-pair form, and its invariants."""

import pickle
from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from draws import draws, thorough
from oracles.cbr import PlainCBR
from rareclass.metrics import roc_auc
from rareclass.online import CBR
from rareclass.online.ranker import buffer_offset


def stream(n, d, seed, share=0.3, gap=1.0):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < share).astype(int)
    scales = 2.0 ** rng.integers(-3, 4, d)
    X = (rng.normal(size=(n, d)) + gap * y[:, None] * rng.normal(size=d)) * scales
    return X, y


@pytest.mark.sampled(2)
@pytest.mark.parametrize("policy", ["fifo", "reservoir"])
@pytest.mark.parametrize(("d", "C"), [(1, 1.0), (8, 2.0**-6), (21, 4.0)])
def test_same_as_the_plain_form_over_thousands_of_rows(d, C, policy):
    X, y = stream(10_000 if thorough() else 2_500, d, seed=d, gap=0.5)
    model = CBR(C=C, policy=policy, buffer_size=10, random_state=3).start(d, [0, 1])
    plain = PlainCBR(model)
    scores = model.test_then_train(X, y)
    expected = np.array([plain.score_and_learn(x, label) for x, label in zip(X, y, strict=True)])
    np.testing.assert_allclose(
        model.coef_, plain.mean, rtol=1e-8, atol=1e-8 * abs(plain.mean).max()
    )
    np.testing.assert_allclose(scores, expected, rtol=1e-8, atol=1e-8 * abs(expected).max())
    np.testing.assert_allclose(
        model.state_.covariance, plain.S, rtol=0, atol=1e-8 * abs(plain.S).max()
    )


# Of C without bound on rows of zeros and ones the mean goes from 1 to 1e-17.
@example(1003, 6, 10, "fifo", 2.0**60, 0.999, 2, None)
@draws(60)
@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 9),
    capacity=st.integers(1, 20),
    policy=st.sampled_from(["fifo", "reservoir"]),
    C=st.sampled_from([2.0**-60, 2.0**-10, 1.0, 2.0**10, 2.0**60]),
    eta=st.sampled_from([0.5001, 0.7, 0.999]),
    levels=st.integers(1, 4),
    class_weight=st.sampled_from([None, "balanced"]),
)
def test_ties_repeats_and_extreme_parameters(
    seed, d, capacity, policy, C, eta, levels, class_weight
):
    rng = np.random.default_rng(seed)
    X = rng.integers(0, levels, (80, d)).astype(float)  # many pairs have z = 0
    y = rng.integers(0, 2, 80)
    y[: rng.integers(0, 40)] = 0  # a prefix of one class
    model = CBR(
        C=C,
        eta=eta,
        buffer_size=capacity,
        policy=policy,
        class_weight=class_weight,
        random_state=seed,
    ).start(d, [0, 1])
    plain, exact = PlainCBR(model), PlainCBR(model, np.longdouble)
    model.test_then_train(X, y)
    for x, label in zip(X, y, strict=True):
        plain.score_and_learn(x, label)
        exact.score_and_learn(x, label)
    size = max(abs(exact.mean).max(), 1e-300)
    # Contradicting pairs shrink mean and covariance without end, and what rounding did stays: then
    # no double has more digits than those of the plain form.
    blur = abs(plain.mean - exact.mean).max()
    np.testing.assert_allclose(model.coef_, exact.mean, rtol=1e-7, atol=1e-7 * size + 100 * blur)


@draws(40)
@given(seed=st.integers(0, 10_000))
def test_bounds_hold_and_the_covariance_only_shrinks(seed):
    X, y = stream(120, 5, seed)
    model = CBR(buffer_size=7, random_state=0).start(5, [0, 1])
    before = np.eye(5)
    for start in range(0, 120, 10):
        model.partial_fit(X[start : start + 10], y[start : start + 10])
        S = model.state_.covariance
        assert np.linalg.eigvalsh(before - S).min() > -1e-12
        assert np.linalg.eigvalsh(S).min() > -1e-12
        before = S.copy()
        for plane in (0, 1):
            rows = model.state_.buffers.rows[plane]
            filled = min(model.state_.buffers.seen[plane], 7)
            true = np.einsum("ib,ij,jb->b", rows, S, rows)[:filled]
            bound = model.state_.bound[plane, :filled]
            assert (bound >= true - 1e-9 * (1.0 + (rows[:, :filled] ** 2).sum(axis=0))).all()


ALL_PAIRS, BY_BOUNDS = -1.0, 2.0


@pytest.mark.parametrize("busy", [ALL_PAIRS, BY_BOUNDS])
@pytest.mark.parametrize("d", [7, 8, 19])
def test_vectors_that_do_not_come_out_even(d, busy, monkeypatch):
    """Buffers and features that are no multiples of eight, and of four pairs fewer that step."""
    monkeypatch.setattr("rareclass.online.cbr._BUSY", busy)
    X, y = stream(160, d, seed=d, share=0.5, gap=0.3)
    model = CBR(buffer_size=11).start(d, [0, 1])
    plain = PlainCBR(model)
    model.partial_fit(X, y)
    for x, label in zip(X, y, strict=True):
        plain.score_and_learn(x, label)
    size = abs(plain.mean).max()
    np.testing.assert_allclose(model.coef_, plain.mean, rtol=0, atol=1e-9 * size)
    np.testing.assert_allclose(model.state_.covariance, plain.S, rtol=0, atol=1e-9)
    assert (model.state_.covariance == model.state_.covariance.T).all()


def test_the_covariance_is_learned_in_place_and_a_copy_goes_on_alike():
    X, y = stream(60, 5, seed=6)
    model = CBR(buffer_size=9).start(5, [0, 1]).partial_fit(X[:20], y[:20])
    held, copy = model.state_.covariance, pickle.loads(pickle.dumps(model))
    model.partial_fit(X[20:], y[20:])
    copy.partial_fit(X[20:], y[20:])
    assert np.shares_memory(held, model.state_.covariance)
    assert copy.state_.covariance.tobytes() == model.state_.covariance.tobytes()


@pytest.mark.parametrize("busy", [ALL_PAIRS, 0.5, BY_BOUNDS])
def test_the_share_of_steps_and_the_bound_of_each_new_row(busy, monkeypatch):
    monkeypatch.setattr("rareclass.online.cbr._BUSY", busy)
    X, y = stream(150, 4, seed=1, gap=0.5)
    model = CBR(buffer_size=9).start(4, [0, 1])
    plain, forms = PlainCBR(model), set()
    for x, label in zip(X, y, strict=True):
        share, others = float(model.state_.share[0]), len(plain.buffers[1 - label])
        plain.score_and_learn(x, label)
        model.partial_fit(x[None], [label])
        state = model.state_
        if others:
            assert state.share[0] == pytest.approx(share + (plain.steps / others - share) / 16)
            forms.add(share > busy)
        slot = (state.buffers.seen[label] - 1) % 9
        np.testing.assert_allclose(state.bound[label, slot], x @ plain.S @ x, rtol=1e-7)
    assert forms == ({False, True} if busy == 0.5 else {busy == ALL_PAIRS})


def test_bounds_follow_the_steps_of_the_other_class(monkeypatch):
    """They need not: a bound too large costs time, and no test of weights would see it."""
    monkeypatch.setattr("rareclass.online.cbr._BUSY", BY_BOUNDS)
    X, _ = stream(60, 4, seed=2, gap=0.0)
    model = CBR(buffer_size=20).partial_fit(X[:20], np.ones(20), classes=[0, 1])
    model.partial_fit(X[20:], np.zeros(40))

    def true(label):
        rows = model.state_.buffers.rows[label]
        return np.einsum("ib,ij,jb->b", rows, model.state_.covariance, rows)

    np.testing.assert_allclose(model.state_.bound[1], true(1), rtol=1e-6)
    assert (model.state_.bound[0] > 1.01 * true(0)).any()  # S shrank after these rows came
    # A rare row on the majority's side, by steps too small to bring it back: every pair steps,
    # and is measured anew.
    share = float(model.state_.share[0])
    model.set_params(C=2**-20).partial_fit(-100.0 * model.coef_[None], [1])
    assert model.state_.share[0] == pytest.approx(share + (1.0 - share) / 16)
    np.testing.assert_allclose(model.state_.bound[0], true(0), rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e3, 1e5, 1e7])
def test_pairs_put_aside_by_bounds_are_those_that_need_no_step(offset, monkeypatch):
    """Far from the origin bounds cancel: without room for rounding some pairs would be lost."""
    X, y = stream(400, 6, seed=4)
    found = []
    for busy in (ALL_PAIRS, BY_BOUNDS):
        monkeypatch.setattr("rareclass.online.cbr._BUSY", busy)
        model = CBR(buffer_size=15).start(6, [0, 1])
        found.append((model.test_then_train(X + offset, y), model.state_.covariance))
    for all_pairs, by_bounds in zip(*found, strict=True):
        size = abs(all_pairs).max()
        np.testing.assert_allclose(by_bounds, all_pairs, rtol=0, atol=1e-9 * size)


def test_the_first_rare_row_after_a_million_others():
    rng = np.random.default_rng(0)
    model = CBR(random_state=0).start(4, [0, 1])
    for _ in range(10):
        model.partial_fit(rng.normal(size=(100_000, 4)), np.zeros(100_000, int))
    assert (model.coef_ == 0.0).all()
    assert (model.predict(rng.normal(size=(3, 4))) == 0).all()
    model.partial_fit(np.full((1, 4), 3.0), [1])
    X = np.concatenate([rng.normal(size=(50, 4)), rng.normal(size=(50, 4)) + 3.0])
    assert roc_auc(np.repeat([0, 1], 50), model.score_samples(X)) > 0.95


def test_a_pair_that_overflows_leaves_those_worked_out_with_it_alone(monkeypatch):
    X, y = stream(60, 18, seed=5, gap=0.5)
    X[7, 3], X[9, 3], y[7], y[9] = 1.7e308, -1.7e308, 1, 0  # their difference is infinite
    found = []
    for busy in (ALL_PAIRS, BY_BOUNDS):  # four together, and each by itself
        monkeypatch.setattr("rareclass.online.cbr._BUSY", busy)
        found.append(CBR(buffer_size=11).start(18, [0, 1]).partial_fit(X, y))
    together, single = found
    assert abs(single.coef_).max() > 0.01
    np.testing.assert_allclose(together.coef_, single.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(
        together.state_.covariance, single.state_.covariance, rtol=0, atol=1e-8
    )


def test_a_covariance_that_does_not_fit_names_the_remedy():
    with pytest.raises(ValueError, match="covariance='diagonal' takes two numbers a feature"):
        CBR().start(3_000_000, [0, 1])


def test_the_wide_model_starts_small():
    model = CBR(covariance="diagonal").start(3_000_000, [0, 1])
    assert model.coef_.shape == (3_000_000,)


def test_no_threshold_without_both_classes_and_none_of_nan():
    assert buffer_offset(np.ones(3), np.empty(0)) == 0.0
    with pytest.raises(ValueError, match="NaN"):
        buffer_offset(np.array([1.0, np.nan]), np.zeros(2))


# There is no bound on the mistakes of CBR: docs/method/online.md, each sentence of it.
def with_one_majority_row(d, C, eta):
    """A ranker that holds the majority row 0: a rare row is its own pair."""
    model = CBR(C, eta=eta, buffer_size=1).start(d, [0, 1])
    return model.partial_fit(np.zeros((1, d)), [0])


def reach(C, eta, v):
    """What all steps on one pair can add to its margin."""
    return C * v + 2.0 / NormalDist().inv_cdf(eta) * np.sqrt(v)


@given(
    seed=st.integers(0, 10_000),
    d=st.integers(1, 6),
    C=st.sampled_from([2.0**-6, 0.1, 1.0, 8.0]),
    eta=st.sampled_from([0.55, 0.7, 0.95]),
    beyond=st.sampled_from([1.001, 1.5, 10.0]),
)
@draws(60)
def test_a_pair_out_of_reach_stays_misranked(seed, d, C, eta, beyond):
    rng = np.random.default_rng(seed)
    model = with_one_majority_row(d, C, eta)
    root = rng.normal(size=(d, d)) / d
    model.state_.covariance[:] = S = root @ root.T + 1e-6 * np.eye(d)
    z = rng.normal(size=d)
    v = z @ S @ z
    assume(v > 1e-6)
    model.state_.mean[:] = -beyond * reach(C, eta, v) * z / (z @ z)
    scores = model.test_then_train(np.tile(z, (300, 1)), np.ones(300))
    assert (scores < 0.0).all()
    assert (np.diff(scores) >= -1e-9).all()
    # It is not far from what is reached: the sum of the steps is near the bound where C is small.
    assert scores[-1] - scores[0] <= reach(C, eta, v)


@pytest.mark.parametrize(
    ("C", "eta", "d"), [(1.0, 0.7, 200), (2.0**-6, 0.7, 100), (0.125, 0.95, 30)]
)
def test_rows_with_a_margin_that_are_misranked_for_ever(C, eta, d):
    gamma = 0.05
    r = np.sqrt(1.0 - gamma**2)
    model = with_one_majority_row(d + 1, C, eta)
    taught = np.column_stack([np.full(d, gamma), r * np.eye(d)])
    for _ in range(60):
        model.partial_fit(taught, np.ones(d))
    z = np.append(gamma, np.full(d, -r / np.sqrt(d)))
    v = z @ model.state_.covariance @ z
    assert model.coef_ @ z < -reach(C, eta, v)  # so that it stays so whatever the number of rows
    scores = model.test_then_train(np.tile(z, (600, 1)), np.ones(600))
    assert (scores < 0.0).sum() == 600 > 1.0 / gamma**2
