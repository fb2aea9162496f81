"""Alerts of a stream: who they are, why, and that a restart neither loses nor repeats one."""

import csv
import json

import numpy as np
import polars as pl
import pytest

from rareclass.online import OAM
from rareclass.stream import reading
from rareclass.stream.alerts import LOOK_EVERY, reasons_of
from rareclass.stream.options import AlertBudget
from rareclass.stream.state import checkpoints_in, load_checkpoint
from stream.messy_stream import assert_same, options_for, outcome, run

pytestmark = pytest.mark.usefixtures("few_first_rows")


def with_alerts(source, path, learner="oam", **more):
    given = {
        "every": 300, "report_every": 300, "alerts": AlertBudget(5, 100),
        "alert_file": None if path is None else str(path),
    }  # fmt: skip
    return options_for(source, learner, **(given | more))


def read(path):
    return [json.loads(line) for line in path.read_text().splitlines()]


MIXTURE = {"learner": "mixture", "tails": "linear"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("suffix", "more", "left_after"),
    [("jsonl", {}, (10, 7, 22)), ("csv", {}, (15,)), ("jsonl", MIXTURE, (10, 15))],
)
def test_a_restart_neither_loses_nor_repeats_an_alert(
    long_source, tmp_path, monkeypatch, suffix, more, left_after
):
    monkeypatch.setattr("rareclass.online.feature_maps.ROWS", 60)
    whole, left = tmp_path / f"whole.{suffix}", tmp_path / f"left.{suffix}"
    run(with_alerts(long_source, whole, **more), tmp_path / "whole")
    monkeypatch.setattr(reading, "MOST_ROWS", 37)
    for leave_after in left_after:
        run(with_alerts(long_source, left, **more), tmp_path / "left", leave_after=leave_after)
    for stop_after in (600, None):
        run(with_alerts(long_source, left, **more), tmp_path / "left", stop_after)
    assert left.read_text() == whole.read_text()
    assert len(whole.read_text().splitlines()) > 20
    assert suffix == "csv" or sum(bool(alert["reasons"]) for alert in read(whole)) > 5
    states = [outcome(tmp_path / name)["state"] for name in ("whole", "left")]
    for state in states:
        del state.options["alert_file"]
    assert_same(states[1], states[0])


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


def test_reasons_are_weight_times_distance_from_the_usual(monkeypatch):
    vector, usual = np.array([2.0, 1.0, 0.0, 1.0]), np.array([0.0, 0.25, 0.75, 0.0])
    weights = np.array([0.5, 4.0, -4.0, -1.0])
    columns = ["amount", "land", "land", "code"]
    cells = {"amount": 9.0, "land": "DE", "code": "x"}
    raises = OAM().start(4, [0, 1]).raises(vector, usual, weights)
    found = reasons_of(raises, columns, cells)
    assert [tuple(each) for each in found] == [("land", "DE", 6.0), ("amount", 9.0, 1.0)]
    monkeypatch.setattr("rareclass.stream.alerts.N_REASONS", 1)
    assert reasons_of(raises, columns, cells) == found[:1]
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
    assert load_checkpoint(checkpoints_in(tmp_path / "run")[0]).alerts.file.n_rows == len(rows)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("bad", "places"),
    [
        ("03.05.2026", [3, 150, 199]),  # among the first rows, and later
        ("1772668800", [500, *range(600, 900)]),
        ("", [0, 201, 899]),
        ("soon", range(450, 900, 2)),
    ],
)
def test_a_row_without_a_time_is_put_aside(tmp_path, suffix, bad, places):
    generator = np.random.default_rng(0)
    rare = generator.random(900) < 0.1
    table = pl.DataFrame(
        {"id": [f"r{k}" for k in range(900)], "amount": generator.normal(2.0 * rare),
         "when": [f"2026-03-{1 + k // 90:02}T10:00" for k in range(900)], "fraud": rare.astype(int)}
    )  # fmt: skip
    label_only = pl.DataFrame({"id": ["r3"], "amount": None, "when": None, "fraud": 1})
    at = pl.int_range(pl.len()).is_in(list(places))
    spoilt = table.with_columns(when=pl.when(at).then(pl.lit(bad)).otherwise("when"))
    found = {}
    for name, rows in (("whole", table.filter(~at)), ("spoilt", spoilt)):
        source, alerts = tmp_path / f"{name}.{suffix}", tmp_path / f"{name}-alerts.jsonl"
        rows = pl.concat([rows, label_only.cast(rows.schema)])
        getattr(rows, f"write_{'ndjson' if suffix == 'jsonl' else suffix}")(source)
        run(with_alerts(source, alerts, alerts=AlertBudget(4), time_column="when"), tmp_path / name)
        found[name] = [(each["id"], each["time"], each["score"]) for each in read(alerts)]
        lines = [json.loads(line) for line in outcome(tmp_path / name)["rejected"].splitlines()]
        reasons = [each["reason"] for each in lines if "is not a time" in each["reason"]]
        assert len(reasons) == (len(places) if name == "spoilt" else 0)
        assert outcome(tmp_path / name)["state"].counters.rows == len(rows)
    assert found["spoilt"] == found["whole"]
    assert len(found["whole"]) > 15
