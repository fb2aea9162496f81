"""Which labels are the rare class."""

import polars as pl
import pytest

from rareclass.encoding.target import labels_as_text


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["none", "-", "?", "x"])])
def test_marks_of_empty_cells_may_be_labels(dtype: pl.DataType) -> None:
    labels = labels_as_text(pl.Series(["none", "-", "?", "x", None], dtype=dtype))
    assert labels.to_list() == ["none", "-", "?", "x", None]
