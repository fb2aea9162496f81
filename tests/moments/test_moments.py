"""Moments against two passes in extended precision: any container, weight, cut and place."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws, quick
from moments.mibc_cases import moments_of_array
from oracles.moments import assert_moments, assert_same_moments
from rareclass.moments import MIBC, moments
from rareclass.moments.moments import MomentSettings, merge, moments_of, remove
from rareclass.rows import as_source

EVERYTHING = MomentSettings(scatter=True, n_probes=3, seed=5)
KINDS = {
    "scatter": MomentSettings(scatter=True),
    "diagonal": MomentSettings(),
    "sketch": MomentSettings(n_probes=4),
    "everything": EVERYTHING,
}
each_kind = pytest.mark.parametrize("wanted", KINDS.values(), ids=KINDS)


def table(n=700, d=6, seed=0):
    """Many zeros, means and scales of all sizes, a constant and a full column, empty rows."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4) * 10.0 ** rng.integers(-3, 4, d)
    X[:, 1] = 0.1
    X[:, 2] = rng.normal(size=n) + 300.0
    X[::9, [0, *range(3, d)]] = 0.0
    return X


def unsorted_csr(X):
    """Columns in the other order in every row."""
    A = sparse.csr_array(X)
    for start, stop in zip(A.indptr[:-1], A.indptr[1:], strict=True):
        A.indices[start:stop] = A.indices[start:stop][::-1].copy()
        A.data[start:stop] = A.data[start:stop][::-1].copy()
    A.has_sorted_indices = False
    return A


def in_two_entries(X):
    """Every cell as the sum of two stored ones."""
    A = sparse.csr_array(X)
    data = np.column_stack([A.data - 0.25, np.full(len(A.data), 0.25)]).ravel()
    return sparse.csr_array((data, np.repeat(A.indices, 2), A.indptr * 2), A.shape)


def with_stored_zeros(X):
    n, d = X.shape
    return sparse.csr_array((X.ravel(), np.tile(np.arange(d), n), np.arange(n + 1) * d), X.shape)


CONTAINERS = {
    "dense": np.asarray,
    "columns": np.asfortranarray,
    "csr": sparse.csr_array,
    "matrix": sparse.csr_matrix,
    "csc": sparse.csc_array,
    "unsorted": unsorted_csr,
    "twice": in_two_entries,
    "zeros": with_stored_zeros,
}
each_container = pytest.mark.parametrize("container", CONTAINERS.values(), ids=CONTAINERS)


def weights(n, kind, seed=1):
    rng = np.random.default_rng(seed)
    if kind == "copies":
        return rng.integers(0, 4, n).astype(float)
    if kind == "fractions":
        return np.where(rng.random(n) < 0.2, 0.0, rng.random(n))
    if kind == "extreme":
        return 10.0 ** rng.integers(-9, 6, n)
    return None


@pytest.mark.sampled(40)
@each_container
@each_kind
@pytest.mark.parametrize("weighted", ["none", "copies", "fractions", "extreme"])
def test_moments_are_those_of_two_passes(container, wanted, weighted):
    X = table()
    weight = weights(len(X), weighted)
    data = container(X)
    found = moments_of_array(data, wanted, weight)
    # The sum of two entries may be another number than the cell, in the last digit.
    assert_moments(found, data.toarray() if sparse.issparse(data) else X, weight)
    assert found.variance_sum[1] == 0.0
    np.testing.assert_allclose(found.mean[1], 0.1, rtol=1e-15)


@each_kind
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, unsorted_csr])
def test_float32_is_summed_in_float64(container, wanted):
    X = table().astype(np.float32)
    assert_moments(moments_of_array(container(X), wanted), X.astype(float))


@pytest.mark.sampled(5)
@each_kind
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array, in_two_entries])
@pytest.mark.parametrize("block_rows", quick(1, [7, 1, 250]))
def test_blocks_and_threads_do_not_matter(container, wanted, block_rows, monkeypatch):
    X, weight = container(table(300)), weights(300, "fractions")
    whole = moments_of_array(X, wanted, weight)
    monkeypatch.setattr(moments, "_block_rows", lambda source, wanted: block_rows)
    one, other = (moments_of(as_source(X), wanted, None, weight, n_jobs=k) for k in (1, 3))
    for a, b in zip(one, other, strict=True):
        assert np.asarray(a).tobytes() == np.asarray(b).tobytes()
    assert_same_moments(one, whole)


@each_kind
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_nothing_and_a_single_row(container, wanted):
    X = container(table())
    nothing = moments_of_array(X, wanted, np.zeros(700))
    assert nothing.weight == 0
    single = moments_of(as_source(X), wanted, np.array([5]), np.array([0.3]))
    assert_same_moments(merge(nothing, single), single, rtol=0)
    assert_same_moments(merge(single, nothing), single, rtol=0)
    assert_same_moments(remove(single, nothing), single, rtol=0)
    np.testing.assert_array_equal(single.mean, table()[5])
    assert not single.variance_sum.any()


@st.composite
def small_tables(draw):
    n, d = draw(st.integers(2, 12)), draw(st.integers(1, 4))
    cell = st.sampled_from([0.0, 0.0, 1.0, -2.5, 1e-5, 1e5, 3.25])
    X = np.array(draw(st.lists(cell, min_size=n * d, max_size=n * d))).reshape(n, d)
    weight = st.sampled_from([0.0, 0.1, 1.0, 1.0, 2.0, 1e4])
    w = np.array(draw(st.lists(weight, min_size=n, max_size=n)))
    w[0] = 1.0
    return X, w, draw(st.integers(1, n - 1))


@draws(150)
@given(small_tables(), st.sampled_from([np.asarray, sparse.csr_array]))
@example(  # the mean is 0, and a rounding error of it in one of the two
    (np.array([[1.0], [0.0], [1.0], [1.0], [-2.5]]), np.array([1.0, 0.0, 2.0, 2.0, 2.0]), 1),
    np.asarray,
)
def test_any_table_and_any_cut(case, container):
    X, weight, cut = case
    whole = moments_of_array(container(X), EVERYTHING, weight)
    assert_moments(whole, X, weight, rtol=1e-9)
    a = moments_of_array(container(X[:cut]), EVERYTHING, weight[:cut])
    b = moments_of_array(container(X[cut:]), EVERYTHING, weight[cut:])
    assert_same_moments(merge(a, b), whole, rtol=1e-9)
    constant = (X[weight > 0] == X[0]).all(axis=0)
    assert not whole.variance_sum[constant].any()
    assert not merge(a, b).variance_sum[constant].any()
    np.testing.assert_array_equal(whole.mean[constant], X[0][constant])


@each_kind
def test_merging_is_associative_and_commutative(wanted):
    X, weight = table(), weights(700, "fractions")
    a, b, c = (
        moments_of_array(X[part], wanted, weight[part])
        for part in (slice(0, 10), slice(10, 500), slice(500, 700))
    )
    assert_same_moments(merge(a, b), merge(b, a), rtol=1e-12)
    assert_same_moments(merge(merge(a, b), c), merge(a, merge(b, c)), rtol=1e-12)
    assert_moments(merge(merge(a, b), c), X, weight)


@each_kind
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_removing_is_the_inverse_of_merging(container, wanted):
    X, weight = table(), weights(700, "fractions")
    X[:300, 3] = 0.0  # varies in the part that is taken out only
    parts = (slice(0, 300), slice(300, 700))
    left, out = (moments_of_array(container(X[p]), wanted, weight[p]) for p in parts)
    whole = moments_of_array(container(X), wanted, weight)
    for back in (remove(whole, out), remove(merge(left, out), out)):
        assert_same_moments(back, left, rtol=1e-9)
        assert back.variance_sum[3] == back.variance_sum[1] == 0.0
        if back.scatter.size:
            assert not back.scatter[3].any()
            assert not back.scatter[:, 3].any()
            np.testing.assert_array_equal(back.scatter.diagonal(), back.variance_sum)


def far_from_zero(n=3000):
    """Means of 1e8 and variances of 1: exactly the rows that are summed."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(n, 4))
    X[:, 1] = 0.6 * X[:, 0] + 0.8 * X[:, 1]
    X[:, :3] += (1e8, -1e8, 1e8)
    return X


def assert_six_digits(moments, X, weight=None):
    assert_moments(moments, X, weight, rtol=1e-6)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("container", [np.asarray, *list(CONTAINERS.values())[2:]])
@pytest.mark.parametrize("weighted", ["none", "copies", "fractions"])
def test_means_of_1e8_leave_six_digits_of_variances_of_1(container, weighted):
    X = far_from_zero()
    weight = weights(len(X), weighted)
    data = container(X)
    X = data.toarray() if sparse.issparse(data) else X
    assert_six_digits(
        moments_of_array(data, MomentSettings(scatter=True, n_probes=2), weight), X, weight
    )
    half = [moments_of_array(data[rows], weight=None) for rows in (slice(0, 7), slice(7, None))]
    assert_six_digits(merge(*half), X)
    assert_six_digits(remove(moments_of_array(data), half[0]), X[7:])


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_means_of_1e8_through_partial_fit(container):
    X = far_from_zero()
    y = np.arange(len(X)) % 500 == 3
    model = MIBC()
    for rows, labels in zip(np.split(X, [1, 2, 900]), np.split(y, [1, 2, 900]), strict=True):
        model.partial_fit(container(rows), labels, classes=[False, True])
    assert_six_digits(model.moments_, X[~y])
    assert_six_digits(MIBC.merge(model, model).moments_, np.vstack([X[~y], X[~y]]))


@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_first_rows_of_next_to_no_weight_are_not_what_is_summed_around(container):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 3)) + 50.0
    X[:1100, 0] += 1e8
    weight = np.ones(3000)
    weight[:1100] = 1e-18
    assert_moments(moments_of_array(container(X), weight=weight), X, weight, rtol=1e-6)


@pytest.mark.parametrize("weight", [None, 0.1])
def test_constant_columns_of_any_size_have_no_variance(weight):
    X = np.tile([1e150, 1 / 3, -7.7e8, 1e-100, 0.0], (5000, 1))
    weight = None if weight is None else weight * np.random.default_rng(0).random(5000)
    for container in (np.asarray, sparse.csr_array, in_two_entries):
        data = container(X)
        found = moments_of_array(data, MomentSettings(), weight)
        assert not found.variance_sum.any()
        wanted = data.toarray() if sparse.issparse(data) else data
        np.testing.assert_array_equal(found.mean, wanted[0])


def test_a_column_that_is_full_but_for_a_row():
    X = np.random.default_rng(0).normal(size=(4000, 2)) + 1e3
    X[1234, 0] = 0.0
    for weight in (None, weights(4000, "fractions")):
        assert_moments(moments_of_array(sparse.csr_array(X), weight=weight), X, weight)


def test_sketches_need_the_same_directions_and_have_no_more_than_features():
    X = table()
    assert moments_of_array(X, MomentSettings(n_probes=50)).probes.shape == (6, 6)
    one, other = (moments_of_array(X, MomentSettings(n_probes=2, seed=s)).probes for s in (0, 1))
    assert not np.allclose(one, other)
