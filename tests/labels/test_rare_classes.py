"""The label of the majority, the rare labels, and the class of each rare row."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of
from rareclass.labels.two_classes import MOST_CLASSES, read_labels

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
