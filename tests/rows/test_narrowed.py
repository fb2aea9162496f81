"""float32 in place of float64: never where distances would notice."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from scipy.spatial.distance import cdist

from draws import draws
from rareclass.rows import as_source
from rareclass.rows.source import narrowed


@draws(30)
@given(
    st.integers(0, 2**32 - 1),
    st.floats(-6.0, 6.0),
    st.floats(-3.0, 12.0),
    st.sampled_from([np.asarray, sparse.csr_array]),
)
def test_distances_are_those_of_float64_to_a_thousandth_of_the_width(seed, spread, offset, kind):
    rng = np.random.default_rng(seed)
    X = rng.normal(10.0**offset, 10.0**spread, (8, 3))
    width = float(np.sqrt(2.0 * X.var(axis=0).sum()))
    source = narrowed(as_source(kind(X)), width)
    rows = source.take(np.arange(8))
    assert rows.dtype == source.dtype
    rows = rows.toarray() if source.is_sparse else rows
    found = cdist(rows.astype(np.float64), rows.astype(np.float64))
    np.testing.assert_allclose(found, cdist(X, X), atol=1e-3 * width)


def test_which_rows_are_narrowed():
    X = np.random.default_rng(0).normal(size=(20, 2))
    assert narrowed(as_source(X), 2.0).dtype == np.float32
    assert narrowed(as_source(X + 1e6), 2.0).dtype == np.float64  # rounds by .06
    assert narrowed(as_source(X + 1e6), None).dtype == np.float32  # no width: digits alone
    assert narrowed(as_source(X * 1e30), 2e30).dtype == np.float64  # squares overflow
    assert narrowed(as_source(X * 0.0), 1.0).dtype == np.float64
    narrow = as_source(X.astype(np.float32))
    assert narrowed(narrow, 2.0) is narrow


def test_kernel_machines_work_in_float32_on_many_rows(monkeypatch):
    from made_tables import rare_mixture
    from rareclass import RankRC
    from rareclass.ranking import machine

    X, y = rare_mixture(300, 30)
    wide = RankRC(lam=0.01).fit(X, y)
    assert wide.landmarks_.dtype == np.float64
    narrow = RankRC(lam=0.01, kernel_dtype="float32").fit(X, y)
    assert narrow.landmarks_.dtype == np.float32
    np.testing.assert_allclose(narrow.score_samples(X), wide.score_samples(X), atol=1e-4)
    monkeypatch.setattr(machine, "_MANY_ROWS", 299)
    many = RankRC(lam=0.01).fit(X, y)
    np.testing.assert_array_equal(many.dual_coef_, narrow.dual_coef_)
    assert RankRC(lam=0.01, kernel_dtype="float64").fit(X, y).landmarks_.dtype == np.float64
    with pytest.raises(ValueError, match="kernel_dtype='half' is not one of"):
        RankRC(kernel_dtype="half").fit(X, y)
