"""The journal of a review: nothing acknowledged is lost, whatever is wrong is named."""

import json
import subprocess
import sys
import textwrap
import threading

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind
from rareclass.review import Header, Listed, ReviewJournal, Round, Verdict, fingerprint_of

KEYS = [f"row {k}" for k in range(8)]
HEADER = Header("class", ("bad", "worse"), ("fine",), len(KEYS), fingerprint_of(KEYS), "id")


@pytest.fixture
def journal(tmp_path):
    return ReviewJournal.create(tmp_path / "review.jsonl", HEADER)


def lists(journal, *rows):
    listed = tuple(Listed(KEYS[k], reason, chance, 0.5) for k, reason, chance in rows)
    journal.add_round(Round(len(journal.rounds) + 1, listed))


def test_what_was_added_is_read_again(journal):
    lists(journal, (0, "score", 1.0), (3, "random", 0.25))
    assert journal.add([Verdict(KEYS[0], "bad", note="Größe"), Verdict(KEYS[3], "fine")]) == 2
    again = ReviewJournal(journal.path)
    assert again.header == HEADER
    assert again.rounds == journal.rounds
    assert again.verdicts == journal.verdicts
    assert again.verdicts[KEYS[0]].note == "Größe"
    assert again.verdicts[KEYS[3]].round == 1
    assert not again.findings


def test_states_of_all_rows(journal):
    lists(journal, (0, "score", 1.0), (3, "random", 0.25))
    journal.add([Verdict(KEYS[0], "worse"), Verdict(KEYS[3], "fine")])
    journal.add([Verdict(KEYS[7], "bad")], KEYS)
    recorded = np.array([-1, 0, 1, -1, -1, -1, -1, -1])
    states = journal.states(KEYS, recorded)
    assert states.code.tolist() == [2, 0, 1, 0, -1, -1, -1, 1]
    assert np.flatnonzero(states.checked).tolist() == [0, 3, 7]
    assert states.reason[[0, 3, 7, 1]].tolist() == ["score", "random", "other", ""]
    assert states.round.tolist() == [1, 0, 0, 1, 0, 0, 0, 0]
    # Known before or taken by rule: 1. Drawn: 1 / chance. Checked afterwards, by no list: 0.
    assert states.weight.tolist() == [1, 1, 1, 4, 0, 0, 0, 0]


def test_order_of_the_table_does_not_count(journal):
    lists(journal, (5, "random", 0.5), (2, "teaches", 1.0))
    journal.add([Verdict(KEYS[5], "bad"), Verdict(KEYS[2], "fine")])
    forward, backward = journal.states(KEYS), journal.states(KEYS[::-1])
    assert forward.code.tolist() == backward.code[::-1].tolist()
    assert forward.weight.tolist() == backward.weight[::-1].tolist()


def test_a_round_without_all_verdicts_does_not_count(journal):
    lists(journal, (0, "random", 0.5), (1, "random", 0.5))
    journal.add([Verdict(KEYS[0], "bad")])
    assert {number: [row.key for row in rows] for number, rows in journal.missing().items()} == {
        1: [KEYS[1]]
    }
    assert journal.states(KEYS).weight[0] == 1.0  # stands for itself


def test_repeating_a_verdict_changes_nothing(journal):
    lists(journal, (0, "score", 1.0))
    assert journal.add([Verdict(KEYS[0], "bad")]) == 1
    size = journal.path.stat().st_size
    assert journal.add([Verdict(KEYS[0], "bad"), Verdict(KEYS[0], "bad")]) == 0
    assert journal.path.stat().st_size == size


def test_contradictory_verdicts(journal):
    lists(journal, (0, "score", 1.0), (1, "score", 1.0))
    journal.add([Verdict(KEYS[0], "bad")])
    before = journal.path.read_bytes()
    with refused(ErrorKind.LABELS, value=KEYS[0], says="fine"):
        journal.add([Verdict(KEYS[1], "bad"), Verdict(KEYS[0], "fine")])
    with refused(ErrorKind.LABELS, value=KEYS[1]):
        journal.add([Verdict(KEYS[1], "bad"), Verdict(KEYS[1], "fine")])
    assert journal.path.read_bytes() == before
    assert journal.add([Verdict(KEYS[0], "fine", corrects=True)]) == 1
    assert ReviewJournal(journal.path).verdicts[KEYS[0]].label == "fine"


def test_a_correction_does_not_change_since_when_a_row_is_known(journal):
    lists(journal, (0, "random", 0.125))
    journal.add([Verdict(KEYS[0], "bad")])
    lists(journal, (1, "random", 0.25))
    journal.add([Verdict(KEYS[1], "bad"), Verdict(KEYS[0], "fine", corrects=True)])
    assert journal.states(KEYS).weight[:2].tolist() == [(8 + 1) / 2, 4 / 2]


def test_verdicts_that_cannot_be_kept(journal):
    lists(journal, (0, "score", 1.0))
    with refused(ErrorKind.ROWS, value="row 99", column="id"):
        journal.add([Verdict("row 99", "bad")], KEYS)
    with refused(ErrorKind.ROWS, value=KEYS[1]):
        journal.add([Verdict(KEYS[1], "bad")])  # not listed, and the table's keys are not given
    with refused(ErrorKind.LABELS, value="odd", column="class"):
        journal.add([Verdict(KEYS[0], "odd")])
    with refused(ErrorKind.ROWS, value=2):
        journal.add([Verdict(KEYS[0], "bad", round=2)])
    assert not ReviewJournal(journal.path).verdicts


def test_a_label_is_named_before_it_is_used(journal):
    lists(journal, (0, "score", 1.0))
    journal.add_label("odd", is_rare=True)
    journal.add_label("odd", is_rare=True)
    journal.add_label("dull", is_rare=False)
    journal.add([Verdict(KEYS[0], "odd")])
    again = ReviewJournal(journal.path)
    assert again.header.rare == ("bad", "worse", "odd")
    assert again.header.rest == ("fine", "dull")
    assert again.states(KEYS).code[0] == 3
    with refused(ErrorKind.LABELS, value="odd"):
        journal.add_label("odd", is_rare=False)


def test_rounds_that_cannot_be_kept(journal):
    with refused(ErrorKind.ROWS, value=2):
        journal.add_round(Round(2, ()))
    with refused(ErrorKind.ROWS):
        lists(journal, (0, "score", 1.0), (0, "random", 0.5))
    for chance in (0.0, 1.5, float("nan")):
        with refused(ErrorKind.SETTING):
            lists(journal, (0, "random", chance))
    assert not ReviewJournal(journal.path).rounds


def test_the_journal_of_another_table(journal):
    journal.check_table("class", "id", fingerprint_of(KEYS[::-1]))
    with refused(ErrorKind.ROWS):
        journal.check_table("class", "id", fingerprint_of(KEYS[1:]))
    with refused(ErrorKind.COMBINATION, value="label"):
        journal.check_table("label", "id", HEADER.fingerprint)
    with refused(ErrorKind.COMBINATION):
        journal.check_table("class", None, HEADER.fingerprint)
    lists(journal, (7, "score", 1.0))
    with refused(ErrorKind.ROWS, value=KEYS[7]):
        journal.states(KEYS[:7])
    with refused(ErrorKind.ROWS, column="id"):
        journal.states([*KEYS, KEYS[0]])


def test_starting_a_journal(tmp_path):
    path = tmp_path / "review.jsonl"
    with refused(ErrorKind.MISSING_FILE):
        ReviewJournal(path)
    with refused(ErrorKind.LABELS, value="bad"):
        ReviewJournal.create(path, Header("class", ("bad",), ("bad",), 1, ""))
    with refused(ErrorKind.LABELS):
        ReviewJournal.create(path, Header("class", (), ("bad",), 1, ""))
    ReviewJournal.create(path, HEADER)
    with refused(ErrorKind.EXISTING_FILE):
        ReviewJournal.create(path, HEADER)
    path.write_text("")
    with refused(ErrorKind.DAMAGED_FILE, row=1):
        ReviewJournal(path)


def test_two_that_append_see_what_the_other_wrote(journal):
    other = ReviewJournal(journal.path)
    lists(journal, *((k, "score", 1.0) for k in range(8)))
    with refused(ErrorKind.ROWS, value=1):
        other.add_round(Round(1, ()))
    other.add([Verdict(KEYS[0], "bad")])
    with refused(ErrorKind.LABELS, value=KEYS[0]):
        journal.add([Verdict(KEYS[0], "fine")])
    threads = [
        threading.Thread(target=each.add, args=([Verdict(key, "fine")],))
        for each, key in ((journal, KEYS[1]), (other, KEYS[2]))
    ]
    for thread in threads:
        thread.start()
        thread.join()
    assert {*ReviewJournal(journal.path).verdicts} == {*KEYS[:3]}


def full_journal(folder):
    journal = ReviewJournal.create(folder / "review.jsonl", HEADER)
    lists(journal, *((k, "score", 1.0) for k in range(8)))
    ends = [journal.path.stat().st_size]
    for key in KEYS:
        journal.add([Verdict(key, "bad", note="é\r\n\u2028")])
        ends.append(journal.path.stat().st_size)
    return journal, ends


@given(st.data())
def test_cut_anywhere_all_whole_lines_are_there(tmp_path_factory, data):
    journal, ends = full_journal(tmp_path_factory.mktemp("cut"))
    cut = data.draw(st.integers(ends[0], ends[-1]))
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[:cut])
    again = ReviewJournal(journal.path)
    # A line that lacks its end alone is whole.
    n_whole = sum(end <= cut + 1 for end in ends[1:])
    assert [*again.verdicts] == KEYS[:n_whole]
    is_cut = cut not in ends and cut + 1 not in ends
    assert [each.kind for each in again.findings] == [FindingKind.LINE_CUT_SHORT] * is_cut
    # The next verdict takes the place of what was cut.
    again.add([Verdict(key, "fine") for key in KEYS[n_whole:]])
    known = ReviewJournal(journal.path)
    assert not known.findings
    assert [each.label for each in known.verdicts.values()] == ["bad"] * n_whole + ["fine"] * (
        8 - n_whole
    )
    assert all(json.loads(line) for line in journal.path.read_bytes().splitlines())


@given(st.data())
def test_a_damaged_line_before_the_last_is_named(tmp_path_factory, data):
    journal, _ = full_journal(tmp_path_factory.mktemp("damaged"))
    lines = journal.path.read_bytes().splitlines(keepends=True)
    number = data.draw(st.integers(0, len(lines) - 2))
    length = data.draw(st.integers(1, len(lines[number]) - 2))
    lines[number] = lines[number][:length] + b"\n"
    journal.path.write_bytes(b"".join(lines))
    with refused(ErrorKind.DAMAGED_FILE, row=number + 1):
        ReviewJournal(journal.path)


BY_HAND = {"kind": "verdict", "key": "row 1"}


@pytest.mark.parametrize(
    ("line", "kind", "place"),
    [
        *(
            (line, ErrorKind.DAMAGED_FILE, {"row": 11})
            for line in (
                {"kind": "verdict", "key": 3, "label": "bad"},
                BY_HAND,
                {"kind": "round", "number": 3, "listed": []},
                {"kind": "round", "number": 2, "listed": [["row 1", "whim", 1.0, 0.5]]},
                {"kind": "header", "format": 1},
                {"kind": "odd"},
                {},
                [1],
            )
        ),
        (BY_HAND | {"label": "none such"}, ErrorKind.LABELS, {"value": "none such"}),
        (BY_HAND | {"label": "fine"}, ErrorKind.LABELS, {"value": "row 1"}),
    ],
)
def test_a_line_that_somebody_else_wrote_is_checked(tmp_path, line, kind, place):
    journal, _ = full_journal(tmp_path)
    with journal.path.open("a") as file:
        file.write(json.dumps(line) + "\n")
    with refused(kind, **place):
        ReviewJournal(journal.path)


def test_a_killed_process_loses_no_verdict_that_it_acknowledged(journal, tmp_path):
    """The process prints a key once `add` returned, and is killed at some moment."""
    lists(journal, *((k, "score", 1.0) for k in range(8)))
    program = textwrap.dedent(
        """
        import itertools, sys
        from rareclass.review.journal import ReviewJournal, Verdict
        journal = ReviewJournal(sys.argv[1])
        for k in itertools.count():
            journal.add([Verdict(f"new {k}", "bad", note="x" * 5000)], [f"new {k}"])
            print(f"new {k}", flush=True)
        """
    )
    with subprocess.Popen(
        [sys.executable, "-c", program, str(journal.path)], stdout=subprocess.PIPE, text=True
    ) as process:
        acknowledged = [process.stdout.readline().strip() for _ in range(5)]
        process.kill()
        acknowledged += process.stdout.read().split("\n")[:-1]
    again = ReviewJournal(journal.path)
    assert {*acknowledged} <= {*again.verdicts}
    assert again.add([Verdict(KEYS[0], "bad")]) == 1
