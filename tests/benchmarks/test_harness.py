"""Cells run in processes of their own, are ended in time, and are taken up again."""

import json

import pytest

from benchmarks import run
from benchmarks.cells import Cell, Group, run_cell
from benchmarks.ledger import Ledger

pytestmark = pytest.mark.sampled(0)


def cell(name, limit=60.0, **arguments):
    return Cell(name, f"tests.benchmarks.steps:{name}", arguments, limit=limit)


def test_outcome_and_threads_of_a_cell():
    outcome = run_cell(cell("add", a=2, b=3), threads=3)
    found = [outcome[key] for key in ("status", "sum", "threads", "omp")]
    assert found == ["ok", 5, 3, "3"]


@pytest.mark.parametrize(
    ("name", "arguments", "status", "message"),
    [
        ("sleep", {"seconds": 30}, "stopped", None),
        ("fail", {}, "failed", "ValueError: no such column"),
        ("die", {}, "killed", "exit code -9"),
    ],
)
def test_a_cell_that_does_not_finish_says_why(name, arguments, status, message):
    outcome = run_cell(cell(name, limit=0.2, **arguments), threads=1)
    assert (outcome["status"], outcome.get("message")) == (status, message)
    assert outcome["process_seconds"] < 20


def test_cells_take_turns_and_go_on_where_they_ended(tmp_path, monkeypatch):
    order = []

    def record_only(one, threads):
        order.append(one.key)
        if one.key == "b" and order.count("b") == 2:
            raise KeyboardInterrupt
        return {"status": "ok", "seconds": 1.0, "process_seconds": 1.0}

    monkeypatch.setattr(run, "run_cell", record_only)
    group = Group("", [Cell(key, "", {}) for key in "ab"], repeats=2)
    file = tmp_path / "x.json"
    with pytest.raises(KeyboardInterrupt):
        run.run_group(group, Ledger("x", file, {}), threads=2)
    assert order == ["a", "b", "a", "b"]
    assert len(json.loads(file.read_text())["runs"]) == 3
    run.run_group(group, Ledger("x", file, {}), threads=2)
    assert order == ["a", "b", "a", "b", "b"]
    body = json.loads(file.read_text())
    assert {"packages", "cores", "date"} <= set(body)
    assert all("date" in one for one in body["runs"])


def test_slow_cells_run_once_and_larger_sizes_of_stopped_ones_not_at_all(tmp_path, monkeypatch):
    def outcomes(one, threads):
        if one.key == "stops":
            return {"status": "stopped", "limit": 5.0, "process_seconds": 6.0}
        return {"status": "ok", "seconds": 9.0, "process_seconds": 10.0}

    monkeypatch.setattr(run, "run_cell", outcomes)
    cells = [Cell("slow", "", {}), Cell("stops", "", {})]
    cells += [Cell("larger", "", {}, after="stops"), Cell("largest", "", {}, after="larger")]
    ledger = Ledger("x", tmp_path / "x.json", {})
    run.run_group(Group("", cells, repeats=3, repeat_below=10.0), ledger, threads=2)
    assert [(r["key"], r["repeat"]) for r in ledger.runs] == [
        ("slow", 0), ("stops", 0), ("larger", 0), ("largest", 0),
    ]  # fmt: skip
    (larger,), (largest,) = ledger.of("larger"), ledger.of("largest")
    assert (larger["message"], largest["status"]) == ("stops did not finish", "skipped")
