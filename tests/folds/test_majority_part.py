"""Drawn rows stand for their class: all rare rows or some of them, and weights that add up."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from rareclass.folds.majority_part import draw_class, draw_majority, weight_for_all


@given(st.integers(0, 2**32), st.integers(1, 40), st.integers(1, 60), st.booleans(), st.booleans())
@draws(80)
def test_drawn_rows_stand_for_their_class(seed, n_rare, n_rest, weighted, all_rare):
    random = np.random.default_rng(seed)
    is_rare = random.permutation(n_rare + n_rest) < n_rare
    weight = random.uniform(0.1, 5.0, len(is_rare)) if weighted else None
    before = np.ones(len(is_rare)) if weight is None else weight.copy()
    kept = int(random.integers(1, n_rest + 1))
    of_rare = None if all_rare else int(random.integers(1, n_rare + 1))
    drawn = draw_majority(is_rare, weight, kept, seed, of_rare)
    rows, weights = drawn
    assert (np.diff(rows) > 0).all()
    assert is_rare[rows].sum() == (n_rare if of_rare is None else of_rare)
    assert (~is_rare[rows]).sum() == kept
    if all_rare:
        np.testing.assert_array_equal(weights[is_rare[rows]], before[is_rare])
    for members in (is_rare, ~is_rare):
        assert weights[members[rows]].sum() == pytest.approx(before[members].sum())
        # Of equal weights before, equal weights after.
        assert np.ptp((weights / before[rows])[members[rows]]) < 1e-9
    # The same seed draws the same rows, whatever they weigh.
    np.testing.assert_array_equal(draw_majority(is_rare, None, kept, seed, of_rare).rows, rows)
    if weight is not None:
        np.testing.assert_array_equal(weight, before)  # that of the caller is left alone


def test_a_class_that_is_kept_uses_no_random_number():
    rng = np.random.default_rng(0)
    for most in (None, 5, 6):
        assert draw_class(5, most, rng).rows.tolist() == [0, 1, 2, 3, 4]
    again = draw_class(9, 4, np.random.default_rng(0))
    assert draw_class(9, 4, rng).rows.tolist() == again.rows.tolist()
    assert weight_for_all(np.ones(3), np.arange(0)).tolist() == []  # no drawn rows
