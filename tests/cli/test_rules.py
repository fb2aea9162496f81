"""A rule for the threshold: of `rareclass fit`, with rows held out by group or time, and later."""

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from cli.conftest import facts_of
from command_line import QUICK, complaint, invoke, json_of, run, run_with_json, says, scores_of
from draws import quick
from faults import refusal
from made_tables import purchases
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.errors import ErrorKind
from rareclass.fit.method import EncodedRows
from rareclass.metrics import interval
from rareclass.metrics.intervals import widened
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model, save_model
from rareclass.report.subgroups import Subgroups


@pytest.fixture
def payments(tmp_path):
    random = np.random.default_rng(0)
    n = 1200
    rare = random.random(n) < 0.06
    start = np.datetime64("2026-01-01T00:00:00", "us")
    moments = start + (np.arange(n) * 60 * 86_400_000_000 // n).astype("m8[us]")
    path = tmp_path / "payments.csv"
    pl.DataFrame(
        {
            "date": moments,
            "customer": random.integers(0, 200, n),
            "amount": random.exponential(50.0, n).round(2),
            "a": random.normal(size=n) + 2.0 * rare,
            "b": random.normal(size=n) + rare,
            "fraud": np.where(rare, "yes", "no"),
        }
    ).write_csv(path)
    return path


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("words", "rule", "line"),
    [
        (("--min-precision", "0.4"), ThresholdRule.min_precision(0.4), "Rule: precision >= 0.4"),
        (("--max-fpr", "0.02"), ThresholdRule.max_fpr(0.02), "false-positive rate <= 0.02"),
        (("--alerts", "20/1,000", "--confidence", "0.8"),
         ThresholdRule.max_alerts(20, rows=1000, confidence=0.8), "confidence 0.8"),
        (("--min-recall", "0.5", "--confidence", "none", "--prevalence", "0.01"),
         ThresholdRule.min_recall(0.5, confidence=None, prevalence=0.01), "Rule: recall >= 0.5"),
    ],
)  # fmt: skip
def test_the_threshold_is_that_of_the_rule_on_cross_fitted_rows(payments, out, words, rule, line):
    words = ("fit", payments, "-t", "fraud", *QUICK, *words, "-o", out)
    done, told = run_with_json(*words)
    content, facts = load_model(out), facts_of(out)
    held_out = content.held_out
    assert told["thresholds"] == [content.threshold]
    assert told["held_out"] == facts["held_out"]
    expected = rule.choose(held_out.y, held_out.scores, held_out.weight)
    assert content.threshold == expected.threshold
    assert facts["rule"]["alerts"] == expected.alerts
    assert json.loads(json.dumps(facts)) == facts
    assert line in done
    called = int((held_out.scores > expected.threshold).sum())
    assert f"Called rare: {called} of " in done


def test_costs_are_a_column(payments, out):
    words = ("--cost", "fp=5,fn=amount", "--time", "date", "--holdout", "0.3")
    done = run("fit", payments, "-t", "fraud", *QUICK, *words, "-o", out)
    content = load_model(out)
    held_out = content.held_out
    # The latest rows are held out: their amounts are known from the file.
    table = pl.read_csv(payments).tail(len(held_out.y))
    assert (table["fraud"] == "yes").to_numpy().tolist() == (held_out.y == 1).tolist()
    rule = ThresholdRule.least_cost(5.0, "amount")
    amount = {"amount": table["amount"].to_numpy()}
    chosen = rule.choose(held_out.y, held_out.scores, costs=amount)
    assert content.threshold == chosen.threshold
    assert "on the latest rows by date:" in done
    assert facts_of(out)["estimated_by"] == "latest rows"


@pytest.mark.sampled(0)
def test_alerts_a_day_need_the_day(payments, out):
    words = ("fit", payments, "-t", "fraud", *QUICK, "--alerts", "2/day", "-o", out)
    assert "--alerts 2/day needs to know the time of each row" in complaint(*words)
    assert "Rule: alerts <= 2 a day" in run(*words, "--time", "date")


@pytest.mark.sampled(0)
def test_rows_of_a_group_are_held_out_together(payments, out, monkeypatch):
    words = ("fit", payments, "-t", "fraud", *QUICK, "--groups", "customer")
    says(run(*words, "-o", out), "held out by customer", "customer (column of groups)")
    metadata, table, model = facts_of(out), pl.read_csv(payments), load_model(out)
    assert metadata["estimated_by"] == "cross-fitting by group"
    assert "customer" not in metadata["importances"]
    assert len(model.held_out.y) == len(table)
    y, group = (table["fraud"] == "yes").to_numpy(), table["customer"].to_numpy()
    own = interval("roc_auc", y, model.held_out.scores, groups=group)
    assert metadata["held_out"]["measures"]["AUC"] == widened(own, np.sqrt(3.0))._asdict()
    table.with_columns(pl.when(pl.col("customer") > 3).then("customer")).write_csv(payments)
    alone = np.where(group > 3, group, -1 - np.arange(len(group)))
    new = interval("roc_auc", y, model.score_samples(table.to_pandas()), groups=alone)
    assert json_of("evaluate", out, payments)["measures"]["AUC"] == new._asdict()
    asked, of = {}, Subgroups.of

    def watched(by, *given, groups=None, **more):
        asked[by] = groups
        return of(by, *given, groups=groups, **more)

    monkeypatch.setattr(Subgroups, "of", watched)
    table.write_csv(payments)
    for by in ("date", "customer"):  # of a customer's own rows none are of others
        run(
            "report",
            out,
            payments,
            "--groups",
            by,
            "--out",
            out.with_suffix(".html"),
            "--overwrite",
        )
    assert asked["customer"] is None
    assert len(set(zip(asked["date"], group, strict=True))) == len(set(group))
    run(*words, "--keep", "customer", "--holdout", "0.25", "-o", out, "--overwrite")
    assert facts_of(out)["estimated_by"] == "held-out groups"
    assert "customer" in [column.name for column in load_model(out).encoder.columns]


@pytest.mark.sampled(0)
@pytest.mark.parametrize(("method", "option"), quick(1, [("rankrc", "--lam"), ("mibc", "--cost")]))
def test_one_method_has_folds_by_group_and_time_as_well(payments, out, method, option, monkeypatch):
    tried = []
    cv = EncodedRows.cv

    def watched(rows, terms):
        tried.append((rows, cv(rows, terms)))
        return tried[-1][1]

    monkeypatch.setattr(EncodedRows, "cv", watched)
    learner = ("--method", method, option, "1", "--holdout", "0.25", "--folds", 3)
    words = ("fit", payments, "-t", "fraud", *learner, "-o", out)
    done = run(*words, "--groups", "customer")
    says(done, "held-out rows", "held out by customer")
    assert facts_of(out)["estimated_by"] == "held-out groups"
    for rows, folds in tried:
        assert len(folds) == 3
        for train, test in folds:
            assert not set(rows.groups[train]) & set(rows.groups[test])
            assert len(set(rows.y[test])) == 2
            assert len(train) + len(test) == len(rows.y)
    tried.clear()
    done = run(*words, "--time", "date", "--overwrite")
    assert "on the latest rows by date:" in done
    for rows, folds in tried:
        for train, test in folds:
            first, last = rows.time[test].min(), rows.time[test].max()
            assert ((rows.time[train] < first) | (rows.time[train] > last)).all()


def test_a_rule_that_cannot_be_met_says_how_far_it_is(payments, out):
    words = ("--min-precision", "0.999", "-o", out)
    assert "Note: The rule is not met: " in run("fit", payments, "-t", "fraud", *QUICK, *words)


LEVELS = ("--method", "ordinal-rankrc", "--levels", "no,yes")


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--alerts", "many"), "--alerts many cannot be read"),
        (("--alerts", "5/100", "--max-fpr", "0.1"), "both set the threshold"),
        (("--confidence", "0.9"), "needs a rule for the threshold"),
        (("--max-fpr", "0.1", "--confidence", "sure"), "--confidence sure must be a"),
        (("--min-precision", "1.5"), "--min-precision 1.5 must be"),
        (("--cost", "fp=5,fn=amuont"), "there is no column 'amuont'"),
        (("--cost", "fp=5,price=3"), "cannot be read at 'price=3'"),
        (("--cost", "fp=1,fn=fraud"), "both --cost and --target"),
        (("--groups", "costumer"), "Did you mean 'customer'?"),
        (("--max-fpr", "0.1", "--holdout", "0"), "and there are none"),
        (("--time", "kind"), "there is no column 'kind'"),
        ((*LEVELS, "--max-fpr", "0.1"), "needs a rare class"),
        (("--cost", "fp=5,fn=customer_name"), "'c' at row 1 is not a cost"),
        (("--method", "mibc", "--cost", "fp=amount,fn=b"), "is not a cost"),
        (("--method", "rankrc", "--lam", "1", "--holdout", "0", "--max-fpr", "0.1"), "held-out"),
        (("--holdout", "0", "--min-recall", "0.5"), "held-out"),
        (("--time", "a", "--alerts", "5/day"), "a"),
        (("--holdout", "0", "--report", "r.html"), "--report needs held-out rows"),
        (("--method", "rankrc", "--lam", "1", "--holdout", "0", "--report", "r.html"), "held-out"),
        ((*LEVELS, "--report", "r.html"), "--report needs a rare class"),
    ],
)
def test_a_bad_rule_is_refused_before_anything_is_learned(payments, out, monkeypatch, words, said):
    table = pl.read_csv(payments).with_columns(customer_name=pl.lit("c"), b=-pl.col("b").abs())
    table.write_csv(payments)
    monkeypatch.setattr("rareclass.fit.training._Training.fit", lambda *_: pytest.fail("learned"))
    monkeypatch.chdir(out.parent)
    assert said in complaint("fit", payments, "-t", "fraud", *words, "-o", out)
    assert not out.exists()


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
    table.with_columns(pl.col("day").dt.strftime("%d.%m.%Y 07:30")).write_csv(path)
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
    refusal(invoke("threshold", tmp_path, "--max-fpr", ".1"), ErrorKind.UNSUPPORTED, "score")
