"""Products of kernel blocks with one vector or several, against those of float64 matrices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.kernels.expansion import expand, pull_back


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@draws(60)
@given(st.integers(1, 13), st.integers(1, 19), st.one_of(st.none(), st.integers(1, 40)), st.data())
def test_products_are_those_of_matrices(dtype, n, m, n_columns, data):
    """Whatever is left over when rows and columns are taken in twos and fours."""
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    K = rng.normal(size=(n, m)).astype(dtype)
    shape = () if n_columns is None else (n_columns,)
    coefficients, by_row = rng.normal(size=(m, *shape)), rng.normal(size=(n, *shape))
    by_row[rng.random(n) < 0.5] = 0.0
    for order in "CF":
        wide = K.astype(np.float64)
        found = expand(K, np.asarray(coefficients, order=order))
        np.testing.assert_allclose(found, wide @ coefficients, rtol=1e-12, atol=1e-12)
        found = pull_back(K, np.asarray(by_row, order=order))
        np.testing.assert_allclose(found, wide.T @ by_row, rtol=1e-12, atol=1e-12)
