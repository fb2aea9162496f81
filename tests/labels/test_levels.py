"""Ordered targets: their order, their majority, and what is wrong with them."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.labels.levels import encode, order_labels, read_levels


@given(
    st.lists(st.tuples(st.integers(-3, 3), st.sampled_from([0.0, 0.5, 1.0, 2.0])), min_size=2),
    st.booleans(),
)
def test_rows_are_split_by_the_level_of_greatest_weight(rows, weighted):
    y, weight = np.array([row[0] for row in rows]), np.array([row[1] for row in rows])
    kept = weight > 0 if weighted else np.ones(len(y), dtype=bool)
    if len(np.unique(y[kept])) < 2:
        return
    found = read_levels(y, weight if weighted else None)
    weight = weight if weighted else np.ones(len(y))
    assert found.classes.tolist() == np.unique(y[kept]).tolist()
    mass = {level: weight[y == level].sum() for level in found.classes}
    assert mass[found.majority_label] == max(mass.values())
    is_majority = y == found.majority_label
    np.testing.assert_array_equal(found.majority, np.flatnonzero(is_majority & kept))
    np.testing.assert_array_equal(found.rare, np.flatnonzero(~is_majority & kept))
    np.testing.assert_array_equal(found.classes[found.codes], y[found.rare])
    if weighted:
        np.testing.assert_array_equal(found.rare_weight, weight[found.rare] / weight.max())
        np.testing.assert_array_equal(found.majority_weight, weight[found.majority] / weight.max())
    else:
        assert found.majority_weight is None


def test_equal_weights_are_settled_by_rows_then_by_order_and_levels_without_rows_stay_in_it():
    assert read_levels([2, 1]).majority_label == 1
    assert read_levels([1, 2, 2], [2.0, 1.0, 1.0]).majority_label == 2
    found = read_levels([0, 5, 5], levels=[0, 3, 5])
    assert (found.classes.tolist(), found.majority_code) == ([0, 3, 5], 2)


def test_columns_that_bring_their_order_along():
    names, y = ["low", "mid", "high"], ["high", "low", "low"]
    for column in (
        pd.Categorical(y, names, ordered=True),
        pd.Series(pd.Categorical(y, names, ordered=True)),
        pl.Series(y, dtype=pl.Enum(names)),
    ):
        levels, codes = encode(column)
        assert levels.tolist() == names
        assert codes.tolist() == [2, 0, 0]
    with pytest.raises(ValueError, match="text, which has no order"):
        encode(pd.Categorical(y, names))
    # So do numbers, booleans and halves.
    assert encode([True, False])[1].tolist() == [1, 0]
    assert encode([2.5, -1.0, 2.5])[0].tolist() == [-1.0, 2.5]
    assert encode(pd.Series([3, 1], dtype="Int64"))[1].tolist() == [1, 0]
    assert encode(np.array([3, 1], dtype=object))[1].tolist() == [1, 0]
    assert encode([1, 2.0], levels=[1, 2])[1].tolist() == [0, 1]  # 2.0 is 2
    assert encode([1, "many"], levels=[1, "many"])[1].tolist() == [0, 1]


@pytest.mark.parametrize(
    ("y", "levels", "message"),  # or more options than levels
    [
        (None, None, "requires y to be passed"),
        ([1, 1], None, "one class only: 1"),
        ([1, 2, np.nan], None, "row 2"),
        (["a", None], ["a", "b"], "row 1"),
        (["low", "high"], None, r"row 0 of y: 'low' is text.*there are 'high', 'low'"),
        ([1, "high"], None, "row 1 of y: 'high' is text"),
        (["low", "hihg"], ["low", "high"], r"row 1 of y: 'hihg' is not among.*Did you mean 'high'"),
        ([1, 2, 7], [1, 2], r"row 2 of y: 7 is not among the levels 1, 2. Add it"),
        ([1, 2], "12", "'12' has no order"),
        ([1, 2], {1, 2}, "has no order"),
        ([1, 2], [1], "fewer than two levels"),
        ([1, 2], [1, 2, 1], "1 is there twice"),
        ([1, 2], [1, None, 2], "at place 2 is empty"),
        (np.linspace(0.01, 1, 100), None, "100 different numbers in 100 rows, a measurement"),
        (np.arange(2000), None, "2,000 different numbers"),
        ([[1, 2], [2, 1]], None, "1d array"),
        ([1, 2], {"n_rows": 3}, "inconsistent numbers of samples"),
        ([1, 2], {"sample_weight": [0.0, 0.0]}, r"is zero|non-zero"),
        ([1, 2], {"sample_weight": [0.0, 1.0]}, "one class only: 2"),
        ([1, 2], {"sample_weight": [-1.0, 1.0]}, "sample_weight"),
    ],
)
def test_what_is_wrong_is_named(y, levels, message):
    options = levels if isinstance(levels, dict) else {"levels": levels}
    with pytest.raises(ValueError, match=message):
        read_levels(y, **options)


@pytest.mark.parametrize("levels", [None, ["low", "high"]])
def test_few_labels_of_many_are_looked_up_for_the_row_that_is_named(levels):
    asked = []  # each of which reads a file again
    words = [f"word {k}" for k in range(5000)]
    with refused(ErrorKind.LABELS, value="word 0"):
        order_labels(words, levels, "y", lambda label: asked.append(label) or words.index(label))
    assert len(asked) <= 13


def test_a_number_in_several_spellings_has_the_shortest_name():
    spelled = [f"{k}{end}" for k in range(50) for end in (".00", "", ".", ".0")]
    names, code_of = order_labels(spelled, None, "y", spelled.index)
    assert names == [str(k) for k in range(50)]
    assert code_of == {label: int(float(label)) for label in spelled}


def test_a_row_of_weight_0_is_absent_whatever_its_label():
    assert read_levels([1, 2, np.nan], [1.0, 1.0, 0.0]).classes.tolist() == [1, 2]
