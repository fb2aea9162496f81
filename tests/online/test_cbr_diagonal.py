"""The loop of diagonal CBR is Proposition 2."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.stats import norm

from draws import draws
from online.test_first_order import mixture, streams
from oracles import first_order
from rareclass.online._cbr_diagonal_jit import _near_pair_sums, learn
from rareclass.online.buffers import SparseBuffers, slots

PHI = norm.ppf(0.7)
POLICIES = ["fifo", "reservoir"]


def run(X, sign, C=1.0, phi=PHI, size=5, policy="fifo", seed=0, step=None, cuts=()):
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
        arrays = indptr, indices, rows.data, sign[start:end], step[start:end], slot
        learn(*arrays, mean, precision, *buffers, C, phi, before)
        scores.append(before)
    return np.concatenate(scores), mean, precision, buffers


def oracle(X, sign, C=1.0, phi=PHI, size=5, policy="fifo", seed=0, step=None):
    step = np.ones(len(sign)) if step is None else step
    buffers = first_order.Buffers(size, policy, np.random.default_rng(seed))
    return first_order.cbr_diagonal(X, sign, step, buffers, C, phi)


def assert_same(found, wanted, rtol=1e-9):
    scale = max(1.0, np.abs(wanted[1]).max())
    np.testing.assert_allclose(found[0], wanted[0], rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found[1], wanted[1], rtol=rtol, atol=rtol * scale)
    np.testing.assert_allclose(found[2], wanted[2], rtol=1e3 * rtol)


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("C", [2.0**-6, 1.0, 2.0**6])
def test_the_loop_is_the_formula(policy, C):
    X, sign = mixture(300)
    sign[::19] = 0
    found = run(X, sign, C, policy=policy)
    assert_same(found, oracle(X, sign, C, policy=policy))
    assert np.abs(found[1]).max() > 0.01
    assert found[2].max() > 1.01


@given(streams(), st.integers(-60, 60), st.sampled_from([0.0, PHI, 3.0]), st.sampled_from(POLICIES))
@draws(150)
def test_the_loop_is_the_formula_on_ties_repeats_and_any_size_of_step(stream, power, phi, policy):
    X, sign = stream
    found = run(X, sign, 2.0**power, phi, size=3, policy=policy)
    assert_same(found, oracle(X, sign, 2.0**power, phi, size=3, policy=policy), rtol=1e-6)
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
        found = _near_pair_sums(work, *pair)
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
    wanted = oracle(X, sign, size=3)
    for cuts in ([], [20], [20, 21, 60]):
        assert_same(run(X, sign, size=3, cuts=cuts), wanted)


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
