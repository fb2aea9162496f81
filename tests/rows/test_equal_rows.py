"""Equal rows are found by value, however they are written."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import sparse

from rareclass.rows.source import canonical, equal_rows, order_of_values

NUMBERS = st.sampled_from([0.0, -0.0, 1.0, -2.5])
TABLES = st.integers(1, 12).flatmap(lambda n: arrays(np.float64, (n, 3), elements=NUMBERS))


def stored_zeros(X):
    n, d = X.shape
    columns = np.tile(np.arange(d)[::-1], n)
    return sparse.csr_array((X[:, ::-1].ravel(), columns, np.arange(0, n * d + 1, d)), X.shape)


@pytest.mark.parametrize("written", [np.asarray, sparse.csr_array, stored_zeros])
@given(X=TABLES)
def test_groups_are_those_of_a_loop_over_pairs(written, X):
    first, group = equal_rows(written(X))
    loop = [next(k for k, row in enumerate(X) if (row == other).all()) for other in X]
    assert first[group].tolist() == loop
    assert sorted(first) == sorted(set(loop))


@pytest.mark.parametrize("written", [np.asarray, sparse.csr_array, stored_zeros])
@given(X=TABLES, seed=st.integers(0, 9))
def test_the_order_is_one_of_values(written, X, seed):
    X = X[equal_rows(X)[0]]
    other = np.random.default_rng(seed).permutation(X)
    orders = [order_of_values(written(rows)) for rows in (X, other)]
    np.testing.assert_array_equal(X[orders[0]], other[orders[1]])


def test_rows_that_are_canonical_are_not_copied():
    X = sparse.csr_array(np.eye(3))
    assert canonical(X) is X
    untidy = stored_zeros(np.eye(3))
    assert canonical(untidy) is not untidy
    assert untidy.nnz == 9
