"""Labels of which most are missing: ways to write that, and weights of checked rows."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from rareclass.labels.partial_labels import read_partial_labels
from rareclass.labels.states import UNKNOWN, ListedRows, check_weights

NAN = float("nan")


def read(y, weight=None, pos_label=None, n_rows=None):
    return read_partial_labels(y, weight, pos_label, n_rows or len(y))


UNLABELLED_WAYS = {
    "minus one": np.array([1, -1, 0, 0, -1]),
    "minus one, narrow": np.array([1, -1, 0, 0, -1], dtype=np.int8),
    "minus one, float": np.array([1.0, -1.0, 0.0, 0.0, -1.0]),
    "NaN": np.array([1.0, NAN, 0.0, 0.0, NAN]),
    "NaN and minus one": [1.0, NAN, 0.0, 0.0, -1],
    "None": [1, None, 0, 0, None],
    "None and NaN": [1, None, 0, 0, NAN],
    "minus one in objects": np.array([1, -1, 0, 0, np.int64(-1)], dtype=object),
    "truth values": [True, None, False, False, -1],
    "masked": np.ma.masked_array([1, 1, 0, 0, 0], mask=[0, 1, 0, 0, 1]),
    "masked column": np.ma.masked_array([[1], [7], [0], [0], [0]], mask=[[0], [1], [0], [0], [1]])[
        :, 0
    ],
    "masked and minus one": np.ma.masked_array([1, 1, 0, 0, -1], mask=[0, 1, 0, 0, 0]),
    "text, empty": ["yes", "", "no", "no", ""],
    "text, empty, of numpy": np.array(["yes", "", "no", "no", ""]),
    "text, None": ["yes", None, "no", "no", None],
    "text, NaN": ["yes", NAN, "no", "no", NAN],
    "text, minus one": ["yes", -1, "no", "no", -1],
    "text of numbers": ["1", "-1", "0", "0", "-1"],
    "text of numbers in objects": np.array(["1", "-1", "0", "0", "-1"], dtype=object),
    "text, masked": np.ma.masked_array(["yes", "yes", "no", "no", "x"], mask=[0, 1, 0, 0, 1]),
    "pandas, NaN": pd.Series([1.0, NAN, 0.0, 0.0, NAN]),
    "pandas, nullable": pd.Series([1, pd.NA, 0, 0, pd.NA], dtype="Int64"),
    "pandas, truth values": pd.Series([True, pd.NA, False, False, pd.NA], dtype="boolean"),
    "pandas, text": pd.Series(["yes", pd.NA, "no", "no", pd.NA], dtype="string"),
    "pandas, categories": pd.Series(["yes", None, "no", "no", None], dtype="category"),
    "pandas, objects": pd.Series(["yes", pd.NA, "no", "no", None], dtype=object),
    "polars, numbers": pl.Series([1, None, 0, 0, None]),
    "polars, text": pl.Series(["yes", None, "no", "no", None]),
    "polars, truth values": pl.Series([True, None, False, False, None]),
}


@pytest.mark.parametrize("way", UNLABELLED_WAYS)
def test_every_way_to_leave_a_label_out(way):
    labels = read(UNLABELLED_WAYS[way])
    assert labels.unlabelled().tolist() == [1, 4]
    assert [labels.rows_of(label).tolist() for label in labels.rare] == [[0]]
    assert labels.rows_of(labels.majority).tolist() == [2, 3]
    assert labels.rare[0] in (1, True, "yes", "1")
    assert labels.majority in (0, False, "no", "0")
    assert len(labels.classes) == 2


NAMED = [0, 0, 1, 2, 2, 2, -1]
CODES = st.lists(st.integers(-1, 3), min_size=1, max_size=30).filter(lambda c: max(c) >= 0)


@given(codes=CODES, data=st.data())
def test_rows_of_each_kind_are_those_of_a_loop(codes, data):
    weight = data.draw(
        st.none() | hnp.arrays(float, len(codes), elements=st.sampled_from([0.0, 0.5, 1.0, 3.0]))
    )
    there = [w > 0 for w in (np.ones(len(codes)) if weight is None else weight)]
    known = sorted({code for code, here in zip(codes, there, strict=True) if here and code >= 0})
    if not known:
        with pytest.raises(ValueError, match=r"sample_weight 0|at least one non-zero"):
            read(codes, weight)
        return
    pos_label = data.draw(st.none() | st.sampled_from(known))
    labels = read(codes, weight, pos_label)

    def rows(wanted):
        pairs = enumerate(zip(codes, there, strict=True))
        return [i for i, (code, here) in pairs if here and wanted(code)]

    if pos_label is not None:
        assert labels.rare == (pos_label,)
    for label in labels.rare:
        assert labels.rows_of(label).tolist() == rows(lambda code, k=label: code == k)
        assert labels.labelled_but(label).tolist() == rows(lambda c, k=label: c >= 0 and c != k)
    assert labels.unlabelled().tolist() == rows(lambda code: code < 0)
    assert labels.not_rare().tolist() == rows(lambda code: code not in labels.rare)
    assert labels.present().tolist() == rows(lambda code: True)
    chosen = np.flatnonzero(there)[::2]
    expected = np.ones(len(chosen)) if weight is None else weight[chosen]
    np.testing.assert_array_equal(labels.weight_of(chosen), expected)
    assert (labels.code == UNKNOWN).tolist() == [code < 0 for code in codes]


@pytest.mark.parametrize(
    ("y", "options", "rare", "majority"),
    [
        ([0, 0, 1], {}, (1,), 0),
        ([1, 1, 0], {}, (0,), 1),
        ([0, 1, -1], {}, (1,), 0),  # of equals the last
        ([0, 0, 1, 2, 2], {}, (1, 2), 0),  # of equals the first is the majority
        ([0, 1, 1, 2], {}, (0, 2), 1),
        (["b", "b", "a", "c"], {}, ("a", "c"), "b"),
        ([0, 0, 1, 2], {"weight": [1, 1, 1, 0]}, (1,), 0),  # a label without weight gets no ball
        ([3, 3, -1], {}, (3,), -1),  # a stand-in where there is no other label
        (["x", None, "x"], {}, ("x",), "not x"),
        ([True, None, None], {}, (True,), False),
        ([False, None, None], {}, (False,), True),
        (NAMED, {"pos_label": 0}, (0,), 2),
        (NAMED, {"pos_label": [0, 1]}, (0, 1), 2),
        (NAMED, {"pos_label": (2,)}, (2,), 0),
        (NAMED, {"pos_label": np.array([1, 2])}, (1, 2), 0),
        (NAMED, {"pos_label": [0, 1, 2]}, (0, 1, 2), -1),
    ],
)
def test_which_labels_are_rare_where_they_are_named_and_where_nobody_says(
    y, options, rare, majority
):
    labels = read(y, **options)
    assert (labels.rare, labels.majority) == (rare, majority)
    assert labels.classes.tolist() == sorted({*labels.classes.tolist()})
    for row, label in enumerate(y):
        known = label is not None and not (isinstance(label, int) and label == -1)
        assert labels.code[row] == (labels.classes.tolist().index(label) if known else UNKNOWN)


@pytest.mark.parametrize(
    ("y", "options", "message"),
    [
        ([-1, None, NAN], {}, r"no row has a label: all are unlabelled \(-1, None or NaN\)\. Give"),
        (["", ""], {}, "no row has a label"),
        ([0, 1, -1], {"weight": [0, 0, 1]}, "every row with a label has sample_weight 0"),
        ([0, 1], {"weight": [1, -1]}, r"sample_weight\[1\] = -1 is not a finite"),
        ([0, 1], {"weight": [1, 1, 1]}, "sample_weight"),
        ([0, 1], {"pos_label": 2}, r"pos_label=2 is not among the labels \[0, 1\]"),
        ([0, 1], {"pos_label": [1, 5]}, "pos_label=5 is not among"),
        ([0, 1], {"pos_label": "1"}, "pos_label='1' is not among"),
        ([0, 1], {"pos_label": 1, "weight": [1, 0]}, "pos_label=1 has no row"),
        ([0.0, np.inf], {}, "Input y contains infinity: row 1. Unlabelled rows are -1, None or N"),
        ([0.5, 1.2, 3.7], {}, "Unknown label type"),
        ([-1, 0, b"yes"], {}, "Unknown label type: the label of row 2 is a bytes"),
        ([0, 1, -1], {"n_rows": 4}, r"inconsistent numbers of samples: \[4, 3\]"),
        (None, {"n_rows": 4}, "requires y to be passed, but the target y is None"),
    ],
)
def test_labels_that_will_not_do(y, options, message):
    with pytest.raises(ValueError, match=message):
        read(y, **options)


def listed(rows, chances):
    chances = np.array(chances, float)
    return ListedRows(np.array(rows), chances < 1.0, chances)


def test_weights_of_two_rounds():
    first = listed([0, 1, 2], [1.0, 0.25, 0.25])
    second = listed([3, 4], [1.0, 0.5])
    known_after = np.array([1, 1, 1, 2, 2, 0, -1, 2])
    weight = check_weights(known_after, [first, second])
    by_first = np.array([1, 4, 4, 0, 0, 1, 0, 0])
    by_second = np.array([1, 1, 1, 1, 2, 1, 0, 0])
    np.testing.assert_allclose(weight, (2 * by_first + by_second) / 3)


@pytest.mark.parametrize(
    ("known_after", "rounds", "weight"),
    [
        ([0, 0, -1], [], [1, 1, 0]),
        ([1, 0, -1], [listed([0], [1.0])], [1, 1, 0]),  # no row at random
        ([1, 2, 0], [listed([0], [0.5])], [1, 1, 1]),  # all are known
        ([1, 0, -1], [listed([0, 2], [0.5, 0.5])], [1, 1, 0]),  # a verdict is missing
        ([1, -1, 2, -1], [listed([0, 1], [0.5, 0.5]), listed([2], [0.25])], [1, 0, 4, 0]),
    ],
)
def test_known_rows_count_once_where_a_round_says_no_more(known_after, rounds, weight):
    assert check_weights(np.array(known_after), rounds).tolist() == weight


@given(st.integers(0, 2**32 - 1))
def test_sums_are_unbiased_where_rounds_depend_on_what_was_found(seed):
    """Mean over all draws of two rounds; the rule of the second goes by what the first found."""
    rng = np.random.default_rng(seed)
    n = 5
    f = rng.normal(size=n)
    estimates, chances = [], []
    for a in range(n):  # first: one row of five at random
        known_after = np.full(n, -1)
        known_after[a] = 1
        left = np.flatnonzero(known_after < 0)
        by_rule = left[np.argmax(f[left] * np.sign(f[a]))]  # takes one by a rule
        left = left[left != by_rule]
        uneven = np.array([0.5, 0.3, 0.2])  # second: one of three with unequal chances
        for b, chance in zip(left, uneven, strict=True):
            after = known_after.copy()
            after[[by_rule, b]] = 2
            rounds = [listed([a], [1 / n]), listed([by_rule, b], [1.0, chance])]
            estimates.append(check_weights(after, rounds) @ f)
            chances.append(chance / n)
    assert sum(chances) == pytest.approx(1.0)
    assert np.dot(estimates, chances) == pytest.approx(f.sum())
