"""The loop of diagonal CBR: the minimum of equation (6), and Proposition 2 as printed."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import minimize
from scipy.stats import norm

from draws import draws
from online.test_first_order import mixture, streams
from oracles import first_order
from rareclass.online import CBR
from rareclass.online._sparse_pairs_jit import _difference, _sums_of_difference, learn
from rareclass.online.buffers import SparseBuffers, slots

PHI = norm.ppf(0.7)
POLICIES = ["fifo", "reservoir"]
STEPS = {True: first_order.exact_step, False: first_order.printed_step}
each_step = pytest.mark.parametrize("exact", [True, False], ids=["exact", "printed"])


def run(X, sign, C=1.0, phi=PHI, size=5, policy="fifo", seed=0, step=None, cuts=(), exact=True):
    """Scores, mu, G and the buffers after all rows, learned from in the batches of `cuts`."""
    sign = np.asarray(sign, np.int8)
    step = np.ones(len(sign)) if step is None else np.asarray(step, float)
    mean, precision = np.zeros(X.shape[1]), np.ones(X.shape[1])
    buffers, rng, scores = SparseBuffers.empty(size), np.random.default_rng(seed), []
    edges = [0, *cuts, len(sign)]
    for start, end in pairwise(edges):
        rows = sparse.csr_array(X[start:end])
        buffers = buffers.fitting(int(np.diff(rows.indptr).max(initial=0)))
        slot = slots(policy, size, buffers.seen, sign[start:end], rng)
        before = np.full(end - start, np.nan)
        indptr, indices = rows.indptr.astype(np.int64), rows.indices.astype(np.int64)
        arrays = indptr, indices, rows.data, sign[start:end], C * step[start:end], slot
        learn(*arrays, mean, precision, *buffers, phi, 0.0 if exact else C, before)
        scores.append(before)
    return np.concatenate(scores), mean, precision, buffers


def oracle(X, sign, C=1.0, phi=PHI, size=5, policy="fifo", seed=0, step=None, exact=True):
    step = np.ones(len(sign)) if step is None else step
    buffers = first_order.Buffers(size, policy, np.random.default_rng(seed))
    return first_order.cbr_diagonal(X, sign, step, buffers, C, phi, STEPS[exact])


def assert_same(found, wanted, rtol=1e-9):
    scale = max(1.0, np.abs(wanted[1]).max())
    np.testing.assert_allclose(found[0], wanted[0], rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found[1], wanted[1], rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e3 * rtol)


@pytest.mark.sampled(6)
@each_step
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("C", [2.0**-6, 1.0, 2.0**6])
def test_the_loop_is_the_formula(policy, C, exact):
    X, sign = mixture(100 if exact else 300)
    sign[::19] = 0
    found = run(X, sign, C, policy=policy, exact=exact)
    assert_same(found, oracle(X, sign, C, policy=policy, exact=exact))
    assert np.abs(found[1]).max() > 0.01
    assert found[2].max() > 1.01


@given(
    streams(), st.integers(-60, 60), st.sampled_from([PHI, 3.0]), st.sampled_from(POLICIES),
    st.booleans(),
)  # fmt: skip
@draws(100)
def test_the_loop_is_the_formula_on_ties_repeats_and_any_size_of_step(
    stream, power, phi, policy, exact
):
    X, sign = stream
    X, sign = X[:25], sign[:25]
    found = run(X, sign, 2.0**power, phi, size=3, policy=policy, exact=exact)
    wanted = oracle(X, sign, 2.0**power, phi, size=3, policy=policy, exact=exact)
    assert_same(found, wanted, rtol=1e-6)
    assert np.isfinite(found[1]).all()
    assert np.isfinite(found[2]).all()
    assert (found[2] >= 1.0).all()


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
    whole = run(X, sign, size=2, policy=policy)
    for parts in (cuts, range(1, len(sign))):
        found = run(X, sign, size=2, policy=policy, cuts=parts)
        for a, b in zip([*found[:3], *found[3]], [*whole[:3], *whole[3]], strict=True):
            assert a.tobytes() == b.tobytes()


def test_columns_that_leave_with_their_row_keep_what_they_learned():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 400)) * (rng.random((80, 400)) < 0.02)
    sign = np.where(np.arange(80) % 2, 1, -1)
    wanted = oracle(X, sign, size=3, exact=False)
    for cuts in ([], [20], [20, 21, 60]):
        assert_same(run(X, sign, size=3, cuts=cuts, exact=False), wanted)


@pytest.mark.parametrize("gap", [1e-3, 1e-6, 1e-9, 1e-13])
@pytest.mark.parametrize("columns", [[0], [0, 3], [3]])
def test_rows_that_are_nearly_equal(gap, columns):
    X = np.array([[1.0, 2.0, -1.0, 0.0]] * 3)
    X[1, columns] += gap
    X[2, 1] -= gap
    sign = np.array([-1, 1, 1])
    found, wanted = run(X, sign, 2.0**20), oracle(X, sign, 2.0**20)
    np.testing.assert_allclose(found[1], wanted[1], rtol=1e-9)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e-9)


def test_equal_rows_make_no_step():
    X, sign = np.tile([0.1, 0.2, 0.3], (20, 1)), np.array([1, -1] * 10)
    _, mean, precision, buffers = run(X, sign)
    assert (mean == 0).all()
    assert (precision == 1).all()
    assert list(buffers.seen) == [10, 10]


def test_one_class_only_fills_its_buffer():
    X, _ = mixture(30)
    scores, mean, _, buffers = run(X, np.full(30, -1))
    assert (scores == 0).all()
    assert (mean == 0).all()
    assert list(buffers.seen) == [30, 0]
    np.testing.assert_allclose(buffers.scores(np.ones(12))[1], X[25:].sum(axis=1))


def test_a_part_of_a_weight_bounds_alpha():
    X, sign = mixture(60)
    step = np.random.default_rng(1).choice([0.125, 1.0], 60)
    found = run(X, sign, 2.0**-5, step=step)
    assert_same(found, oracle(X, sign, 2.0**-5, step=step))
    assert not np.allclose(found[1], run(X, sign, 2.0**-5)[1])


def test_values_beyond_what_squares_hold_are_passed_over():
    X = np.array([[1e200, 0.0], [-1e200, 1.0], [0.0, 1.0], [1.0, 0.0]])
    _, mean, precision, _ = run(X, [1, -1, -1, 1], 2.0**60)
    assert np.isfinite(mean).all()
    assert np.isfinite(precision).all()


def test_buffered_features_are_those_of_the_model():
    *_, buffers = run(np.eye(4), [1, -1, 1, -1])
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


def stepped(mu, G, z, C, phi, exact=True):
    """mu and the variances after the loop's step for one pair: a buffered row of 0 and z."""
    mean, precision, buffers = mu.copy(), G.copy(), SparseBuffers.empty(1).fitting(len(z))
    buffers.seen[0] = 1
    rows = sparse.csr_array(z[None])
    arrays = rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data
    one = np.ones(1, np.int8), np.full(1, C), np.zeros(1, np.int64)
    learn(*arrays, *one, mean, precision, *buffers, phi, 0.0 if exact else C, np.empty(1))
    return mean, 1.0 / precision


@given(pairs(), st.integers(0, 2**32 - 1))
@draws(150)
def test_nothing_is_below_the_exact_step(pair, seed):
    """Neither the printed step, nor what lies near, nor what lies far."""
    mu, G, z, C, phi = pair
    mean, variance = stepped(*pair)

    def objective(mean, variance):
        return first_order.pair_objective(mean, variance, mu, G, z, 1.0, C, phi)

    least = objective(mean, variance)
    assert least <= objective(*stepped(*pair, exact=False)) + 1e-9 * (1.0 + least)
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
        for values, exact in ((printed, False), (least, True)):
            after = stepped(mu, G, z, 8.0, PHI, exact)
            values.append(first_order.pair_objective(*after, mu, G, z, 1.0, 8.0, PHI))
    assert np.mean(printed) > 3.0 * np.mean(least)


@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e78, 1e120])
@pytest.mark.parametrize("columns", [slice(0, 1), slice(None)])
def test_features_of_any_size_are_learned_and_nothing_overflows(scale, columns):
    X, sign = mixture(60)
    X[:, columns] *= scale
    model = CBR(covariance="diagonal", buffer_size=8).fit(X, sign)
    assert np.isfinite(model.coef_).all()
    assert (model.coef_ != 0.0).any()
    # The deviation of a weight is 1 at the start and only shrinks.
    assert np.abs(model.coef_).max() < 100.0
