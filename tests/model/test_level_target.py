"""Ordered targets: which labels are levels, in which order, and what is refused."""

import re

import numpy as np
import polars as pl
import pytest

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.labels.levels import MOST_LEVELS
from rareclass.labels.spelling import codes_among
from rareclass.model.targets import FoundLabels, level_target, rare_target

MEASURED = [str(k / 4) for k in range(MOST_LEVELS + 1)] * 2


def found(labels):
    row_of = lambda label: labels.index(label) + 1  # noqa: E731
    table = pl.Series(labels, dtype=pl.String).value_counts(sort=True)
    return FoundLabels("grade", dict(table.iter_rows()), row_of)


def read(*labels, levels=None):
    return level_target(found(list(labels)), levels)


def test_numbers_are_ordered_by_size_and_not_as_text():
    target = read("10", "9", "-1", "2.5", "9")
    assert target.levels == ("-1", "2.5", "9", "10")
    assert target.codes(pl.Series(["-1", "2.5", "9", "10"])).tolist() == [0, 1, 2, 3]
    assert target.level_counts == (1, 1, 2, 1)
    assert target.majority == 2
    assert target.n_codes == 4
    assert read(*MEASURED[1 : MOST_LEVELS + 1] * 2).n_codes == MOST_LEVELS
    # A number that is written in two ways is one level.
    target = read("1", "01", "1e0", "2")
    assert target.levels == ("1", "2")
    assert target.level_counts == (3, 1)
    assert target.notes() == [
        "labels in other spellings were read as levels: '01' as 1, '1e0' as 1."
    ]


def test_levels_given_have_their_order_and_may_be_empty():
    target = read("low", "high", "High", "low", levels=("low", "medium", "high"))
    written = pl.Series(["low", "high", "High", "?", None])
    assert target.codes(written).tolist() == [0, 2, 2, -1, -1]
    assert target.level_counts == (2, 0, 2)
    assert target.majority == 0
    assert "no row is of level medium." in target.notes()
    said = target.description()
    assert said[0] == "Levels of grade, lowest first: low (2), medium (0), high (2)"
    assert said[1] == "Majority level: low, 2 rows (50.00%)"
    downwards = read("1", "2", "3", levels=("3", "2", "1"))
    assert downwards.codes(pl.Series(["3", "2.0", "1"])).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_others", [1, 5, 6, 40])
def test_labels_of_the_majority_are_named_or_counted(n_others):
    labels = ["rare", *[f"other {k}" for k in range(n_others) for _ in range(20)]]
    target = rare_target(found(labels).counts, "rare")
    said = target.description()[1]
    more = re.search(r" and (\d+) more", said)
    assert said.count("(20)") + int(more[1] if more else 0) == n_others
    assert more is None or int(more[1]) > 0


@pytest.mark.parametrize(("n_rare", "is_told"), [(1, False), (5, False), (6, True), (9, True)])
def test_a_class_of_more_than_half_of_the_rows_is_doubted(n_rare, is_told):
    target = rare_target(found(["yes"] * n_rare + ["no"] * (10 - n_rare)).counts, "yes")
    assert ["more than half" in note for note in target.notes()] == [True] * is_told


@pytest.mark.parametrize(("n_rare", "is_told"), [(200.0, False), (200.4, False), (230.0, True)])
def test_copies_among_rare_rows_held_out_are_told(n_rare, is_told):
    target = rare_target({"no": 2, "yes": 1}, "yes")
    notes = target.notes_on_held_out(np.ones(200, np.int16), 1e3, n_rare)
    assert ["200 of the 230 rare rows" in note for note in notes] == [True] * is_told


def test_exact_spelling_goes_before_the_same_value():
    assert codes_among(["a", "A"], ["A", "a"]) == {"a": 1, "A": 0}
    assert codes_among(["á", "1.0"], ["1", "01"]) == {}


@pytest.mark.parametrize(
    ("labels", "levels", "says"),
    [
        (
            ["low", "high", "low"],
            None,
            ("row 1 of the target 'grade': 'low' is text", "levels=); there are 'low', 'high'"),
        ),
        (["3", "4", "1,5", "4"], None, ("row 3 of the target 'grade': '1,5' is text",)),
        (["1", "2", "1_0"], None, ("'1_0'",)),
        (
            ["low", "hihg", "?", "high"],
            ("low", "high"),
            (
                "row 2 of the target 'grade': 'hihg'",
                "levels 'low', 'high' (",
                "mean 'high'",
                "leave such rows",
            ),
        ),
        (["6", "6.0"], None, ("one class only: '6' in all 2 rows",)),
        (["low", "low"], ("low", "high"), ("one class only: 'low'",)),
        # A measurement is no level, and cuts are suggested.
        (MEASURED, None, ("101 different numbers", "12.5, 18.75, 22.5 (its median")),
        (["1", "inf", "2"], None, ("row 2 of the target 'grade': 'inf' is not a level",)),
        ([], None, ("No row has a target value",)),
    ],
)
def test_labels_that_are_no_levels_are_refused_with_their_row(labels, levels, says):
    with refused(ErrorKind.LABELS) as caught:
        read(*labels, levels=levels)
    assert all(each in str(caught.value) for each in says)


def test_few_held_out_rows_of_a_level_are_told():
    target = read(*"1112223334")
    notes = target.notes_on_held_out(np.array([0] * 9 + [1], np.int16), 10.0, 0.0)
    assert "few distinct rows of level 2 (1) were held out" in notes[0]
    assert "no row of levels 3, 4 was held out" in notes[1]
    assert len(notes) == 2
    y = np.repeat(np.arange(4, dtype=np.int16), 9)
    notes = target.notes_on_held_out(y, 40.0, 0.0)
    assert "only 36 of the 40 rows held out are distinct" in notes[0]


def test_numbers_in_an_order_that_is_not_their_size_are_noted():
    assert read("3", "4", "5", levels=("5", "3", "4")).notes() == [
        "the levels are numbers that levels= puts in another order than their size: 5, 3, 4, the "
        "last ranked first."
    ]
    for levels in (("3", "4", "5"), ("5", "4", "3")):
        assert read("3", "4", "5", levels=levels).notes() == []
