"""The step of diagonal CBR: the minimum of equation (6), and Proposition 2 as printed."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.stats import norm

from draws import draws
from online.test_contract import assert_same_state
from online.test_first_order import (
    assert_same,
    diagonal,
    follow,
    mixture,
    of_state,
    oracle,
    streams,
)
from oracles import first_order
from rareclass.online._sparse_pairs_jit import _difference, _sums_of_difference
from rareclass.online.buffers import POLICIES

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


@given(streams(), st.sampled_from(POLICIES), st.data())
@draws(80)
def test_any_cut_of_the_stream_gives_the_same_bits(stream, policy, data):
    X, sign = stream
    cuts = sorted(data.draw(st.lists(st.integers(0, len(sign)))))
    whole, scores = learned(X, sign, buffer_size=2, policy=policy)
    for parts in (cuts, range(1, len(sign))):
        model, found = learned(X, sign, parts, buffer_size=2, policy=policy)
        assert found.tobytes() == scores.tobytes()
        assert_same_state(model, whole)


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
