"""`rareclass fit` with a rule for its threshold, and rows held out by group or time."""

import json

import numpy as np
import polars as pl
import pytest

from cli.conftest import facts_of
from command_line import QUICK, complaint, run, run_with_json, says
from draws import quick
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.fit.method import EncodedRows
from rareclass.model.model_file import load_model


@pytest.fixture
def payments(tmp_path):
    """60 days of payments, six a customer, two in a hundred of them fraud."""
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
        (
            ("--alerts", "20/1,000", "--confidence", "0.8"),
            ThresholdRule.max_alerts(20, rows=1000, confidence=0.8),
            "confidence 0.8",
        ),
        (
            ("--min-recall", "0.5", "--confidence", "none", "--prevalence", "0.01"),
            ThresholdRule.min_recall(0.5, confidence=None, prevalence=0.01),
            "Rule: recall >= 0.5",
        ),
    ],
)
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
def test_rows_of_a_group_are_held_out_together(payments, out):
    words = ("fit", payments, "-t", "fraud", *QUICK, "--groups", "customer")
    says(run(*words, "-o", out), "held out by customer", "customer (named by --groups)")
    metadata = facts_of(out)
    assert metadata["estimated_by"] == "cross-fitting by group"
    assert "customer" not in metadata["importances"]
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


@pytest.mark.sampled(8)
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--alerts", "many"), "--alerts many cannot be read"),
        (("--alerts", "5/100", "--max-fpr", "0.1"), "both set the threshold"),
        (("--confidence", "0.9"), "needs a rule for the threshold"),
        (("--max-fpr", "0.1", "--confidence", "sure"), "--confidence sure is not a number"),
        (("--min-precision", "1.5"), "--min-precision 1.5: "),
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
    ],
)
def test_a_bad_rule_is_refused_before_anything_is_learned(payments, out, monkeypatch, words, said):
    table = pl.read_csv(payments).with_columns(customer_name=pl.lit("c"), b=-pl.col("b").abs())
    table.write_csv(payments)
    monkeypatch.setattr("rareclass.fit.training._fit", lambda *_: pytest.fail("learned"))
    assert said in complaint("fit", payments, "-t", "fraud", *words, "-o", out)
    assert not out.exists()
