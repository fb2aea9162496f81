"""What columns are taken for, and what never happens to a genuine measurement."""

import datetime as dt
import re
from dataclasses import replace
from unittest.mock import patch

import numpy as np
import polars as pl
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from faults import refused
from made_tables import written
from rareclass.encoding.training_table import plan_reading, read_training_table
from rareclass.errors import ErrorKind
from rareclass.rows import from_table
from rareclass.tables import columns
from rareclass.tables.cells import LARGEST_NUMBER, word_of, written_numbers
from rareclass.tables.columns import FactsGatherer, facts_for_kind, facts_of, kind_of
from rareclass.tables.dates import read_written
from rareclass.tables.reading import (
    CellReading,
    read_cells,
    read_dates,
    read_numbers,
    text_of_values,
)
from rareclass.tables.table_file import open_table
from rareclass.tables.text_columns import CellProfile

N = 200
GENERATOR = np.random.default_rng(0)


def understood(folder, cells, name="x", suffix=".csv"):
    table = pl.DataFrame({name: cells}, strict=False).with_columns(
        beside=pl.Series(GENERATOR.normal(size=N)), y=pl.int_range(N) % 10 == 0
    )
    file = open_table(written(table, folder / f"t{suffix}"))
    assert not hasattr(file, "read")
    return read_training_table(plan_reading(file, "y")).columns[0]


WORDS = ["red wide chair with arms", "old lamp for the desk", "a box of nails and screws"]
KINDS = {
    "number": GENERATOR.normal(size=N),
    "boolean": GENERATOR.random(N) < 0.5,
    "date": [dt.date(2020, 1, 1) + dt.timedelta(days=int(k)) for k in GENERATOR.integers(0, 99, N)],
    "category": GENERATOR.choice(["a", "b", "c"], N),
    "high-cardinality category": [f"v{k}" for k in GENERATOR.integers(0, 90, N)],
    "text": [f"{WORDS[k % 3]} {k}" for k in range(N)],
    "constant": ["same"] * N,
    "id-like": [f"u{k * 7919 % 99991}" for k in range(N)],
}


@pytest.mark.sampled(5)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_in_both_formats(tmp_path, kind, suffix):
    column = understood(tmp_path, KINDS[kind], suffix=suffix)
    assert column.kind == kind
    assert column.treatment


@pytest.mark.parametrize(
    ("name", "cells", "kind"),
    [
        ("position", np.arange(N), "id-like"),
        ("sorted_sparse", np.arange(N) ** 2, "id-like"),
        ("order_id", GENERATOR.permutation(N) * 37 + 5, "id-like"),
        ("orderId", GENERATOR.permutation(N) * 37 + 5, "id-like"),
        ("amount", GENERATOR.permutation(N) * 37 + 5, "number"),
        ("paid", GENERATOR.permutation(N) * 37 + 5, "number"),
        ("customer_id", GENERATOR.integers(0, 50, N), "number"),
        ("grid", GENERATOR.permutation(N) * 37 + 5, "number"),
        ("id", np.arange(N) + 0.5, "number"),
    ],
)
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_whole_numbers_are_dropped_only_when_they_number_the_rows(
    tmp_path, name, cells, kind, suffix
):
    assert understood(tmp_path, cells, name, suffix).kind == kind


def test_one_value_and_empty_cells_is_not_constant(tmp_path):
    assert understood(tmp_path, [1 if k % 2 else None for k in range(N)]).is_used


@pytest.mark.parametrize(
    ("time", "hour_and_minute"),
    [
        ("12:30 am", (0, 30)),
        ("12:30 PM", (12, 30)),
        ("1:05 pm", (13, 5)),
        ("11:59:60 am", (12, 0)),
        ("13:00 pm", None),
        ("10:60 am", None),
        ("10:00:61 am", None),
    ],
)
def test_clocks_of_twelve_hours_and_leap_seconds(time, hour_and_minute):
    (read,) = read_written(pl.Series([f"2024-03-01 {time}"]), "%Y-%m-%d").local
    assert read == (hour_and_minute and dt.datetime(2024, 3, 1, *hour_and_minute))


@pytest.mark.parametrize("number", [0.0, -3.0, 2.0**62, -(2.0**63), 2.0**63, 1e300, 0.1])
def test_a_number_as_a_word_is_written_as_a_column_of_it_is(number):
    whole = number.is_integer() and abs(number) < 2**63
    column = pl.Series([number]).cast(pl.Int64 if whole else pl.Float64).cast(pl.String)
    assert word_of(number) == column[0]


def test_codes_with_few_letters_can_be_declared_categories(tmp_path):
    cells = [f"{k % 60}" for k in range(N)]
    cells[100] = "V22"
    path = tmp_path / "t.csv"
    pl.DataFrame({"code": cells, "y": [k % 10 == 0 for k in range(N)]}).write_csv(path)
    file = open_table(path)
    with refused(ErrorKind.CELL, column="code", row=101, value="V22", says="all but 1 of its"):
        read_training_table(plan_reading(file, "y"))
    column = read_training_table(plan_reading(file, "y", categories=["code"])).columns[0]
    assert column.kind == "high-cardinality category"


@given(
    values=st.lists(
        st.one_of(st.none(), st.floats(-1e30, 1e30, allow_nan=False)), min_size=1, max_size=30
    )
)
def test_numbers_survive_text(values):
    cells = pl.Series("x", ["" if value is None else repr(value) for value in values])
    assert read_numbers(cells, 1).to_list() == values
    profile = CellProfile()
    profile.add(cells, 1)
    assert profile.n_numbers == profile.n_present == sum(value is not None for value in values)


@given(position=st.integers(0, 99), first_row=st.integers(1, 10**6))
def test_errors_name_the_row_of_the_file(position, first_row):
    cells = ["1"] * 100
    cells[position] = "bad"
    with refused(ErrorKind.CELL, column="x", row=first_row + position, value="bad"):
        read_numbers(pl.Series("x", cells), first_row)
    cells = ["2020-02-01"] * 100
    cells[position] = "2020-02-31"
    with refused(ErrorKind.CELL, column="x", row=first_row + position, value="2020-02-31"):
        read_dates(pl.Series("x", cells), "%Y-%m-%d", first_row)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 2.0 * LARGEST_NUMBER, "abc", "inf", "1e300"])
def test_a_number_that_is_none_names_its_row(bad):
    good = [str, float][isinstance(bad, float)]
    fine = pl.Series("a", [good(1), None, good(LARGEST_NUMBER)])
    assert read_numbers(fine, 1).to_list() == [1.0, None, LARGEST_NUMBER]
    with refused(ErrorKind.CELL, column="a", row=12):
        read_numbers(pl.Series("a", [good(1), None, bad, bad], strict=False), 10)
    assert read_numbers(pl.Series("a", [np.nan, 2.0]), 1).to_list() == [None, 2.0]


@pytest.mark.parametrize("reads_as", ["number", "date", "string"])
@pytest.mark.parametrize(
    ("cell", "fits", "says"),
    [
        (["a"], (), "List"),
        ({"a": 1}, (), "Struct"),
        (b"a", (), "Binary"),
        (dt.timedelta(1), ("number",), "Duration"),
        (dt.date(2020, 1, 1), ("date", "string"), "Date"),
        (dt.time(1), ("string",), "Time"),
        (True, ("string",), "True"),
    ],
)
def test_wrong_types_are_named_by_their_row(reads_as, cell, fits, says):
    cells = pl.Series("x", [None, None, cell, cell])
    if reads_as in fits:
        assert read_cells(cells, CellReading(reads_as), 7).null_count() == 2
        return
    says = "Boolean" if cell is True and reads_as == "date" else says
    with refused(ErrorKind.CELL, column="x", row=9, says=says) as caught:
        read_cells(cells, CellReading(reads_as), 7)
    assert "text" not in str(caught.value)


def test_only_numbers_with_a_currency_are_money():
    cells = pl.Series(["12", "\u20ac 3", "4 kg", "5 %", "6 EUR", "-7", "", "abc", None])
    found = written_numbers(cells, "1,234.5")
    assert found.values.to_list() == [12, 3, 4, 5, 6, -7, None, None, None]
    assert found.is_money.to_list()[:6] == [False, True, False, False, True, False]


@pytest.mark.parametrize("row", [1, 4, 5])
def test_a_decimal_comma_that_is_no_number_is_named_by_its_row(tmp_path, row):
    path = tmp_path / "t.csv"
    cells = [f"1,{k if k != row else 'x'};2,5;{k % 2}" for k in range(1, 6)]
    path.write_text("\n".join(["a;b;y", *cells]))
    with refused(ErrorKind.CELL, says=f"'1,x' at row {row} "):
        from_table(path, "y")


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.sampled_from([10**400, -(2**53) - 1, 1e16, 3.0, -0.0]),
)


@given(st.lists(VALUES, max_size=6))
def test_each_value_is_written_by_itself(cells):
    """A stream may be cut anywhere: what stands beside a value does not change its text."""
    alone = [text_of_values([cell])[0] for cell in cells]
    assert text_of_values(cells).to_list() == alone
    for cell, text in zip(cells, alone, strict=True):
        if isinstance(cell, float) and cell == cell:
            assert text is not None
            assert float(text) == cell


@pytest.mark.parametrize(
    ("cells", "words"),
    [(["true", "False"], {1.0: "true", 0.0: "false"}), (["1", "0"], {}), (["true", "2"], {})],
)
def test_truth_values_are_told_as_they_were_written(tmp_path, cells, words):
    path = tmp_path / "t.csv"
    path.write_text("x,y\n" + "".join(f"{cells[k % 2]},{k % 5}\n" for k in range(40)))
    assert (
        read_training_table(plan_reading(open_table(path), "y")).columns[0].words_of_truth == words
    )


def test_words_beside_numbers_are_named_in_the_order_of_the_table():
    """The same table gets the same message in every process."""
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(40)
        profile = CellProfile()
        profile.add(pl.Series("a", ["12", *(f"x{k}" for k in order), *(f"x{k}" for k in order)]), 1)
        named = re.findall(r"x\d+", profile.other_words)
        assert named == sorted({f"x{k}" for k in order[1:]})[: len(named)]


NUMBERS = st.lists(st.none() | st.integers(-3, 3) | st.sampled_from([0.5, 1e300]), max_size=80)
CELLS_OF_WORDS = st.lists(
    st.none() | st.sampled_from(["a", "b c", "d e f", "", "true"]), max_size=80
)


@given(NUMBERS | CELLS_OF_WORDS, st.integers(1, 30))
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
