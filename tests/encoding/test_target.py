"""Which labels are the rare class."""

import polars as pl
import pytest

from rareclass.encoding.target import is_rare, label_counts, labels_as_text, rare_class_among
from rareclass.errors import InputError

LETTERS = pl.Series(["a"] * 3 + ["A"] * 5 + ["b"] * 9)


def test_labels_that_differ_in_case_or_spelling_are_two() -> None:
    found = rare_class_among(label_counts(LETTERS), "a")
    assert (found.label, found.others, found.counts["a"]) == ("a", ["b", "A"], 3)
    assert is_rare(LETTERS, "a", found.counts).sum() == 3
    assert rare_class_among(label_counts(pl.Series(["01", "1", "1", "2"])), "01").counts["01"] == 1


def test_asking_loosely_for_one_of_two_alike_is_refused() -> None:
    assert rare_class_among(label_counts(pl.Series(["True", "False"])), "true").label == "True"
    with pytest.raises(InputError, match="no row"):
        rare_class_among(label_counts(pl.Series(["True", "TRUE", "x"])), "true")


def test_a_new_file_may_write_the_rare_class_otherwise() -> None:
    known = ["True", "False"]
    assert is_rare(pl.Series(["true", "false"]), "True", known).tolist() == [True, False]
    assert is_rare(pl.Series(["1", "0"]), "1.00", ["0", "1.00"]).tolist() == [True, False]
    # Written exactly somewhere: then nothing else is it.
    assert is_rare(pl.Series(["True", "true"]), "True", known).tolist() == [True, False]
    # Known from training as another class.
    assert not is_rare(pl.Series(["A", "b"]), "a", ["a", "A", "b"]).any()


@pytest.mark.parametrize("dtype", [pl.String, pl.Categorical, pl.Enum(["none", "-", "?", "x"])])
def test_marks_of_empty_cells_may_be_labels(dtype: pl.DataType) -> None:
    labels = labels_as_text(pl.Series(["none", "-", "?", "x", None], dtype=dtype))
    assert labels.to_list() == ["none", "-", "?", "x", None]
