"""Cells that do not fit are told by column and row, as data too."""

import numpy as np
import polars as pl
import pytest

from rareclass.errors import InputError
from rareclass.tables.cells import LARGEST_NUMBER, read_dates, read_numbers, read_strings


@pytest.mark.parametrize("bad", ["abc", "inf", "1e300"])
def test_a_number_that_is_none_names_its_row(bad: str) -> None:
    with pytest.raises(InputError, match=r"'a'.* row 12") as caught:
        read_numbers(pl.Series("a", ["1", None, bad, bad]), 10)
    assert (caught.value.column, caught.value.row) == ("a", 12)


@pytest.mark.parametrize("bad", [np.inf, -np.inf, 2.0 * LARGEST_NUMBER])
def test_numbers_as_such_are_looked_at_too(bad: float) -> None:
    fine = pl.Series("a", [1.0, None, LARGEST_NUMBER])
    assert read_numbers(fine, 1).equals(fine)
    assert read_numbers(pl.Series("a", [np.nan, 2.0]), 1).to_list() == [None, 2.0]
    with pytest.raises(InputError, match="row 2") as caught:
        read_numbers(pl.Series("a", [1.0, bad, np.nan]), 1)
    assert caught.value.row == 2


def test_dates_and_types_name_their_column() -> None:
    with pytest.raises(InputError, match="row 2") as caught:
        read_dates(pl.Series("day", ["2024-01-01", "soon"]), "%Y-%m-%d", 1)
    assert (caught.value.column, caught.value.row) == ("day", 2)
    with pytest.raises(InputError, match="type List") as caught:
        read_strings(pl.Series("words", [["a"]]))
    assert (caught.value.column, caught.value.row) == ("words", None)
