"""A stream that was stopped or damaged goes on as if nothing had happened; rows that wait."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import quick
from faults import refused
from rareclass.errors import ErrorKind, called_from
from rareclass.online import OAM
from rareclass.stream import reading
from rareclass.stream.log import read_log
from rareclass.stream.options import parse_parameters
from rareclass.stream.reading import HeldRow, WaitingRows
from rareclass.stream.state import LOCK, checkpoints_in
from stream.messy_stream import assert_same, newest_rows, options_for, outcome, run

pytestmark = pytest.mark.usefixtures("few_first_rows")


@pytest.mark.sampled(0)
def test_stopped_and_started_again_many_times(source, tmp_path, monkeypatch):
    options = options_for(source, every=250)
    run(options, tmp_path / "whole")
    monkeypatch.setattr(reading, "MOST_ROWS", 37)
    for stop_after in (1, 30, 240, 400, 650):
        events = run(options, tmp_path / "stopped", stop_after)
        assert events[-1].kind == "saved"
        assert newest_rows(tmp_path / "stopped") == events[-1].rows >= stop_after
    newest = checkpoints_in(tmp_path / "stopped")[0]  # damage costs nothing but time
    newest.write_bytes(newest.read_bytes()[:-100])
    events = run(options, tmp_path / "stopped")
    assert "was damaged" in events[0].text
    assert events[1].kind == "went on"
    assert_same(outcome(tmp_path / "stopped"), outcome(tmp_path / "whole"))


@pytest.mark.parametrize("n_events", quick(2, [2, 7, 1, 3, 12, 20]))
@pytest.mark.sampled(1)
def test_left_in_the_lurch_and_started_again(source, tmp_path, n_events):
    options = options_for(source)
    run(options, tmp_path / "whole")
    for leave_after in (n_events, n_events + 2, None):
        run(options, tmp_path / "left", leave_after=leave_after)
    assert_same(outcome(tmp_path / "left"), outcome(tmp_path / "whole"))


def test_checkpoints_are_cut_at_multiples(source, tmp_path):
    events = run(options_for(source, every=300, report_every=200), tmp_path)
    n_rows = events[-1].rows
    saved = [event.rows for event in events if event.kind == "saved"]
    assert saved == [0, *range(300, n_rows + 1, 300), n_rows]
    reports = [event.rows for event in events if event.kind == "report"]
    assert reports == [*range(200, n_rows + 1, 200), n_rows]
    assert read_log(tmp_path)["rows"].to_pylist() == reports


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n_rows", [250, 260])
def test_reports_before_the_last_checkpoint_stay_in_the_log(source, tmp_path, n_rows):
    """The end of the source may be where a checkpoint was due and no report."""
    short = tmp_path / "short.csv"
    short.write_text("".join(source.read_text().splitlines(keepends=True)[: n_rows + 1]))
    options = options_for(short, every=125, report_every=60)
    expected = [60, 120, 180, 240, n_rows]
    events = run(options, tmp_path / "whole")
    assert read_log(tmp_path / "whole")["rows"].to_pylist() == expected
    # Left after any event, the last report included, and started again.
    for n_events in range(len(events) - 4, len(events) + 1):
        run(options, tmp_path / f"left-{n_events}", leave_after=n_events)
        run(options, tmp_path / f"left-{n_events}")
        assert_same(outcome(tmp_path / f"left-{n_events}"), outcome(tmp_path / "whole"))


@pytest.mark.sampled(0)
def test_at_its_end_nothing_is_done_until_rows_are_added(source, tmp_path):
    lines, growing = source.read_text().splitlines(keepends=True), tmp_path / "growing.csv"
    growing.write_text("".join(lines[:400]))
    options, grown = options_for(growing), tmp_path / "grown"
    run(options, grown)
    files = [path for path in grown.rglob("*") if path.is_file() and path.name != LOCK]
    before = [path.stat().st_mtime_ns for path in files]
    assert [event.kind for event in run(options, grown)] == ["went on"]
    assert [path.stat().st_mtime_ns for path in files] == before
    growing.write_text("".join(lines))
    run(options, grown)
    run(options, tmp_path / "whole")
    found, expected = outcome(grown), outcome(tmp_path / "whole")
    del found["log"], expected["log"]
    assert_same(found, expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"target": "items"}, "--target fraud, but now it is --target items."),
        ({"learner": "uniexp"}, "--learner oam, but now it is --learner uniexp."),
        ({"hold": 7}, "--hold 20, but now it is --hold 7."),
        ({"drop": ("it ems",)}, "no --drop, but now it is --drop 'it ems'."),
        ({"parameters": parse_parameters("oam", ["C=0.5"])}, "but now it is --param C=0.5."),
    ],
)
def test_other_options_need_another_folder(source, tmp_path, change, said):
    options = options_for(source)
    run(options, tmp_path, stop_after=100)
    with called_from("command line"), refused(ErrorKind.COMBINATION, says=said):
        run(replace(options, **change), tmp_path)


def test_a_mixture_of_other_members_needs_another_folder(source, tmp_path, monkeypatch):
    options, few = options_for(source, "mixture"), (("linear", OAM()), ("asinh", OAM()))
    with monkeypatch.context() as before:
        before.setattr("rareclass.online.mixture.default_members", lambda: few)
        run(options, tmp_path / "run", stop_after=125)
    with refused(ErrorKind.FILE_FORMAT, says="members differ"):
        run(options, tmp_path / "run")


@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(0, 6)), max_size=60),
    capacity=st.integers(1, 4),
)
def test_holds_what_a_plain_list_holds(steps, capacity):
    held, plain, dropped = WaitingRows(capacity), [], 0
    for number, (adds, which) in enumerate(steps):
        held, name = WaitingRows.from_state(held.to_state()), f"id-{which}"
        known = [number for waiting, number in plain if waiting == name]
        if not adds:
            row = held.take(name)
            assert (row is None) == (not known)
            if row is not None:
                assert row.score == known[0] / 2
                np.testing.assert_array_equal(row.vector, np.full(which, float(known[0])))
            plain = [pair for pair in plain if pair[0] != name]
        elif not known:
            held.add(name, HeldRow(np.full(which, float(number)), number / 2))
            plain.append((name, number))
            if len(plain) > capacity:
                plain, dropped = plain[1:], dropped + 1
        assert len(held) == len(plain)
        assert all(waiting in held for waiting, _ in plain)
        assert held.n_dropped == dropped
