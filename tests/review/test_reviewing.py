"""The loop of a review: lists learn from verdicts; whatever is wrong with a table is named."""

from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.encoding.target import label_counts
from rareclass.errors import ErrorKind
from rareclass.model.targets import rare_target
from rareclass.review import (
    Shares,
    Verdict,
    next_rows,
    open_journal,
    open_list,
    read_review_table,
    read_verdicts,
)
from rareclass.review.reviewing import LEAST_OTHERS, LEAST_RARE

N_ROWS = 200
RARE = np.arange(N_ROWS) % 10 == 3


def payments(known=()):
    rng = np.random.default_rng(0)
    label = np.full(N_ROWS, None, dtype=object)
    for row in known:
        label[row] = "fraud" if RARE[row] else "ok"
    return pl.DataFrame(
        {
            "id": [f"p{k}" for k in range(N_ROWS)],
            "amount": (rng.normal(50, 10, N_ROWS) + 40 * RARE).round(2),
            "hour": rng.integers(0, 24, N_ROWS),
            "country": np.where(RARE & (rng.random(N_ROWS) < 0.5), "XX", "DE"),
            "label": pl.Series(label.tolist(), dtype=pl.String),
        }
    )


def started(tmp_path, known=(), key="id", rare="fraud", rest=("ok",)):
    table = read_review_table(payments(known), "label", key)
    return table, open_journal(tmp_path / "j.jsonl", table, None, rare, rest)


def answer(table, journal, listed):
    place = {key: k for k, key in enumerate(table.keys)}
    journal.add(
        [Verdict(row.key, "fraud" if RARE[place[row.key]] else "ok") for row in listed.round.listed]
    )


def test_lists_go_from_no_case_to_a_model(tmp_path):
    table, journal = started(tmp_path)
    by, found = [], []
    for _ in range(4):
        listed = next_rows(table, journal, budget=20)
        answer(table, journal, listed)
        by.append(listed.scored_by)
        found.append(sum(verdict.label == "fraud" for verdict in journal.verdicts.values()))
    assert by[0] == "nothing"
    assert by[-1] == "verdicts"
    assert by == sorted(by, key=["nothing", "cases", "verdicts"].index)
    assert len(journal.verdicts) == 80  # no row is listed twice
    assert found[-1] >= 15  # of 20; at random: 8
    states = journal.states(table.keys)
    assert states.weight.sum() == pytest.approx(N_ROWS)
    np.testing.assert_array_equal(states.code[states.checked] == 1, RARE[states.checked])


def test_a_list_says_why_and_has_the_cells(tmp_path):
    cases, others = np.flatnonzero(RARE)[:LEAST_RARE], np.flatnonzero(~RARE)[:LEAST_OTHERS]
    table, journal = started(tmp_path, (*cases, *others))
    listed = next_rows(table, journal, budget=10, shares=Shares(0.2, 0.3))
    assert listed.scored_by == "verdicts"
    rows = listed.rows
    assert rows["review reason"].to_list() == ["score"] * 5 + ["teaches"] * 2 + ["random"] * 3
    assert rows["review row"].to_list() == rows["id"].to_list()
    assert rows["review score"][:5].is_sorted(descending=True)
    assert rows["review verdict"].null_count() == 10
    assert rows["review why"].str.contains("p[0-9]").all()  # the nearest rare row
    assert "label" not in rows.columns
    expected = payments().filter(pl.col("id") == rows["id"][0])
    assert rows["amount"][0] == expected["amount"][0]
    # A label of the table is known before the first round: such a row is not listed.
    assert not {*rows["id"]} & {f"p{k}" for k in (*cases, *others)}
    assert journal.rounds[0].model


def test_few_cases_are_enough_to_score_by_and_an_open_list_is_shown_again(tmp_path):
    table, journal = started(tmp_path, np.flatnonzero(RARE)[:3])
    assert open_list(table, journal) is None
    listed = next_rows(table, journal, budget=6)
    assert listed.scored_by == "cases"
    journal.add([Verdict(listed.round.listed[2].key, "ok")])
    again = open_list(table, journal)
    assert again.is_open
    left = listed.rows["review row"].to_list()
    del left[2]
    assert again.rows["review row"].to_list() == left


def test_verdicts_of_a_sheet(tmp_path):
    table, journal = started(tmp_path)
    listed = next_rows(table, journal, budget=4)
    path = tmp_path / "list.csv"
    said = [" fraud", None, "ok", ""]
    listed.rows.with_columns(
        pl.Series("review verdict", said), pl.Series("review note", [None, "?", "a, b", None])
    ).write_csv(path)
    verdicts = read_verdicts(path)
    assert [verdict.label for verdict in verdicts] == ["fraud", "ok"]
    assert [verdict.note for verdict in verdicts] == ["", "a, b"]
    assert journal.add(verdicts, table.keys) == 2
    assert journal.add(read_verdicts(path), table.keys) == 0
    with refused(ErrorKind.MISSING_COLUMN, column="review verdict"):
        read_verdicts(pl.DataFrame({"review row": ["p1"]}))
    with refused(ErrorKind.TOO_FEW_ROWS):
        read_verdicts(pl.DataFrame({"review row": [], "review verdict": []}))


@pytest.mark.parametrize("key", ["00657", "01", "07a"])
def test_a_key_that_was_changed_or_is_there_twice_is_told_with_its_row(tmp_path, key):
    table = read_review_table(pl.DataFrame({"id": [key, "x"], "a": [1, 2]}), "y", "id")
    path = tmp_path / "filled.csv"
    for keys, fact in ((["x", key.lstrip("0")], repr(key)), (["x", key, "x"], "in row 1")):
        pl.DataFrame({"review row": keys, "review verdict": "1"}).write_csv(path)
        with refused(ErrorKind.ROWS, row=len(keys), value=keys[-1], says=fact) as caught:
            read_verdicts(path, table=table)
        assert caught.value.message.startswith(f"{path}, row")


def test_rows_without_a_key_have_numbers(tmp_path):
    table, journal = started(tmp_path, key=None)
    listed = next_rows(table, journal, budget=3)
    first = listed.rows
    assert first["id"].to_list() == [f"p{int(row) - 1}" for row in first["review row"]]
    changed = payments().with_columns(pl.col("amount") + 1)
    other = read_review_table(changed, "label")
    with refused(ErrorKind.ROWS):
        open_journal(journal.path, other)
    # Labels may have been filled in meanwhile.
    open_journal(journal.path, read_review_table(payments([1, 2]), "label"))


def test_a_table_without_the_target_has_no_labels(tmp_path):
    table = read_review_table(payments().drop("label"), "label", "id")
    assert table.labels.null_count() == N_ROWS
    journal = open_journal(tmp_path / "j.jsonl", table, None, "1")
    assert journal.header.rest == ("0",)


def test_bad_input(tmp_path):
    table, journal = started(tmp_path)
    for budget in (0, -3):
        with refused(ErrorKind.SETTING, value=budget):
            next_rows(table, journal, budget=budget)
    assert not journal.rounds
    path = tmp_path / "new.jsonl"
    with refused(ErrorKind.LABELS, column="label"):  # all labels are unknown
        open_journal(path, table)
    some = read_review_table(payments(range(40)), "label", "id")
    with refused(ErrorKind.LABELS, value="fruad", says="fraud"):  # a class without rows
        open_journal(path, some, None, "fruad")
    assert not path.exists()
    assert open_journal(path, some).header.rare == ("fraud",)  # the rarer of two
    everything = read_review_table(payments(range(N_ROWS)), "label", "id")
    with refused(ErrorKind.TOO_FEW_ROWS):
        next_rows(everything, open_journal(path, everything))
    with refused(ErrorKind.COMBINATION):  # another target
        open_journal(path, read_review_table(payments(), "country", "id"))
    odd = payments([3]).with_columns(pl.col("label").replace("fraud", "scam"))
    with refused(ErrorKind.LABELS, value="scam"):  # in the table first, not in the journal
        next_rows(read_review_table(odd, "label", "id"), open_journal(path, some))
    with refused(ErrorKind.MISSING_COLUMN, column="no"):
        read_review_table(payments(), "label", "no")
    with refused(ErrorKind.ROWS, column="country", row=1):
        read_review_table(payments(), "label", "country")


def opened(counts, folder):
    labels = [label for label, n in counts.items() for _ in range(n)] + [None, None]
    table = pl.DataFrame({"amount": [k % 7 + 0.5 for k in range(len(labels))], "kind": labels})
    return open_journal(Path(folder) / "j.jsonl", read_review_table(table, "kind")).header.rare


@given(st.lists(st.integers(1, 9), min_size=1, max_size=4), st.integers(40, 60))
def test_a_review_and_a_fit_agree_on_what_is_rare(rare, frequent):
    counts = {f"kind {k}": n for k, n in enumerate(rare)} | {"none": frequent}
    labels = pl.Series([label for label, n in counts.items() for _ in range(n)])
    wanted = rare_target(label_counts(labels), None).labels
    with TemporaryDirectory() as folder:
        assert sorted(opened(counts, folder)) == sorted(wanted)


def test_one_label_that_does_not_say_whether_it_is_rare_is_refused():
    with TemporaryDirectory() as folder, refused(ErrorKind.LABELS, says="positive="):
        opened({"a": 5}, folder)
