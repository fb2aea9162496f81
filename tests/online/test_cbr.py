"""CBR against the plain pair-by-pair form: full covariance, its invariants; the diagonal step."""

from statistics import NormalDist

import numpy as np
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from draws import draws, thorough
from online.test_first_order import assert_same, diagonal, follow, mixture, of_state, oracle
from oracles import first_order
from oracles.cbr import PlainCBR
from rareclass.metrics import roc_auc
from rareclass.online import CBR
from rareclass.online._sparse_pairs_jit import _difference, _sums_of_difference
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
    X, y = stream(10_000 if thorough() else 1_500, d, seed=d, gap=0.5)
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


def test_the_covariance_is_learned_in_place():
    X, y = stream(60, 5, seed=6)
    model = CBR(buffer_size=9).start(5, [0, 1]).partial_fit(X[:20], y[:20])
    held = model.state_.covariance
    assert np.shares_memory(held, model.partial_fit(X[20:], y[20:]).state_.covariance)


@pytest.mark.parametrize("busy", [ALL_PAIRS, 0.5, BY_BOUNDS])
def test_the_share_of_steps_and_the_bound_of_each_new_row(busy, monkeypatch):
    monkeypatch.setattr("rareclass.online.cbr._BUSY", busy)
    X, y = stream(150, 4, seed=1, gap=0.5)
    model = CBR(buffer_size=9).start(4, [0, 1])
    plain, forms = PlainCBR(model), set()
    for x, label in zip(X, y, strict=True):
        share, others = float(model.state_.share[0]), len(plain.buffers.rows[1 - 2 * label])
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
    diagonal().start(3_000_000, [0, 1])  # starts small


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


PHI = norm.ppf(0.7)


def learned(X, sign, cuts=(), **parameters):
    """A model after all rows, learned from in the batches of `cuts`, and its scores before them."""
    model, scores = diagonal(random_state=0, **parameters).start(X.shape[1], [-1, 1]), []
    for rows, signs in zip(np.split(X, cuts), np.split(sign, cuts), strict=True):
        scores.append(follow(model, rows, signs)[0] if len(rows) else [])
    return model, np.concatenate(scores)


def test_sums_of_near_rows_are_those_of_their_difference():
    """Each row has columns that the other has not; the workspace is left as it was."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        x, b = rng.normal(size=(2, 9)) * (rng.random((2, 9)) < 0.6)
        work = np.column_stack([rng.normal(size=9), rng.uniform(0.1, 3.0, 9), x, np.ones(9)])
        mean, h, before = work[:, 0].copy(), work[:, 1].copy(), work.copy()
        pair = [part for row in (x, b) for part in (np.flatnonzero(row), row[row != 0.0])]
        columns, z = np.empty(18, np.int64), np.empty(18)
        n = _difference(work, *pair, columns, z)
        assert sorted(columns[:n]) == np.flatnonzero((x != 0.0) | (b != 0.0)).tolist()
        found = _sums_of_difference(work, n, columns, z)
        assert found == pytest.approx((mean @ (x - b), h @ (x - b) ** 2))
        assert (work == before).all()


def test_columns_that_leave_with_their_row_keep_what_they_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 400)) * (rng.random((80, 400)) < 0.02)
    sign = np.where(np.arange(80) % 2, 1, -1)
    of = {"buffer_size": 3, "diagonal_step": "printed"}
    wanted = oracle(diagonal(**of).start(400, [-1, 1]), X, sign)
    for cuts in ([], [20], [20, 21, 60]):
        model, scores = learned(X, sign, cuts, **of)
        assert_same((scores, *of_state(model)), wanted)


def test_equal_rows_make_no_step_and_one_class_only_fills_its_buffer():
    model, _ = learned(np.tile([0.1, 0.2, 0.3], (20, 1)), np.array([1, -1] * 10))
    X, _ = mixture(30)
    alone, scores = learned(X, np.full(30, -1), buffer_size=5)
    for each, seen in ((model, [10, 10]), (alone, [30, 0])):
        assert (each.coef_ == 0).all()
        assert (each.state_.precision == 1).all()
        assert each.state_.buffers.seen.tolist() == seen
    assert (scores == 0).all()
    buffered = alone.state_.buffers.scores(np.ones(12))[1]
    np.testing.assert_allclose(buffered, X[25:].sum(axis=1))


def test_values_beyond_what_squares_hold_are_passed_over():
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 1.0], [1.0, 0.0]])
    model, _ = learned(X, np.array([1, -1, -1, 1]), C=2.0**60)
    assert np.isfinite(of_state(model)).all()


def test_buffered_features_are_those_of_the_model():
    buffers = learned(np.eye(4), np.array([1, -1, 1, -1]))[0].state_.buffers
    buffers.check_within(4)
    with pytest.raises(ValueError, match="a buffer holds a feature beyond 3"):
        buffers.check_within(3)
    with pytest.raises(ValueError, match="a buffer holds a feature beyond 4"):
        buffers._replace(indices=buffers.indices - 1).check_within(4)


numbers = st.floats(-8.0, 8.0).map(lambda x: round(x, 2))


@st.composite
def pairs(draw):
    """mu, G, z, C and phi of a pair with a loss."""
    d = draw(st.integers(1, 5))
    of_d = st.lists(numbers, min_size=d, max_size=d).map(np.array)
    mu, z, G = draw(of_d) / 8.0, draw(of_d), 1.0 + np.abs(draw(of_d)) ** 3
    C, phi = 2.0 ** draw(st.integers(-10, 10)), draw(st.sampled_from([0.01, PHI, 3.0]))
    assume(phi * np.sqrt(z**2 @ (1.0 / G)) - mu @ z > 1e-3)
    return mu, G, z, C, phi


def stepped(mu, G, z, C, phi, step="exact"):
    """mu and the variances after the step for one pair: a buffered row of 0 and z."""
    model = diagonal(C=C, eta=norm.cdf(phi), buffer_size=1, diagonal_step=step)
    model.start(len(z), [-1, 1]).partial_fit(0.0 * z[None], [-1])
    model.state_.mean[:], model.state_.precision[:] = mu, G
    model.partial_fit(z[None], [1])
    return model.coef_, 1.0 / model.state_.precision


@given(pairs(), st.integers(0, 2**32 - 1))
@draws(150)
def test_nothing_is_below_the_exact_step(pair, seed):
    """Neither the printed step, nor what lies near, nor what lies far."""
    mu, G, z, C, phi = pair
    mean, variance = stepped(*pair)

    def objective(mean, variance):
        return first_order.pair_objective(mean, variance, mu, G, z, 1.0, C, phi)

    least = objective(mean, variance)
    assert least <= objective(*stepped(*pair, "printed")) + 1e-9 * (1.0 + least)
    rng = np.random.default_rng(seed)
    for size in np.repeat(10.0 ** np.arange(-6, 1), 5):
        other = mean + size * rng.normal(size=len(mu)) / np.sqrt(G)
        assert objective(other, variance * np.exp(size * rng.normal(size=len(mu)))) >= least - 1e-9


@given(pairs())
@draws(25)
def test_the_exact_step_is_where_a_general_solver_ends(pair):
    """Equation (6) with the loss as a variable of its own, by standard deviations: convex."""
    mu, G, z, C, phi = pair
    d, steep = len(mu), np.sqrt(G)

    def divergence(t):
        mean, deviation = t[:d] / steep + mu, np.abs(t[d : 2 * d]) / steep
        without_loss = first_order.pair_objective(mean, deviation**2, mu, G, z, 1.0, 0.0, phi)
        return without_loss + C * t[-1]

    def slack(t):
        mean, deviation = t[:d] / steep + mu, t[d : 2 * d] / steep
        return t[-1] - phi * np.sqrt(z**2 @ deviation**2) + mean @ z

    begin = np.concatenate([np.zeros(d), np.ones(d), [-slack(np.r_[np.zeros(d), np.ones(d), 0.0])]])
    bounds = [(None, None)] * d + [(1e-6, None)] * d + [(0.0, None)]
    found = minimize(
        divergence, begin, bounds=bounds, constraints={"type": "ineq", "fun": slack},
        method="SLSQP", options={"maxiter": 500, "ftol": 1e-13},
    )  # fmt: skip
    least = first_order.pair_objective(*stepped(*pair), mu, G, z, 1.0, C, phi)
    assert least <= found.fun + 1e-6 * (1.0 + abs(found.fun))
    if found.success:
        assert least == pytest.approx(found.fun, rel=1e-3, abs=1e-5)


def test_the_printed_step_is_far_from_the_minimum_where_c_is_large():
    rng = np.random.default_rng(0)
    printed, least = [], []
    for _ in range(20):
        mu, z, G = 0.5 * rng.normal(size=5), rng.normal(size=5), rng.uniform(1.0, 4.0, 5)
        z = z if PHI * np.sqrt(z**2 @ (1 / G)) > mu @ z else -z
        for values, step in ((printed, "printed"), (least, "exact")):
            after = stepped(mu, G, z, 8.0, PHI, step)
            values.append(first_order.pair_objective(*after, mu, G, z, 1.0, 8.0, PHI))
    assert np.mean(printed) > 3.0 * np.mean(least)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e78, 1e120])
@pytest.mark.parametrize("columns", [slice(0, 1), slice(None)])
def test_features_of_any_size_are_learned_and_nothing_overflows(scale, columns):
    X, sign = mixture(60)
    X[:, columns] *= scale
    model = diagonal(buffer_size=8).fit(X, sign)
    assert np.isfinite(model.coef_).all()
    assert (model.coef_ != 0.0).any()
    # The deviation of a weight is 1 at the start and only shrinks.
    assert np.abs(model.coef_).max() < 100.0
