"""The two classes of a target: which rows have which, found in few bytes."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.labels import two_classes
from rareclass.labels.two_classes import read_labels


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
