"""Alerts and drift of ``rareclass stream`` as a user meets them."""

import polars as pl

from command_line import invoke, message
from faults import refusal
from made_tables import purchases
from rareclass.errors import ErrorKind
from rareclass.stream.log import read_log


def stream(source, folder, *more: object):
    return invoke(
        "stream", source, "--target", "fraud", "--checkpoint", folder, "--learner", "oam",
        "--id", "order", *(() if "--report-every" in more else ("--report-every", 500)), *more,
    )  # fmt: skip


def test_a_budget_a_day_on_the_command_line(tmp_path):
    path, alerts = tmp_path / "rows.csv", tmp_path / "alerts.csv"
    days = [f"2026-03-{1 + k // 200:02d}T08:00" for k in range(1000)]
    purchases(1000).with_columns(when=pl.Series(days)).write_csv(path)
    more = ("--alerts", alerts, "--alert-budget", "12/day", "--time", "when")
    result = stream(path, tmp_path / "run", *more)
    assert result.exit_code == 0, result.output
    table = pl.read_csv(alerts)
    assert f"Alerts: {len(table)}, at most 12/day, in" in " ".join(result.stdout.split())
    counts = table["time"].str.head(10).value_counts()["count"].to_list()
    assert len(counts) == 5
    assert 10 <= max(counts) <= 12
    assert table["reason_1"].str.contains(r"^(amount|country) = ").mean() > 0.9
    for changed in (
        ("--alerts", alerts),
        ("--alerts", alerts, "--alert-budget", "9/day", "--time", "when"),
        (),
    ):
        assert "was begun with --alert" in message(stream(path, tmp_path / "run", *changed))


def test_options_that_contradict(tmp_path):
    path, folder = tmp_path / "rows.csv", tmp_path / "run"
    purchases(300).with_columns(seconds=60 * pl.int_range(pl.len())).write_csv(path)
    alerts = tmp_path / "alerts.jsonl"

    by_day = ("--alerts", alerts, "--alert-budget", "5/day")
    together, missing = ErrorKind.COMBINATION, ErrorKind.MISSING_COLUMN
    for more, kind, facts in (
        (("--alert-budget", "5/100"), together, ("--alert-budget", "--alerts")),
        (("--time", "when"), together, ("--time", "--alerts")),
        (("--alerts", tmp_path / "alerts.txt"), ErrorKind.FILE_FORMAT, (".jsonl", ".csv")),
        (by_day, together, ("--alert-budget 5/day", "--time")),
        ((*by_day, "--time", "contry"), missing, ("'contry'", "'country'")),
        ((*by_day, "--time", "seconds"), ErrorKind.SETTING, ("300", "86,400")),
        ((*by_day, "--time", "country"), ErrorKind.CELL, ("Line 2", "'country'", "'DE'")),
    ):
        refusal(stream(path, folder, *more), kind, *facts)
    refusal(stream(tmp_path, folder, "--alerts", alerts), together, alerts)
    alerts.write_text("something else\n")
    more = ("--alerts", alerts, "--alert-budget", "5/100")
    refusal(stream(path, folder, *more), ErrorKind.EXISTING_FILE, alerts)
    assert alerts.read_text() == "something else\n"
    assert not folder.exists()


def test_drift_is_reported_and_strict_stops(tmp_path):
    path, folder = tmp_path / "rows.csv", tmp_path / "run"
    table = purchases(5000)
    late = pl.int_range(pl.len()) >= 4000
    table = table.with_columns(
        country=pl.when(late & (pl.col("items") < 4)).then(pl.lit("ZZ")).otherwise("country"),
        amount=pl.when(late).then(50.0).otherwise("amount"),
    )
    table.write_csv(path)
    more = ("--window", 1000, "--report-every", 1000, "--strict")
    result = stream(path, folder, *more)
    refusal(result, ErrorKind.REFUSED, "'country'", "%")
    out = " ".join(result.stdout.split())
    assert "AUC fell from" in out
    assert "moved: " in out
    log = read_log(folder)
    assert log["rows"].to_pylist()[-1] == 5000
    moved = {each["column"]: each for each in log["moved"].to_pylist()[-1]}
    assert moved["country"]["outside"] > 0.3
    assert moved["amount"]["stability_index"] > 0.25
    assert "auc" in [each["measure"] for each in log["falls"].to_pylist()[-1]]
    assert log["moved"].to_pylist()[:3] == [[]] * 3
    assert log["falls"].to_pylist()[:3] == [[]] * 3
    # What came so far is learned: the same command has nothing to do.
    again = stream(path, folder, *more)
    assert again.exit_code == 0
    assert "No new rows" in again.stdout
