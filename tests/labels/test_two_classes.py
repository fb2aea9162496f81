"""The two classes of a target: which rows have which, found and held in few bytes."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rareclass.labels import two_classes
from rareclass.labels.two_classes import AllBut, read_labels


@given(
    st.lists(st.booleans(), min_size=2).filter(lambda y: len(set(y)) == 2),
    st.integers(1, 5),
    st.sampled_from([np.array([3, 7]), np.array(["no", "yes"]), np.array(["a", "b"], object)]),
    st.booleans(),
)
def test_rows_of_either_class_are_those_with_its_label(second, stretch, names, weighted):
    second = np.array(second)
    y, weight = names[second.astype(int)], None
    if weighted:
        weight = np.arange(1.0, len(y) + 1.0)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(two_classes, "_STRETCH_ROWS", stretch)
        labels = read_labels(y, weight, names[1], len(y))
    assert labels.classes.tolist() == names.tolist()
    assert labels.pos_label == names[1]
    np.testing.assert_array_equal(labels.rare, np.flatnonzero(second))
    np.testing.assert_array_equal(labels.majority, np.flatnonzero(~second))
    assert labels.rare.dtype == labels.majority.dtype == np.int32


def test_a_third_label_in_the_last_stretch_is_found(monkeypatch):
    monkeypatch.setattr(two_classes, "_STRETCH_ROWS", 4)
    y = np.array([0, 0, 1, 0, 1, 1, 0, 0, 0, 2])
    with pytest.raises(ValueError, match="3 labels"):
        read_labels(y, None, None, len(y))


def test_labels_of_many_rows_are_read_in_few_bytes():
    y = np.zeros(500_000, np.int8)
    y[::1000] = 1
    tracemalloc.start()
    read_labels(y, None, None, len(y))
    by_row = tracemalloc.get_traced_memory()[1] / len(y)
    tracemalloc.stop()
    assert by_row < 2.0  # the mask takes 1; the numbers of the majority are not made


@st.composite
def cases(draw):
    n_rows = draw(st.integers(1, 30))
    left_out = np.array(sorted(draw(st.sets(st.integers(0, n_rows - 1)))), dtype=np.int32)
    return AllBut(n_rows, left_out), np.setdiff1d(np.arange(n_rows), left_out)


EDGES = AllBut(7, np.array([0, 1, 4, 6])), np.array([2, 3, 5])


@example(EDGES, 0, 9)
@given(cases(), st.integers(0, 31), st.integers(0, 31))
def test_they_read_like_the_array(case, start, stop):
    rows, array = case
    assert len(rows) == len(array)
    assert rows.dtype == np.asarray(rows).dtype == np.int32
    np.testing.assert_array_equal(np.asarray(rows), array)
    np.testing.assert_array_equal(np.concatenate([rows, [99]]), [*array, 99])
    places = np.arange(-len(array), len(array))
    np.testing.assert_array_equal(rows[places], array[places])
    np.testing.assert_array_equal(rows[array % 2 == 0], array[array % 2 == 0])
    assert [rows[int(place)] for place in places] == array[places].tolist()
    for cut in (slice(start, stop), slice(None, stop), slice(start, None, 2), slice(-stop, None)):
        np.testing.assert_array_equal(rows[cut], array[cut])
    numbers = np.arange(-2, 33)
    for side in ("left", "right"):
        np.testing.assert_array_equal(
            np.searchsorted(rows, numbers, side=side), np.searchsorted(array, numbers, side=side)
        )
    for place in (len(array), -len(array) - 1, [0, 99]):
        with pytest.raises(IndexError, match=f"between 0 and {len(array) - 1}"):
            rows[place]
