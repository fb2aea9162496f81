"""The label of the majority and the rare ones: which rows have which, held in few bytes."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of
from rareclass.labels import two_classes
from rareclass.labels.two_classes import MOST_CLASSES, AllBut, read_labels


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


MANY = list("aaaaaaaaaaaabbbbbccccc")


@given(
    counts=st.lists(st.integers(5, 9), min_size=2, max_size=5),
    weighted=st.booleans(),
    seed=st.integers(0, 99),
)
def test_rows_of_all_rare_classes_are_found(counts, weighted, seed):
    rng = np.random.default_rng(seed)
    y = np.repeat(np.arange(len(counts) + 1), [40, *counts])
    y = rng.permutation(y) * 3 + 7
    weight = rng.integers(0, 3, len(y)).astype(float) if weighted else None
    if weighted:
        weight[[np.flatnonzero(y == label)[-5:] for label in np.unique(y)]] = 1.0
    found = read_labels(y, weight, None, len(y), several=True)
    counts_by_weight = [k for k in range(len(y)) if weight is None or weight[k] > 0.0]
    assert found.pos_label == tuple(range(10, 7 + 3 * len(counts) + 1, 3))
    assert found.rare.tolist() == [k for k in counts_by_weight if y[k] != 7]
    assert found.classes[found.codes].tolist() == y[found.rare].tolist()
    assert np.asarray(found.majority).tolist() == [k for k in counts_by_weight if y[k] == 7]
    assert found.classes.tolist() == sorted(set(y.tolist()))


@pytest.mark.parametrize("pos_label", [None, "b", ["b"], ("b",)])
def test_two_labels_are_one_rare_class(pos_label):
    y = list("aaaabb")
    found, wanted = read_labels(y, None, pos_label, 6, several=True), read_labels(y, None, "b", 6)
    assert (found.codes, found.pos_label, wanted.pos_label) == (None, "b", "b")
    np.testing.assert_array_equal(found.rare, wanted.rare)


def test_a_list_of_rare_classes_says_which_label_is_the_rest():
    found = read_labels(MANY, None, ["a", "c"], len(MANY), several=True)
    assert found.pos_label == ("a", "c")
    assert np.asarray(found.majority).tolist() == [12, 13, 14, 15, 16]
    for one in ("b", 1):
        with pytest.raises(ValueError, match="several rare classes"):
            read_labels(MANY, None, one, len(MANY), several=True)


@pytest.mark.parametrize(
    ("y", "pos_label", "value"),
    [
        (MANY, ["x"], "x"),
        (MANY, ["b"], ["b"]),  # leaves a and c
        (MANY, ["a", "b", "c"], ["a", "b", "c"]),  # leaves none
        (np.arange(3 * MOST_CLASSES + 3) // 3 + 7, None, None),
    ],
)
def test_what_leaves_no_single_rest_is_refused(y, pos_label, value):
    with refused(ErrorKind.LABELS, value=value):
        read_labels(y, None, pos_label, len(y), several=True)


def test_classes_of_few_rows_are_told():
    with pytest.warns(UserWarning, match="fewer than") as told:
        read_labels(list("aaaaaaabbbbbcd"), None, None, 14, several=True)
    (finding,) = [finding_of(each.message) for each in told]
    assert (finding.kind, finding.values) == (FindingKind.FEW_OF_CLASS, {"rows": {"c": 1, "d": 1}})
