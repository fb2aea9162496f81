"""Which labels are the rare class."""

import numpy as np
import polars as pl
import pytest

from rareclass.encoding.target import labels_as_text, read_rare_or_rest


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["none", "-", "?", "x"])])
def test_marks_of_empty_cells_may_be_labels(dtype: pl.DataType) -> None:
    labels = labels_as_text(pl.Series(["none", "-", "?", "x", None], dtype=dtype))
    assert labels.to_list() == ["none", "-", "?", "x", None]


@pytest.mark.parametrize("rest", ["none", "NA", "?", "null", "-", "nan", "no", "0"])
def test_marks_of_emptiness_are_labels_to_a_stream_as_they_are_to_a_fit(rest: str) -> None:
    """Where the rare label is named, all but nothing at all is a label of the rest."""
    cells = np.array(["fraud", rest, "", None, " ", np.nan], dtype=object)
    text = pl.Series([None if cell != cell else cell for cell in cells.tolist()], dtype=pl.String)
    read = read_rare_or_rest(cells, "fraud")
    assert not read.wrong.any()
    assert np.isnan(read.values).tolist() == labels_as_text(text).is_null().to_list()
    np.testing.assert_array_equal(read.values[:2], [1.0, 0.0])
    assert read_rare_or_rest(cells[1:2], rest).values.tolist() == [1.0]
