"""Cells that do not fit are told by column and row, as data too."""

import numpy as np
import polars as pl
import pytest

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.tables.cells import LARGEST_NUMBER
from rareclass.tables.reading import read_dates, read_numbers, read_strings


@pytest.mark.parametrize("bad", ["abc", "inf", "1e300"])
def test_a_number_that_is_none_names_its_row(bad: str) -> None:
    with refused(ErrorKind.CELL, column="a", row=12):
        read_numbers(pl.Series("a", ["1", None, bad, bad]), 10)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 2.0 * LARGEST_NUMBER])
def test_numbers_as_such_are_looked_at_too(bad: float) -> None:
    fine = pl.Series("a", [1.0, None, LARGEST_NUMBER])
    assert read_numbers(fine, 1).equals(fine)
    assert read_numbers(pl.Series("a", [np.nan, 2.0]), 1).to_list() == [None, 2.0]
    with refused(ErrorKind.CELL, column="a", row=2, value=bad):
        read_numbers(pl.Series("a", [1.0, bad, np.nan]), 1)


def test_dates_and_types_name_their_column() -> None:
    with refused(ErrorKind.CELL, column="day", row=2, value="soon"):
        read_dates(pl.Series("day", ["2024-01-01", "soon"]), "%Y-%m-%d", 1)
    with refused(ErrorKind.CELL, column="words", says="List") as caught:
        read_strings(pl.Series("words", [["a"]]))
    assert caught.value.row is None
