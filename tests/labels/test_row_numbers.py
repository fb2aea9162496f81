"""Numbers of all rows but a few, beside the array that they stand for."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rareclass.labels.two_classes import AllBut


@st.composite
def cases(draw):
    """Numbers without an array, and the array."""
    n_rows = draw(st.integers(1, 30))
    left_out = np.array(sorted(draw(st.sets(st.integers(0, n_rows - 1)))), dtype=np.int32)
    return AllBut(n_rows, left_out), np.setdiff1d(np.arange(n_rows), left_out)


EDGES = AllBut(7, np.array([0, 1, 4, 6])), np.array([2, 3, 5])


@example(EDGES)
@given(cases())
def test_they_read_like_the_array(case):
    rows, array = case
    assert len(rows) == len(array)
    assert rows.dtype == np.asarray(rows).dtype == np.int32
    np.testing.assert_array_equal(np.asarray(rows), array)
    np.testing.assert_array_equal(np.concatenate([rows, [99]]), [*array, 99])
    places = np.arange(-len(array), len(array))
    np.testing.assert_array_equal(rows[places], array[places])
    np.testing.assert_array_equal(rows[array % 2 == 0], array[array % 2 == 0])
    assert [rows[int(place)] for place in places] == array[places].tolist()


@example(EDGES, 0, 9)
@given(cases(), st.integers(0, 31), st.integers(0, 31))
def test_stretches_of_them(case, start, stop):
    rows, array = case
    for cut in (slice(start, stop), slice(None, stop), slice(start, None, 2), slice(-stop, None)):
        np.testing.assert_array_equal(rows[cut], array[cut])


@example(EDGES)
@given(cases())
def test_a_number_is_looked_up(case):
    rows, array = case
    numbers = np.arange(-2, 33)
    for side in ("left", "right"):
        np.testing.assert_array_equal(
            np.searchsorted(rows, numbers, side=side), np.searchsorted(array, numbers, side=side)
        )


def test_a_place_beyond_them_is_refused():
    rows, array = EDGES
    for place in (len(array), -len(array) - 1, [0, 9]):
        with pytest.raises(IndexError, match="between 0 and 2"):
            rows[place]
