"""Numbers brought to one scale: against plain computations, and bounded by training."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm, rankdata

from draws import draws
from rareclass.encoding.bounded_numbers import (
    HOWS,
    BoundedNumbers,
    distinct_values,
    weighted_quantile,
)

COLUMN = st.lists(
    st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6), st.just(np.nan)),
    min_size=1,
    max_size=25,
)


def standardised(values, farthest=np.inf):
    centred = values - np.nanmean(values)
    return centred / max(np.nanstd(values), np.nanmax(np.abs(centred)) / farthest)


def oracle(how, x):
    given_cells = x[~np.isnan(x)]
    if how == "clipped":
        return standardised(x)
    ranks = np.full(len(x), np.nan)
    ranks[~np.isnan(x)] = (rankdata(given_cells) - 0.5) / len(given_cells)
    return standardised(norm.ppf(0.005 + 0.99 * ranks), 5)


@pytest.mark.parametrize("how", HOWS)
@draws(60)
@given(column=COLUMN)
def test_the_definition(how, column):
    x = np.array(column)
    bounded = BoundedNumbers(how).fit(x[:, None]).transform(x[:, None])[:, 0]
    if np.isnan(x).all():
        assert np.isnan(bounded).all()
    elif np.nanmax(x) - np.nanmin(x) == 0:
        assert set(bounded[~np.isnan(x)]) == {0.0}
    elif np.nanmax(x) - np.nanmin(x) > 1e-6:  # else the oracle cancels
        np.testing.assert_allclose(bounded, oracle(how, x), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("how", HOWS)
@draws(40)
@given(data=st.data())
def test_a_weight_is_so_many_copies(how, data):
    x = np.array(data.draw(COLUMN))[:, None]
    weight = np.array(data.draw(st.lists(st.integers(0, 3), min_size=len(x), max_size=len(x))))
    copies = np.repeat(x, weight, axis=0)
    weighted = BoundedNumbers(how).fit(x, weight.astype(float))
    repeated = BoundedNumbers(how).fit(copies)
    np.testing.assert_allclose(weighted.transform(x), repeated.transform(x), atol=1e-7)


@pytest.mark.parametrize("how", HOWS)
@draws(40)
@given(data=st.data(), far=st.sampled_from([1e6, 1e30, -1e30, 2.9e38]))
def test_what_is_beyond_training_is_exactly_its_end(how, data, far):
    X = np.array([data.draw(COLUMN.filter(lambda c: len(c) > 2))[:3] for _ in range(2)]).T
    bounded = BoundedNumbers(how).fit(X)
    end = bounded.high_ if far > 0 else bounded.low_
    reached = bounded.transform(np.array([[far, far]]))
    np.testing.assert_array_equal(reached, bounded.transform(end[None, :]))


def test_many_values_keep_their_order_and_come_near_to_normal():
    rng = np.random.default_rng(0)
    x = np.exp(3 * rng.normal(size=5000))
    bounded = BoundedNumbers().fit(x[:, None])
    z = bounded.transform(x[:, None])[:, 0]
    assert len(bounded.knots_) <= 512
    assert (np.diff(z[np.argsort(x)]) > 0).all()
    np.testing.assert_allclose(z, oracle("quantiles", x), atol=0.02)
    assert 2.5 < z.max() < 2.8
    assert np.isclose(z.mean(), 0, atol=1e-12)
    assert np.isclose(z.std(), 1)


def test_a_value_that_few_rows_have_is_not_far_from_all_others():
    x = (np.arange(1000) % 500 == 0).astype(float)
    z = BoundedNumbers().fit(x[:, None]).transform(x[:, None])[:, 0]
    assert z.max() == pytest.approx(5)
    assert z.mean() == pytest.approx(0)
    np.testing.assert_allclose(z, oracle("quantiles", x))


def test_every_cell_of_the_grid_is_searched_right():
    """Knots far from even: most lie in one cell of the grid that finds them."""
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.normal(size=400) * 1e-9, [1.0, 1e3, 1e9]])
    bounded = BoundedNumbers().fit(x[:, None])
    new = np.concatenate([x, rng.normal(size=500) * 1e-9, rng.uniform(-1, 2e9, 500), [0.0]])
    wanted = np.interp(new, bounded.knots_, (bounded.heights_ - bounded.mean_) / bounded.scale_)
    np.testing.assert_allclose(bounded.transform(new[:, None])[:, 0], wanted, atol=1e-12)


@draws(60)
@given(column=COLUMN, others=COLUMN)
@example(column=[0.0, 5e-324, 1e-320], others=[])
def test_few_and_many_rows_are_interpolated_to_the_same_bits(column, others):
    bounded = BoundedNumbers().fit(np.array(column)[:, None])
    new = np.array([*column, *others, np.inf, -np.inf])[:, None]
    few, many = bounded.transform(new), bounded.transform(np.resize(new, (300, 1)))
    np.testing.assert_array_equal(many[: len(new)], few)
    assert (np.isnan(few) == np.isnan(new)).all()


@draws(60)
@given(
    x=st.lists(st.integers(-3, 3), min_size=1, max_size=12),
    share=st.sampled_from([0.1, 0.25, 0.5, 0.75, 0.99]),
)
def test_weighted_quantiles(x, share):
    values, weight = distinct_values(np.array(x, float))
    wanted = np.quantile(x, share, method="averaged_inverted_cdf")
    assert weighted_quantile(values, weight, share) == wanted


def test_an_unknown_way_is_refused():
    with pytest.raises(ValueError, match="how='log' must be one of 'quantiles', 'clipped'"):
        BoundedNumbers("log").fit(np.ones((3, 1)))
