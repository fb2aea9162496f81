"""What is known of a column does not depend on how it was cut into batches."""

from dataclasses import replace
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from rareclass.tables import columns
from rareclass.tables.columns import FactsGatherer, facts_for_kind, facts_of, kind_of
from rareclass.tables.text_columns import CellProfile

NUMBERS = st.lists(st.none() | st.integers(-3, 3) | st.sampled_from([0.5, 1e300]), max_size=80)
WORDS = st.lists(st.none() | st.sampled_from(["a", "b c", "d e f", "", "true"]), max_size=80)


@given(NUMBERS | WORDS, st.integers(1, 30))
def test_batches_and_the_whole_agree(cells, size):
    numbers = not any(isinstance(cell, str) for cell in cells)
    column = pl.Series("x", cells, dtype=pl.Float64 if numbers else pl.String, strict=False)
    gatherer = FactsGatherer("x", column.dtype)
    for start in range(0, len(column), size):
        gatherer.add(column.slice(start, size))
    facts, whole = gatherer.facts(), facts_of(column)
    assert replace(facts, values=None) == replace(whole, values=None) or np.isnan(facts.low)
    assert set(facts.values or ()) == set(whole.values or ()) == set(column.drop_nulls())
    assert facts.n_distinct == column.drop_nulls().n_unique()
    present = column.drop_nulls()
    if numbers and len(present):
        in_order = present.is_sorted() or present.is_sorted(descending=True)
        assert facts.is_in_order == in_order
        assert (facts.low, facts.high) == (present.min(), present.max())


SHARES = st.lists(st.sampled_from([0, 1, 0.5, None]), min_size=18)


@example([0, 1], False)
@example([0, 1, 0.5], False)
@given(NUMBERS | SHARES, st.booleans())
def test_few_counts_tell_the_kind_that_all_facts_tell(cells, whole):
    whole = whole and all(cell is None or cell in range(-3, 4) for cell in cells)
    column = pl.Series("x", cells, dtype=pl.Float64, strict=False)
    few, every = facts_for_kind(column, whole), facts_of(column)
    assert kind_of(few, whole, False) == kind_of(every, whole, False)


# Cells that each style of numbers reads, plain numbers among them.
FITTING = {
    "1,234.5": {"1.5", "1.500", "3", "1,500", "1,234.5"},
    "1.234,5": {"1.500", "3", "1,500", "2,5", "1.234,5"},
}
TEXTS = ["1,500", "1,234.5", "2,5", "1.234,5", "soon"]


@given(
    st.lists(st.sampled_from(["1.5", "1.500", "3", "", "true", *TEXTS]), max_size=12),
    st.integers(1, 5),
)
def test_text_in_batches_is_known_by_its_first_cell_and_its_styles(cells, size):
    profile = CellProfile()
    for start in range(0, len(cells), size):
        profile.add(pl.Series(cells[start : start + size], dtype=pl.String), start + 1)
    first = next((k for k, cell in enumerate(cells) if cell in TEXTS), None)
    assert profile.first_text == ("" if first is None else cells[first])
    assert profile.first_text_row == (0 if first is None else first + 1)
    for style, fitting in FITTING.items():
        fits = set(cells) - {"", "true"} <= fitting
        assert (style in profile.number_styles) == fits, style


@pytest.mark.parametrize("n_distinct", [3_000, 40_000, 200_000])
def test_many_distinct_values_are_estimated_well(n_distinct):
    values = np.random.default_rng(0).integers(0, n_distinct, 400_000) * 1.5
    gatherer = FactsGatherer("x", pl.Float64())
    for part in np.array_split(values, 9):
        gatherer.add(pl.Series("x", part))
    exact = len(np.unique(values))
    found = gatherer.facts().n_distinct
    assert found == pytest.approx(exact, rel=0.03)
    if exact < columns.COUNTED_VALUES:
        assert found == exact


def test_a_key_is_known_for_one():
    gatherer = FactsGatherer("x", pl.Float64())
    for start in range(0, 300_000, 50_000):
        gatherer.add(pl.Series("x", np.arange(start, start + 50_000) * 2.0))
    facts = gatherer.facts()
    assert facts.n_distinct == facts.n_rows == 300_000
    assert facts.is_in_order


WRITTEN = ("7", "0.125", "007", "+3", "-.5", "1.234", "1e3", "20240101", "1" * 20)


@given(
    st.lists(st.sampled_from((*WRITTEN, " 4", "nan", "x", "", None, "true")), min_size=1),
    st.integers(1, 9),
)
def test_numbers_and_blanks_alone_are_the_same_facts_as_among_other_cells(cells, size):
    quick, slow, whole = CellProfile(), CellProfile(), CellProfile()
    column = pl.Series(cells, dtype=pl.String)
    whole.add(column, 1)
    for start in range(0, len(cells), size):
        quick.add(column[start : start + size], start + 1)
        with patch("rareclass.tables.text_columns.are_plain", lambda numbers: False):
            slow.add(column[start : start + size], start + 1)
    assert vars(quick.dates) == vars(slow.dates)
    assert replace(quick, dates=slow.dates) == slow
    assert replace(quick, dates=whole.dates, sample=whole.sample) == whole
