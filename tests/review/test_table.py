"""The labels of a journal: rare are those that `rareclass fit` would take for rare."""

from pathlib import Path
from tempfile import TemporaryDirectory

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass.encoding.target import label_counts, rare_class_among
from rareclass.errors import ErrorKind, InputError
from rareclass.review import open_journal, read_review_table


def opened(counts: dict[str, int], folder: str) -> tuple[str, ...]:
    labels = [label for label, n in counts.items() for _ in range(n)] + [None, None]
    table = pl.DataFrame({"amount": [k % 7 + 0.5 for k in range(len(labels))], "kind": labels})
    return open_journal(Path(folder) / "j.jsonl", read_review_table(table, "kind")).header.rare


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(40, 60))
def test_a_review_and_a_fit_agree_on_what_is_rare(rare: list[int], frequent: int) -> None:
    counts = {f"kind {k}": n for k, n in enumerate(rare)} | {"none": frequent}
    labels = pl.Series([label for label, n in counts.items() for _ in range(n)])
    wanted = rare_class_among(label_counts(labels), None).labels
    with TemporaryDirectory() as folder:
        assert sorted(opened(counts, folder)) == sorted(wanted)


@pytest.mark.parametrize("counts", [{"a": 5}, {"a": 5, "b": 5, "c": 5}])
def test_labels_that_do_not_say_which_is_rare_are_refused(counts: dict[str, int]) -> None:
    with TemporaryDirectory() as folder, pytest.raises(InputError) as refused:
        opened(counts, folder)
    assert refused.value.kind is ErrorKind.LABELS
    assert "--positive" in refused.value.remedy
