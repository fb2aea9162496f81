"""Alerts of a stream: who they are, why, and that a restart neither loses nor repeats one."""

import csv
import json

import numpy as np
import pytest

from rareclass.online import OAM
from rareclass.stream import reading
from rareclass.stream.alerts import LOOK_EVERY, reasons_of
from rareclass.stream.checkpoint import checkpoints_in, load_checkpoint
from rareclass.stream.options import AlertBudget
from stream.messy_stream import assert_same, options_for, outcome, run

pytestmark = pytest.mark.usefixtures("few_first_rows")


def with_alerts(source, alerts, learner="oam", **more):
    given = {
        "every": 300, "report_every": 300, "alert_budget": AlertBudget(5, 100),
        "alerts": None if alerts is None else str(alerts),
    }  # fmt: skip
    return options_for(source, learner, **(given | more))


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("suffix", "left_after", "more"),
    [
        ("jsonl", (10, 7, 22), {}),
        ("csv", (15,), {}),
        ("jsonl", (10, 15), {"learner": "mixture", "tails": "linear"}),
    ],
    ids=["jsonl", "csv", "mixture"],
)
def test_neither_a_batch_nor_a_restart_loses_or_repeats_an_alert(
    long_source, tmp_path, monkeypatch, suffix, left_after, more
):
    monkeypatch.setattr("rareclass.online.feature_maps.ROWS", 60)
    whole, left = tmp_path / f"whole.{suffix}", tmp_path / f"left.{suffix}"
    run(with_alerts(long_source, whole, **more), tmp_path / "whole")
    monkeypatch.setattr(reading, "MOST_ROWS", 37)
    options = with_alerts(long_source, left, **more)
    for leave_after in left_after:
        run(options, tmp_path / "left", leave_after=leave_after)
    run(options, tmp_path / "left", stop_after=600)
    run(options, tmp_path / "left")
    assert left.read_text() == whole.read_text()
    assert len(whole.read_text().splitlines()) > 20
    states = [outcome(tmp_path / name)["state"] for name in ("whole", "left")]
    for state in states:
        del state.options["alerts"]
    assert_same(states[1], states[0])
    if suffix == "jsonl":
        assert sum(bool(alert["reasons"]) for alert in read(whole)) > 5


def test_alerts_are_the_rows_above_the_threshold(long_source, tmp_path):
    path = tmp_path / "alerts.jsonl"
    run(with_alerts(long_source, path), tmp_path / "run")
    alerts = read(path)
    with long_source.open(newline="") as file:
        records = list(csv.DictReader(file))
    for alert in alerts:
        record = records[alert["row"] - 1]
        assert alert["id"] == record["id"]
        assert alert["line"] == alert["row"] + 1
        assert alert["score"] > alert["threshold"]
        assert 1 <= alert["place"] <= alert["recent"] + 1
        amounts = [each["value"] for each in alert["reasons"] if each["column"] == "amount"]
        assert amounts in ([], [float(record["amount"] or "nan")])
        raises = [each["raises"] for each in alert["reasons"]]
        assert raises == sorted(raises, reverse=True)
        assert all(each > 0 for each in raises)
    numbers = [alert["row"] for alert in alerts]
    assert numbers == sorted(set(numbers))
    assert min(numbers) > 100
    # Every period of 100 rows that were scored has 5 at most; a period has 100 records or more.
    per_period = np.bincount(np.array(numbers) // 100)
    assert per_period.max() <= 10


def test_reasons_are_weight_times_distance_from_the_usual():
    vector, usual = np.array([2.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.25, 0.75, 0.0])
    weights = np.array([0.5, 4.0, -4.0, -1.0])
    columns = ["amount", "land", "land", "code"]
    cells = {"amount": 9.0, "land": "DE", "code": "x"}
    raises = OAM().start(4, [0, 1]).raises(vector, usual, weights)
    found = reasons_of(raises, columns, cells)
    assert [tuple(each) for each in found] == [("land", "DE", 6.0), ("amount", 9.0, 1.0)]
    assert reasons_of(raises, columns, cells, most=1) == found[:1]
    assert LOOK_EVERY == 1_000  # documented


def test_alerts_begin_later_on_a_stream_of_before(long_source, tmp_path):
    short = tmp_path / "rows.csv"
    lines = long_source.read_text().splitlines(keepends=True)
    short.write_text("".join(lines[:400]))
    run(with_alerts(short, None), tmp_path / "run")
    short.write_text("".join(lines))
    path = tmp_path / "alerts.csv"
    run(with_alerts(short, path), tmp_path / "run", leave_after=3)
    run(with_alerts(short, path), tmp_path / "run")
    rows = [int(line.split(",")[0]) for line in path.read_text().splitlines()[1:]]
    assert rows
    assert min(rows) > 399
    assert load_checkpoint(checkpoints_in(tmp_path / "run")[0]).alerts.n_alerts == len(rows)
