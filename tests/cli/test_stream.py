"""``rareclass stream`` as a user meets it: good input, bad input, Ctrl-C, alerts and drift."""

import io
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest
from rich.console import Console

from command_line import invoke, message, run, says, scores_of
from faults import refusal
from made_tables import purchases
from rareclass.cli.stream import StreamScreen, drift_words
from rareclass.errors import ErrorKind, InputError
from rareclass.stream.drift import WindowMeasures
from rareclass.stream.log import read_log, read_scores
from rareclass.stream.loop import Event, StreamReport
from rareclass.stream.options import StreamOptions
from rareclass.stream.state import LOCK, Counters, checkpoints_in, claimed


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "rows.csv"
    purchases(600).write_csv(path)
    return path


def streamed(source, folder, *more):
    usual = {"--target": "fraud", "--learner": "oam", "--id": "order", "--report-every": 200}
    left = [word for pair in usual.items() if pair[0] not in more for word in pair]
    return invoke("stream", source, "--checkpoint", folder, *left, *more)


def stream(source, folder, *more):
    result = streamed(source, folder, *more)
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def refused(source, folder, *more):
    return message(streamed(source, folder, *more))


def test_reports_log_and_what_to_do_next(rows, tmp_path):
    folder = tmp_path / "run"
    said = stream(rows, folder)
    assert "400 rows 40 rare AUC 0." in said
    assert "rows.csv to its end: 600 rows." in said
    assert f"rareclass score {folder} NEW_ROWS.csv" in said
    log = read_log(folder)
    assert log["rows"].to_pylist() == [200, 400, 600]
    assert log["rare"].to_pylist() == [20, 40, 60]
    assert log["auc"].to_pylist()[-1] > 0.8
    again = stream(rows, folder)
    says(again, "Continuing after row 600.", "No new rows")
    assert "\x1b[" not in said + again


@pytest.mark.sampled(0)
def test_score_and_evaluate_take_the_folder_or_a_checkpoint(rows, tmp_path):
    folder, new = tmp_path / "run", tmp_path / "new.csv"
    stream(rows, folder)
    purchases(200, seed=5).with_columns(country=pl.lit("ZZ")).write_csv(new)
    out = tmp_path / "scores.csv"
    for model in (folder, checkpoints_in(folder)[0]):
        result = run("score", model, new, "--out", out, "--id", "order", "--overwrite")
        assert "values not seen in training: country (200, " in result
        table = pl.read_csv(out)
        assert table.columns == ["order", "score", "called_rare", "percentile"]
        assert table["score"].std() > 0.1
        assert "200 rows, 20 of them rare" in run("evaluate", model, new)


def test_scores_are_those_of_the_next_rows_of_the_stream(tmp_path):
    table = purchases(400)
    first, rest, both = (tmp_path / name for name in ("first.csv", "rest.parquet", "both.csv"))
    table.head(399).write_csv(first)
    table.tail(1).write_parquet(rest)
    label = pl.when(pl.int_range(pl.len()) < 399).then(pl.col("fraud"))
    table.with_columns(fraud=label).write_csv(both)
    stream(first, tmp_path / "first")
    stream(both, tmp_path / "both")
    (score,) = scores_of(tmp_path / "first", rest)["score"]
    (streamed,) = read_scores(tmp_path / "both")["score"].to_pylist()
    # The scaler of the stream has seen the row when it scores it; that of the file has not.
    assert score == pytest.approx(streamed, rel=0.05)


def test_wrong_names_are_met_with_the_nearest(rows, tmp_path):
    folder = tmp_path / "run"
    for words, said in (
        (("--drop", "items,Amuont"), "Did you mean 'amount'?"),
        (("--id", "ordr"), "Did you mean 'order'?"),
        (("--learner", "mixtur"), "Did you mean 'mixture'?"),
        (("--param", "bufer_size=9"), "Did you mean 'buffer_size'?"),
        (("--param", "buffer_size=2.5"), "not a whole number"),
        (("--param", "C"), "not of the form NAME=VALUE"),
        (("--param", "n_epochs=2"), "no parameter 'n_epochs'"),
        (("--learner", "cbr-diagonal", "--param", "covariance=full"), "cbr-diagonal sets it"),
        (("--param", "C=-1"), "must be"),
        (("--window", 50), "--top 100: the window has 50 rows"),
    ):
        assert said in refused(rows, folder, *words)
    assert not folder.exists()


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("absent.csv", None, "no file or folder"),
        ("header.csv", b"order,amount,fraud\n", "header.csv has no rows"),
    ],
)
def test_sources_that_are_no_tables(tmp_path, name, content, said):
    (tmp_path / "in").mkdir()
    if content is not None:
        (tmp_path / "in" / name).write_bytes(content)
    assert said in refused(tmp_path / "in" / name, tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_folders_that_are_not_a_streams_or_in_use(rows, tmp_path):
    assert "'rows.csv'" in refused(rows, tmp_path)
    assert "is a file" in refused(rows, rows)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["rows.csv"]
    with claimed(tmp_path / "run"):
        (tmp_path / "run" / "checkpoint-x").touch()
        assert "is in use by another running" in refused(rows, tmp_path / "run")


def test_bad_rows_are_counted_kept_and_may_be_too_many(rows, tmp_path):
    lines = rows.read_text().splitlines()
    lines[50:50] = ["too,short", "o-x,1e999,3,DE,true,no"]
    rows.write_text("\n".join(lines) + "\n")
    assert "Rejected: 2 rows" in stream(rows, tmp_path / "run")
    lines = (tmp_path / "run/rejected.jsonl").read_text().splitlines()
    rejected = [json.loads(line) for line in lines]
    assert [row["line"] for row in rejected] == [51, 52]
    assert rejected[0]["text"] == "too,short"
    assert set(rejected[0]) == {"file", "line", "reason", "text"}
    too_many = refused(rows, tmp_path / "strict", "--max-rejected", 1)
    assert all(fact in too_many for fact in ("2 rows", "--max-rejected allows 1", "line 52"))
    assert checkpoints_in(tmp_path / "strict")


def command(*words, **more):
    code = "from rareclass.cli.main import main; main()"
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    words = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.Popen(words, text=True, **(pipes | more))


@pytest.mark.thorough
def test_standard_input_and_a_second_time(tmp_path):
    text, folder = purchases(500).write_csv(), tmp_path / "run"
    words = ["stream", "-", "--target", "fraud", "--learner", "oam", "--checkpoint", folder]
    for piped, expected in zip(
        (text[:9000], text, text), ("to its end", "Continuing", "No new rows"), strict=True
    ):
        piped = piped[: piped.rindex("\n") + 1]
        out, err = command(*words).communicate(piped)
        assert expected in out, err
    assert read_log(folder)["rows"].to_pylist()[-1] == 500


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, *(pytest.param(n, marks=pytest.mark.thorough) for n in (2, 1))]
)
def test_stopped_while_it_waits_for_rows(tmp_path, number):
    rows, folder = tmp_path / "rows.csv", tmp_path / "run"
    purchases(1200).write_csv(rows)  # so many that it begins without waiting for more
    words = ["stream", rows, "--target", "fraud", "--checkpoint", folder, "--follow"]
    process = command(*words, "--id", "order", "--learner", "oam", "--report-every", 1200)
    assert "1,200 rows" in process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 128 + number, err
    says(out, "Stopped after 1,200 rows.", "continues from there")
    assert "Traceback" not in err
    assert "1200" in checkpoints_in(folder)[0].name


def test_a_reset_is_told_of_once():
    measures = WindowMeasures(0.98, 0.5, None)
    report = StreamReport(Counters(9000, reported=8000), 0, 0, 0, 0, 0, 5, measures, 1.0)
    assert drift_words(report, 100) == []
    told = report._replace(resets=1, last_reset=8500)
    assert drift_words(told, 100) == ["steps reset at 8,500 rows"]
    assert drift_words(told._replace(last_reset=8000), 100) == []


@pytest.mark.parametrize("width", [60, 90, 100])
def test_the_screen_fits(width):
    options = StreamOptions("x.csv", "y", id_column="id")
    console = Console(
        width=width, file=io.StringIO(), force_terminal=True, highlight=False, record=True,
        _environ={"TERM": "xterm"},
    )  # fmt: skip
    screen = StreamScreen(console, options)
    measures = WindowMeasures(0.98, 0.5, None)
    for k in range(15):
        rows = 12_345_000 + 10_000 * k
        counters = Counters(rows, rows, 123_456, 0)
        screen.show(Event("batch", rows))
        report = StreamReport(counters, 99_000, 12_345, 0, 0, 4_567, 54, measures, 123_456.0)
        screen.show(Event("report", rows, report))
    console.print(screen)
    lines = console.export_text().splitlines()
    assert len(lines) == 1 + 10 + 1
    assert max(map(len, lines)) <= width
    assert not any("…" in line for line in lines[:-1])
    assert lines[1].split()[0] == "12,395,000"
    assert ("Dropped" in lines[0]) == (width >= 90)


@pytest.mark.thorough
def test_a_dumb_terminal_gets_lines(rows, tmp_path, monkeypatch):
    pty = pytest.importorskip("pty")
    ours, theirs = pty.openpty()
    words = ["stream", rows, "--target", "fraud", "--learner", "oam", "--checkpoint"]
    environment = os.environ | {"TERM": "dumb", "COLUMNS": "60"}
    process = command(*words, tmp_path / "run", stdout=theirs, stderr=theirs, env=environment)
    process.wait()
    os.close(theirs)
    shown = os.read(ours, 100_000).decode()
    os.close(ours)
    assert process.returncode == 0, shown
    assert "\x1b" not in shown
    assert "600 rows  60 rare  AUC" in shown


def test_two_that_make_the_folder_at_the_same_time(tmp_path, monkeypatch):
    folder = tmp_path / "run"
    exists = Path.exists
    with claimed(folder):
        monkeypatch.setattr(Path, "exists", lambda path: path != folder and exists(path))
        with pytest.raises(InputError, match="in use"), claimed(folder):
            pass
        assert exists(folder / LOCK)


def test_a_rare_label_that_never_comes_is_told(rows, tmp_path):
    said = stream(rows, tmp_path / "run", "--positive", "fraudulent")
    says(said, "600 labelled, 0 of them rare", "No label is 'fraudulent'")
    assert "No label is" not in stream(rows, tmp_path / "right")


def test_a_column_that_a_stream_did_not_learn_from_is_known_to_its_model(tmp_path):
    table, folder = tmp_path / "t.csv", tmp_path / "run"
    purchases(200).with_columns(when=pl.lit("2024-03-01 10:00")).write_csv(table)
    stream(table, folder)
    assert "does not know" not in run("score", folder, table, "-o", tmp_path / "s.csv")


def test_a_budget_a_day_on_the_command_line(tmp_path):
    path, alerts = tmp_path / "rows.csv", tmp_path / "alerts.csv"
    days = [f"2026-03-{1 + k // 200:02d}T08:00" for k in range(1000)]
    purchases(1000).with_columns(when=pl.Series(days)).write_csv(path)
    more = ("--alert-file", alerts, "--alerts", "12/day", "--time", "when")
    said = stream(path, tmp_path / "run", *more)
    table = pl.read_csv(alerts)
    assert f"Alerts: {len(table)}, at most 12/day, in" in said
    counts = table["time"].str.head(10).value_counts()["count"].to_list()
    assert len(counts) == 5
    assert 10 <= max(counts) <= 12
    assert table["reason_1"].str.contains(r"^(amount|country) = ").mean() > 0.9
    for changed in (
        ("--alert-file", alerts),
        ("--alert-file", alerts, "--alerts", "9/day", "--time", "when"),
        (),
    ):
        assert "was begun with --" in refused(path, tmp_path / "run", *changed)


def test_options_that_contradict(tmp_path):
    path, folder = tmp_path / "rows.csv", tmp_path / "run"
    purchases(300).with_columns(seconds=60 * pl.int_range(pl.len())).write_csv(path)
    alerts = tmp_path / "alerts.jsonl"
    by_day = ("--alert-file", alerts, "--alerts", "5/day")
    together, missing = ErrorKind.COMBINATION, ErrorKind.MISSING_COLUMN
    for more, kind, facts in (
        (("--alerts", "5/100"), together, ("--alerts", "--alert-file")),
        (("--time", "when"), together, ("--time", "--alert-file")),
        (by_day, together, ("--alerts 5/day", "--time")),
        ((*by_day, "--time", "contry"), missing, ("'contry'", "'country'")),
        ((*by_day, "--time", "seconds"), ErrorKind.SETTING, ("300", "86,400")),
        ((*by_day, "--time", "country"), ErrorKind.CELL, ("Line 2", "'country'", "'DE'")),
    ):
        refusal(streamed(path, folder, *more), kind, *facts)
    alone, more = ("--alert-file", alerts), ("--alert-file", alerts, "--alerts", "5/100")
    refusal(streamed(tmp_path, folder, *alone), ErrorKind.EXISTING_FILE, alerts)
    alerts.write_text("something else\n")
    refusal(streamed(path, folder, *more), ErrorKind.EXISTING_FILE, alerts)
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
    result = streamed(path, folder, *more)
    refusal(result, ErrorKind.REFUSED, "'country'", "%")
    out = " ".join(result.stdout.split())
    says(out, "AUC fell from", "moved: ")
    log = read_log(folder)
    assert log["rows"].to_pylist()[-1] == 5000
    moved = {each["column"]: each for each in log["moved"].to_pylist()[-1]}
    assert moved["country"]["outside"] > 0.3
    assert moved["amount"]["stability_index"] > 0.25
    assert "auc" in [each["measure"] for each in log["falls"].to_pylist()[-1]]
    assert log["moved"].to_pylist()[:3] == [[]] * 3
    assert log["falls"].to_pylist()[:3] == [[]] * 3
    assert "No new rows" in stream(path, folder, *more)
