"""Which labels are the rare class."""

import datetime as dt
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
import pytest

from faults import refused
from rareclass.encoding.target import labels_as_text, read_rare_or_rest
from rareclass.errors import ErrorKind
from rareclass.labels.spelling import label_value
from rareclass.labels.two_classes import label_array


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["none", "-", "?", "x"])])
def test_marks_of_empty_cells_may_be_labels(dtype):
    labels = labels_as_text(pl.Series(["none", "-", "?", "x", None], dtype=dtype))
    assert labels.to_list() == ["none", "-", "?", "x", None]


@pytest.mark.parametrize("rest", ["none", "NA", "?", "null", "-", "nan", "no", "0"])
def test_marks_of_emptiness_are_labels_to_a_stream_as_they_are_to_a_fit(rest):
    """Where the rare label is named, all but nothing at all is a label of the rest."""
    text = pl.Series(["fraud", rest, "", None, " "])
    read = read_rare_or_rest(text, "fraud")
    assert read.is_nan().to_list() == labels_as_text(text).is_null().to_list()
    np.testing.assert_array_equal(read[:2], [1.0, 0.0])
    assert read_rare_or_rest(text[1:2], rest).to_list() == [1.0]


def test_long_whole_numbers_are_different_labels():
    for largest in (2**53, 10**19, 10**25, 10**400):
        labels = [str(largest + k) for k in range(5)]
        assert (
            len({label_value(label) for label in (*labels, *(f"-{each}" for each in labels))}) == 10
        )
        for label in labels:
            assert label_value(f" +00{label} ") == label_value(label)
    assert label_value("9007199254740991.0") == label_value("9007199254740991") == 2.0**53 - 1


@pytest.mark.parametrize(
    "cells",
    [
        [[1]],
        [{"a": 1}, None],
        [b"a", b"b"],
        np.ones(1, "m8[ms]"),
        [dt.time(1), None],
        [dt.datetime(2024, 1, 1, tzinfo=dt.UTC)],
        [None, dt.datetime(2024, 1, 1, tzinfo=ZoneInfo("Asia/Tokyo"))],
    ],
)
def test_types_that_are_no_labels_are_refused_from_a_column_and_in_python(cells):
    cells = pl.Series("y", cells)
    for read in (labels_as_text, lambda y: read_rare_or_rest(y, "a")):
        with refused(ErrorKind.LABELS, column="y"):
            read(cells)
    with refused(ErrorKind.LABELS):
        label_array(np.array([*cells.drop_nulls(), None], dtype=object)[:-1])
