"""Thresholds of several rare classes: which class a row is called, and how many are called one."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from rareclass.decide.class_thresholds import (
    called_class,
    class_weights,
    decades_above,
    shared_thresholds,
)

# Few values, so that there are ties, and zeros.
SHARES = st.sampled_from([0.0, 1e-300, 0.01, 0.1, 0.1 + 1e-16, 0.2, 0.3, 0.5, 1.0])
PROBABILITIES = st.integers(1, 4).flatmap(
    lambda n: st.integers(1, 12).flatmap(lambda rows: arrays(float, (rows, n), elements=SHARES))
)


@given(PROBABILITIES, st.data())
def test_a_row_is_called_the_class_that_it_is_above_by_the_greatest_factor(probability, data):
    n = probability.shape[1]
    any_threshold = st.sampled_from([0.0, 0.01, 0.1, 0.3, np.inf])
    thresholds = data.draw(arrays(float, n, elements=any_threshold))
    for row, called in zip(probability, called_class(probability, thresholds), strict=True):
        above = [k for k in range(n) if row[k] > thresholds[k]]
        if not above:
            assert called == -1
            continue
        factor = {k: row[k] / thresholds[k] if thresholds[k] else np.inf for k in above}
        assert called in above
        assert factor[int(called)] >= max(factor.values()) * (1.0 - 1e-12)


@given(PROBABILITIES, st.data())
def test_decades_are_above_zero_where_the_probability_is_above_the_threshold(probability, data):
    thresholds = data.draw(arrays(float, probability.shape[1], elements=SHARES))
    decades = decades_above(probability, thresholds)
    np.testing.assert_array_equal(decades > 0.0, probability > thresholds)
    assert not (decades == 0.0).any()


@given(PROBABILITIES, st.data())
def test_no_other_cut_is_nearer_to_the_number_wanted(probability, data):
    """An oracle: thresholds at every multiple that some row has, and below all of them."""
    rows, n = probability.shape
    weights = class_weights(data.draw(st.lists(st.integers(1, 1000), min_size=n, max_size=n)))
    copies = data.draw(arrays(float, rows, elements=st.sampled_from([0.5, 1.0, 3.0])))
    wanted = data.draw(st.floats(0.0, float(copies.sum())))

    def n_called(thresholds):
        return float(copies[called_class(probability, thresholds) >= 0].sum())

    found = shared_thresholds(probability, weights, wanted, copies)
    np.testing.assert_allclose(found * weights[0], found[0] * weights, rtol=1e-12)
    multiples = (probability / weights).max(axis=1)
    cuts = [0.0, *(value * (1.0 + 1e-9) for value in multiples)]
    nearest = min(abs(n_called(cut * weights) - wanted) for cut in cuts)
    assert abs(n_called(found) - wanted) <= nearest + 1e-9


def test_a_class_of_infinite_weight_is_never_called():
    probability = np.array([[0.9, 0.0], [0.2, 0.3]])
    found = shared_thresholds(probability, np.array([np.inf, 2.0]), 2.0)
    assert found[0] == np.inf
    assert called_class(probability, found).tolist() == [-1, 1]
