"""`rareclass threshold`: another rule, without training again."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from command_line import invoke, printed, run, run_with_json, says, scores_of
from faults import refusal
from made_tables import purchases
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.errors import ErrorKind
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model, save_model


def test_by_the_rows_held_out_when_it_was_fitted(fitted, tmp_path):
    out = tmp_path / "other.rareclass"
    words = ("threshold", fitted.model, "--max-fpr", "0.05", "--out", out)
    done, numbers = run_with_json(*words)
    before, after = load_model(fitted.model), load_model(out)
    chosen = ThresholdRule.max_fpr(0.05).choose(*before.held_out[:3])
    assert after.threshold == chosen.threshold
    assert facts_as_json(after.facts)["rule"]["guaranteed"] is False
    assert numbers["threshold"] == chosen.threshold
    says(done, "(approximate)", f"Called rare: {chosen.alerts:,.0f} of")
    new = purchases(seed=5)
    new.write_csv(tmp_path / "new.csv")
    table = scores_of(out, tmp_path / "new.csv")
    assert (table["called_rare"] == (table["score"] > chosen.threshold)).all()


def test_by_a_file_with_costs_and_days(fitted, tmp_path):
    path = tmp_path / "new.csv"
    days = pl.Series("day", np.datetime64("2026-03-01", "D") + np.arange(240) % 20).cast(
        pl.Datetime
    )
    table = purchases(seed=5).with_columns(days, at_stake=pl.col("amount") * 2)
    table.write_csv(path)
    model = fitted.model
    done = run("threshold", model, path, "--cost", "fp=20,fn=at_stake")
    rare = (table["fraud"] == "yes").to_numpy()
    column = scores_of(model, path)["score"].to_numpy()
    costs = {"at_stake": table["at_stake"].to_numpy()}
    chosen = ThresholdRule.least_cost(20.0, "at_stake").choose(rare, column, costs=costs)
    says(done, f"Threshold {chosen.threshold:.4g}: rows", "fp=20")
    done = run("threshold", model, path, "--alerts", "2/day", "--time", "day")
    chosen = ThresholdRule.max_alerts(2).choose(rare, column, time=table["day"].to_numpy())
    says(done, f"Threshold {chosen.threshold:.4g}: rows", "Rule: alerts <= 2 a day")


def test_days_of_a_file_are_read_as_fit_reads_them(fitted, tmp_path):
    day = pl.Series("day", np.arange(240) % 20)
    words = pl.format("{}.03.2026 07:30", (day + 1).cast(pl.String).str.zfill(2))
    table = purchases(seed=5).with_columns(day, written=words)
    path = tmp_path / "new.csv"
    table.write_csv(path)
    shown = []
    for name in ("day", "written"):
        done = printed("threshold", fitted.model, path, "--alerts=2/day", "--time", name)
        kept = ("Threshold", "Precision", "Recall", "Called")  # days have other names
        shown.append([line for line in done.splitlines() if line.strip().startswith(kept)])
    assert shown[0] == shown[1]
    assert len(shown[0]) == 4


BY_DAY = ("--alerts=2/day", "--time=x")


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("cells", "words", "kind", "row", "value"),
    [
        (np.arange(240) * 60, BY_DAY, ErrorKind.SETTING, None, None),
        (["2026-03-01"] * 239 + [""], BY_DAY, ErrorKind.CELL, 240, None),
        (["2026-03-01"] * 239 + ["soon"], BY_DAY, ErrorKind.CELL, 240, "soon"),
        (["1.5"] * 239 + [""], ("--cost=fp=1,fn=x",), ErrorKind.CELL, 240, None),
    ],
)
def test_a_cell_that_is_no_time_or_cost_is_named(fitted, tmp_path, cells, words, kind, row, value):
    path = tmp_path / "new.csv"
    purchases(seed=5).with_columns(pl.Series("x", cells)).write_csv(path)
    done = invoke("threshold", fitted.model, path, *words)
    option = words[-1].partition("=")[0]
    error = refusal(done, kind, f"{option} x", *([f"row {row}"] if row else []))
    assert (error.column, error.row, error.value) == ("x", row, value)


@pytest.mark.parametrize(
    ("words", "kind", "fact"),
    [
        ((), ErrorKind.SETTING, "--min-precision"),
        (("--cost", "fp=1,fn=amount"), ErrorKind.UNSUPPORTED, "amount"),
        (("--alerts", "1/day", "--time", "day"), ErrorKind.UNSUPPORTED, "alerts a day"),
    ],
)
def test_what_cannot_be_is_said(fitted, words, kind, fact):
    refusal(invoke("threshold", fitted.model, *words), kind, fact)


def test_a_threshold_above_all_scores_has_no_precision(fitted):
    words = ("threshold", fitted.model, "--threshold", "1e308")
    shown = run(*words)
    assert "Precision no row is called" in shown
    assert "nan" not in shown
    assert "Recall 0.000" in shown


def test_a_model_without_held_out_rows_asks_for_a_file(fitted, tmp_path):
    old = tmp_path / "old.rareclass"
    save_model(old, replace(load_model(fitted.model), held_out=None))
    refusal(invoke("threshold", old, "--max-fpr", "0.1"), ErrorKind.UNSUPPORTED, "held out")


def test_a_folder_is_refused_with_what_takes_it(tmp_path):
    refusal(invoke("threshold", tmp_path, "--max-fpr", ".1"), ErrorKind.UNSUPPORTED, "score")
