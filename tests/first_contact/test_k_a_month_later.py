"""A model a month later: what has moved without labels, alerts for people, and commands to copy."""

import json
import shlex
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from command_line import QUICK, complaint, fit_in, invoke, json_of, run
from faults import refused
from rareclass import errors
from rareclass.cli.command import BAD_INPUT, MOVED_FAR
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.errors import ErrorKind, command_line, name_hint, nearest_name
from rareclass.folds.dealing import check_days
from rareclass.model.drift import refuse_drift
from rareclass.model.evaluate import monitor_file
from rareclass.model.model_file import load_model
from rareclass.report.columns_and_rows import single_rows
from rareclass.report.reading import ReportOptions, read_rows
from rareclass.table_block import TableBlock

N = 2000


def payments(n, seed):
    rng = np.random.default_rng(seed)
    rare = rng.random(n) < 0.05
    income = rng.normal(50, 10, n) + 15 * rare
    return pl.DataFrame(
        {
            "id": [f"p{seed}-{k * 7919 % 99991}" for k in range(n)],
            "amount": np.exp(rng.normal(3, 1, n) + rare).round(2),
            "income": pl.Series(np.where(rng.random(n) < 0.04, np.nan, income)).fill_nan(None),
            "country": rng.choice(["DE", "FR", "IT", "ES"], n, p=[0.4, 0.3, 0.2, 0.1]),
            "merchant": [f"m{k}" for k in rng.zipf(1.6, n) % 5000],
            "age": rng.integers(18, 90, n),
            "version": ["v1"] * n,
            "nothing": pl.Series([None] * n, dtype=pl.String),
            "day": np.arange(n) // 100,
            "fraud": rare.astype(int),
        }
    )


@pytest.fixture(scope="module")
def month(tmp_path_factory):
    folder = tmp_path_factory.mktemp("k") / "Ann's [red]models[bold]"
    folder.mkdir()
    words = ("-t", "fraud", *QUICK, "--drop", "day")
    return fit_in(folder, payments(N, 0), payments(N, 1), *words)


Change = Callable[[pl.DataFrame], pl.DataFrame]


def where(condition, value, otherwise):
    return pl.when(condition).then(pl.lit(value)).otherwise(otherwise)


CHANGES = {
    "4 % empty, now all": (lambda t: t.with_columns(income=pl.lit(None)), "income"),
    "never empty, now a fifth": (
        lambda t: t.with_columns(age=where(pl.int_range(pl.len()) % 5 == 0, None, "age")), "age",
    ),
    "never empty, now all": (lambda t: t.with_columns(country=pl.lit(None)), "country"),
    "moved within its range": (
        lambda t: t.with_columns(income=45 + (pl.col("income").clip(40, 60) - 50) * 0.4), "income",
    ),
    "in other units": (lambda t: t.with_columns(amount=pl.col("amount") * 1000), "amount"),
    "another order of rows": (lambda t: t.with_columns(age=pl.lit(30)), "age"),
    "a category vanished": (lambda t: t.filter(pl.col("country") != "FR"), "country"),
    "a new category": (
        lambda t: t.with_columns(country=pl.col("country").replace({"ES": "PT"})), "country",
    ),
    "a constant is another": (lambda t: t.with_columns(version=pl.lit("v2")), "version"),
    "a constant varies": (
        lambda t: t.with_columns(version=where(pl.col("age") > 50, "v1", pl.lit("v2"))), "version",
    ),
    "a column absent": (lambda t: t.drop("income"), "income"),
    "an empty column filled": (lambda t: t.with_columns(nothing=pl.lit("x")), "nothing"),
    "half of the rows of one word": (
        lambda t: t.with_columns(merchant=where(pl.col("age") > 50, "m9", "merchant")), "merchant",
    ),
}  # fmt: skip
UNUSED = {"a constant is another", "a constant varies", "an empty column filled"}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("change", CHANGES)
def test_the_column_that_moved_is_found_and_no_other(change, month, tmp_path):
    changed, name = CHANGES[change]
    changed(payments(N, 1)).drop("fraud").write_parquet(tmp_path / "new.parquet")  # no labels
    drift = monitor_file(load_model(month.model), tmp_path / "new.parquet").drift
    assert [each.name for each in drift.moved] == [name]
    assert drift.compared[0].is_far
    if change in UNUSED:  # a model scores as before where it did not learn from the column
        refuse_drift(drift, "new.parquet")
    else:
        with refused(ErrorKind.REFUSED, column=name):
            refuse_drift(drift, "new.parquet")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change", ["4 % empty, now all", "moved within its range", "a constant varies", "absent"]
)
def test_monitor_and_score_say_the_same(change, month, tmp_path):
    changed, name = CHANGES["a column absent" if change == "absent" else change]
    new, numbers = tmp_path / "new.csv", tmp_path / "n.json"
    changed(payments(N, 1)).drop("fraud").write_csv(new)
    found = invoke("monitor", month.model, new, "--json", numbers, "--strict")
    assert found.exit_code == MOVED_FAR, found.output
    told = json.loads(numbers.read_text())
    assert told["is_far"]
    assert told["drift"][0]["column"] == name
    line = next(each for each in found.output.splitlines() if each.startswith(name))
    assert "absent" in line or "moved far" in line
    scored = invoke("score", month.model, new, "-o", tmp_path / "s.csv")
    strict = invoke("score", month.model, new, "-o", tmp_path / "t.csv", "--strict")
    assert strict.exit_code == (0 if change in UNUSED else BAD_INPUT)
    if change == "absent":
        assert scored.exit_code == BAD_INPUT
    else:
        assert f"far from training: {name} (" in " ".join(scored.output.split())


@pytest.mark.parametrize("n_rows", [1, 20, N])
def test_rows_like_those_of_training_have_not_moved(n_rows, month, tmp_path):
    model = load_model(month.model)
    for seed in range(1, 3):
        payments(n_rows, seed).write_csv(tmp_path / "rows.csv")
        found = monitor_file(model, tmp_path / "rows.csv")
        assert found.drift.moved == []
        assert not found.drift.is_far


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "change", ["none", "4 % empty, now all", "moved within its range", "a category vanished"]
)
def test_the_model_of_a_stream_knows_what_its_columns_were(change, month, tmp_path):
    words = ("stream", month.train, "-t", "fraud", "--learner", "cbr", "--window", 500)
    run(*words, "--drop", "id,day", "--checkpoint", tmp_path / "run")
    changed, name = CHANGES.get(change, (lambda table: table, None))
    changed(payments(N, 1)).drop("id", "day").write_csv(tmp_path / "new.csv")
    found = invoke("monitor", tmp_path / "run", tmp_path / "new.csv", "--json", "-", "--strict")
    assert found.exit_code == (0 if name is None else MOVED_FAR)
    drift = json.loads(found.output)["drift"]
    moved = [each["column"] for each in drift if each["verdict"] in ("moved", "moved far")]
    assert moved == ([] if name is None else [name])


def test_files_are_read_in_blocks_and_blocks_do_not_matter(month, monkeypatch):
    model = load_model(month.model)
    whole = monitor_file(model, month.new).as_plain_data()
    monkeypatch.setattr("rareclass.model.table_scorer.batch_rows_for", lambda n: 170)
    assert monitor_file(model, month.new).as_plain_data() == whole


def test_monitor_refuses_what_it_cannot_read(month, tmp_path):
    (tmp_path / "none.csv").write_text("id,amount,income,country,merchant,age\n")
    (tmp_path / "other.csv").write_text("a,b\n1,2\n")
    for name in ("none.csv", "other.csv", "absent.csv"):
        assert invoke("monitor", month.model, tmp_path / name).exit_code == BAD_INPUT
    assert json_of("monitor", month.model, month.new)["n_rows"] == N


@pytest.mark.sampled(1)
@pytest.mark.parametrize("suffix", ["csv", "parquet"])
@pytest.mark.parametrize("way", [("--top", 7), ("--threshold", 2.0, "--explain", 1)])
def test_alerts_alone_the_highest_first_with_columns_of_the_user(way, suffix, month, tmp_path):
    read = partial(pl.read_csv, infer_schema=False) if suffix == "csv" else pl.read_parquet
    every, alerts = tmp_path / f"every.{suffix}", tmp_path / f"alerts.{suffix}"
    words = ("score", month.model, month.new, "--id", "id", "--id", "amount")
    run(*words, *way, "-o", every)
    run(*words, *way, "-o", alerts, "--alerts-only")
    found, expected = read(alerts), read(every)
    is_called = pl.col("called_rare").cast(pl.String).is_in(["1", "true"])
    called = expected.filter(is_called).with_columns(by=pl.col("score").cast(pl.Float64))
    called = called.sort("by", descending=True, maintain_order=True).drop("by")
    assert found.columns[:3] == ["id", "amount", "score"]
    assert 0 < found.height < expected.height
    assert found.equals(called)


def test_no_alert_is_a_file_with_a_head(month, tmp_path):
    words = ("score", month.model, month.new, "-o", tmp_path / "s.csv")
    run(*words, "--alerts-only", "--threshold", 1e9)
    assert pl.read_csv(tmp_path / "s.csv").columns[:2] == ["row", "score"]
    assert "'id'" in complaint(*words, "--overwrite", "--id", "idd")


@pytest.mark.sampled(0)
def test_evaluate_says_how_frequent_alerts_are(month):
    words = ("evaluate", month.model, month.new)
    told = json_of(*words, "--time", "day")
    (own,) = (each for each in told["promises"] if each["name"] == "Alerts in 10,000 rows")
    assert own["measured"]["value"] == pytest.approx(told["decisions"][0]["alerts"] / (N / 1e4))
    assert invoke(*words, "--time", "dai").exit_code == BAD_INPUT


def test_rows_of_a_report_have_their_ids(month):
    model, ids = load_model(month.model), payments(N, 1)["id"].to_list()
    for name in ("id", None):
        rows = read_rows(model, month.new, ReportOptions(rows=5, id_column=name))
        tables = [
            block
            for section in single_rows(model, rows, 5).sections
            for block in section.blocks
            if isinstance(block, TableBlock) and block.heads[0] == "Row"
        ]
        assert len(tables) == 2
        cells = [row[0] for table in tables for row in table.rows]
        cells += [row[3] for table in tables for row in table.rows if len(table.heads) > 3][5:]
        for cell in cells:
            number, _, own = cell.replace(",", "").partition(" ")
            assert own == (f"({ids[int(number) - 1]})" if name else "")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", [(), ("--method", "mibc", "--cost", "1", "--no-baseline")])
def test_nearest_cases_have_the_names_that_fit_was_given(method, month, tmp_path):
    out, scores = tmp_path / "m.rareclass", tmp_path / "s.csv"
    quick = ("--members", "logistic regression") if not method else ()
    words = ("fit", month.train, "-t", "fraud", "-o", out, "--id", "id", "--folds", 2)
    run(*words, *quick, *method)
    run("score", out, month.new, "-o", scores, "--top", 3, "--explain", 2)
    cases = pl.read_csv(scores).drop_nulls("case_1")["case_1"].to_list()
    rare = set(payments(N, 0).filter(pl.col("fraud") == 1)["id"])
    assert len(cases) == 3
    assert set(cases) <= rare
    assert invoke(*words, "--overwrite", "--id", "idd").exit_code == BAD_INPUT


def test_the_next_command_can_be_typed(month, tmp_path):
    told = month.printed.replace("\\\n", " ")
    line = next(each.strip() for each in told.splitlines() if each.startswith("  rareclass score"))
    words = shlex.split(line)
    assert words[:3] == ["rareclass", "score", str(month.model)]
    words[3] = str(month.new)
    words[words.index("--out") + 1] = str(tmp_path / "scores.csv")
    run(*words[1:])


@pytest.mark.parametrize(
    "name", ["m.rareclass", "pay model.rareclass", "it's.rareclass", 'a"b.rareclass', "a$b;c", "a*"]
)
def test_commands_are_quoted_for_a_shell(name):
    line = command_line("score", Path("/tmp") / name, "NEW_ROWS.csv")
    assert shlex.split(line) == ["rareclass", "score", f"/tmp/{name}", "NEW_ROWS.csv"]
    with errors.called_from("command line"):
        assert shlex.split(errors.setting("drop", name)) == ["--drop", name]


DAYS, AGES = (np.random.default_rng(0).integers(*of, 500) * 1.0 for of in ((0, 30), (18, 90)))
TIMES = [
    *((name, DAYS, None) for name in ("day", "step", "orderDate")),
    ("n", np.sort(DAYS), None),
    ("n", DAYS + 20_000, None),  # since 1970
    ("day", np.datetime64("2026-01-01") + np.arange(30), None),  # one row a day
    ("day", np.arange(43_000.0, 43_030.0), None),  # of a spreadsheet
    ("seconds", np.arange(30.0) * 60, "30 different"),
    ("timestamp", 1.7e9 + np.arange(30.0) * 86_400, "6,860 years"),
    *((name, AGES, "") for name in ("age", "holiday", "amount", "percentage")),
]


@pytest.mark.parametrize(("column", "time", "fault"), TIMES)
def test_which_columns_are_times(column, time, fault):
    if fault is None:
        check_days(time, "--time", column)
        return
    with refused(ErrorKind.SETTING, column=column, says=fault):
        check_days(time, "--time", column)


def test_seconds_are_no_days_in_python_either():
    y, scores, seconds = np.arange(60) < 9, np.arange(60.0), 1.7e9 + 3600.0 * np.arange(60)
    with refused(ErrorKind.SETTING, column="time", says="years"):
        ThresholdRule.max_alerts(3).choose(y, scores, time=seconds)
    plain, timed = (
        ThresholdRule.max_alerts(3, rows=50).choose(y, scores, time=time)
        for time in (None, seconds)
    )
    assert plain.threshold == timed.threshold


@pytest.mark.parametrize("dated", ["all", 0, 1])
def test_a_clinic_of_few_rows_a_day_has_alerts_a_week(tmp_path, dated):
    """All rows of one class may have no time in a later file."""
    random, n = np.random.default_rng(0), 600
    y, days = (random.random(n) < 0.08).astype(int), np.sort(random.integers(0, 2000, n))
    columns = {"x": random.normal(size=n) + 2 * y, "patient": np.arange(n) // 3, "y": y}
    table = pl.DataFrame({**columns, "admitted": np.datetime64("2019-01-01") + days})
    old, new, model = (tmp_path / name for name in ("old.csv", "new.csv", "m"))
    table.write_csv(old)
    has_time = pl.lit(True) if dated == "all" else pl.col("y") == dated
    table.with_columns(pl.when(has_time).then("admitted")).write_csv(new)
    words = ("-t", "y", *QUICK, "--groups", "patient", "--time", "admitted", "--alerts", "1/week")
    run("fit", old, *words, "--drop", "admitted", "-o", model)
    assert [each.name for each in load_model(model).encoder.columns] == ["x"]
    n_dated = n if dated == "all" else (y == dated).sum()
    assert json_of("evaluate", model, new)["n_rows_without_time"] == n - n_dated
    assert "alerts <= 2 a week" in run("threshold", model, old, "--alerts", "2/week")
    run("report", model, new, "-o", tmp_path / "page.html")


def test_an_age_is_no_time_and_nothing_is_learned_before_that_is_said(month, tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training._Training.fit", lambda *given: 1 / 0)
    out = tmp_path / "m.rareclass"
    words = ("fit", month.train, "-t", "fraud", "-o", out, "--alerts", "5/day", "--time")
    assert "--time age" in complaint(*words, "age")
    assert isinstance(invoke(*words, "day").exception, ZeroDivisionError)  # a time, and learned


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("age", ["target", "income"], None),
        ("age", ["wages", "target"], None),
        ("agee", ["age"], "age"),
        ("tagret", ["age", "target"], "target"),
        ("Card ID", ["card_id"], "card_id"),
        ("amont", ["age", "amount"], "amount"),
        ("merchant", ["merchants"], "merchants"),
        ("x", ["y"], None),
        ("id", ["ip"], None),
        ("sex", ["age"], None),
        ("country", ["county", "counter"], "county"),
        ("", ["a"], None),
        ("AGE", ["age"], "age"),
    ],
)
def test_a_name_is_suggested_only_where_it_is_close(name, known, meant):
    assert nearest_name(name, known) == meant
    assert ("Did you mean" in name_hint(name, known)) is (meant is not None)


@pytest.mark.parametrize("option", ["--drop", "--keep", "--category", "--groups", "--time"])
def test_no_command_suggests_the_target_for_an_age(option, month, tmp_path):
    pl.DataFrame({"target": [0, 1] * 20, "size": range(40)}).write_csv(tmp_path / "t.csv")
    words = ("fit", tmp_path / "t.csv", "-t", "target", "-o", tmp_path / "m", option, "age")
    assert "Did you mean" not in complaint(*words)
