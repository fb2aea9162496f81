"""The long runs for a few seconds, and that they see what they look for."""

import csv
import io
import json

import numpy as np
import pytest

from benchmarks.soak import serve, stream
from benchmarks.soak.memory import Memory, pause_of


@pytest.mark.parametrize(("last", "grows"), [(104, False), (106, True)])
def test_memory_is_compared_between_the_middle_third_and_the_last(last, grows):
    memory = Memory(0)
    memory.readings = [10, 50, 90, 100, 100, 900, last, last, 1]
    assert memory.grows == grows
    assert memory.thirds == (100, last)


def test_a_run_of_any_length_has_readings_in_each_third():
    assert pause_of(30.0) == 15.0
    assert all(60.0 * minutes / pause_of(minutes) >= 3 for minutes in (0.01, 0.1, 1.0, 600.0))


def test_records_are_the_same_each_time_however_they_are_asked_for():
    one, many = stream.Records(3), stream.Records(3)
    text = one.text(400, is_sure=True) + one.text(200)
    pieces = [many.text(100, is_sure=k < 4) for k in range(6)]
    assert text == b"".join(pieces)
    records = list(csv.reader(io.StringIO(text.decode())))
    assert len(records) == one.n_written == many.n_written > 600
    spoilt = {"short": 3, "inf": 1, "maybe": 4, "about 40": 1}
    found = {cell for record in records for cell in record}
    assert {"inf", "maybe", "about 40", "two\nlines"} <= found
    assert min(map(len, records)) == spoilt["short"]
    assert "about 40" not in {cell for record in records[:400] for cell in record}


def test_differences_are_named_to_the_last_bit():
    kept = {"state": {"w": np.array([0.0, 1.0]), "b": float("nan")}, "scores": [1.0]}
    same = {"state": {"w": np.array([0.0, 1.0]), "b": float("nan")}, "scores": [1.0]}
    assert stream.differences(same, kept, "killed") == []
    same["state"]["w"][0] = -0.0
    same["scores"] = [1.0, 1.0]
    assert stream.differences(same, kept, "killed") == [
        "killed.state.w differs", "killed.scores differs",
    ]  # fmt: skip
    assert stream.differences({}, kept, "killed") == ["killed differs"]


def test_rows_that_are_missing_or_there_twice_are_found():
    outcome = {
        "state": {"counters": {"rows": 9, "unlabelled": 2}},
        "scores": {"row": [4, 7]},
        "alerts": [json.dumps({"row": 4})],
        "rejected": [json.dumps({"file": "rows.csv", "line": 3})],
    }
    assert stream.missing_or_twice(outcome, 9) == []
    outcome["scores"]["row"] = [4, 4, 7]
    outcome["alerts"] *= 2
    outcome["rejected"] *= 2
    assert stream.missing_or_twice(outcome, 10) == [
        "10 records were written, 9 are counted",
        "3 scores of 2 rows without a label",
        "scores: 4 is there twice",
        "alerts: 4 is there twice",
        "rejected: ('rows.csv', 3) is there twice",
    ]


@pytest.mark.thorough
def test_a_stream_of_seconds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream.Memory, "grows", False)  # it still warms up
    words = ["--minutes", "0.15", "--longest", "5", "--scratch", str(tmp_path)]
    assert stream.main(words) == 0
    said = capsys.readouterr().out
    assert "started: " in said
    assert "WRONG" not in said


@pytest.mark.thorough
def test_a_service_of_seconds(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(serve.Memory, "grows", False)
    monkeypatch.setattr("benchmarks.serving._ROWS", 2000)
    monkeypatch.setattr("benchmarks.serving._RARE", 100)
    assert serve.main(["--minutes", "0.05", "--scratch", str(tmp_path)]) == 0
    said = capsys.readouterr().out
    assert " requests; " in said
    assert "WRONG" not in said
