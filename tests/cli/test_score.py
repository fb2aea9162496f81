"""Which rows are called rare, drift, and numbers for scripts, from the command line."""

import numpy as np
import polars as pl
import pytest

from command_line import QUICK, complaint, invoke, run, run_with_json, says, scores_of
from draws import quick
from faults import refusal
from made_tables import purchases
from rareclass.encoding.encoders import TableEncoder
from rareclass.encoding.typed_table import read_as_trained
from rareclass.errors import ErrorKind
from rareclass.model.facts import facts_as_json
from rareclass.opening import open_model


@pytest.fixture
def drifted(tmp_path):
    path = tmp_path / "drifted.csv"
    moved = {"amount": pl.col("amount") + 500, "country": pl.lit("ZZ")}
    purchases(seed=2).with_columns(**moved).write_csv(path)
    return path


def test_the_so_many_highest_rows(fitted, tmp_path):
    words = ("score", fitted.model, fitted.new, "-o", tmp_path / "s.csv")
    result, numbers = run_with_json(*words, "--top", 7, "--id", "order")
    table = pl.read_csv(tmp_path / "s.csv")
    assert table["order"].to_list() == purchases(seed=1)["order"].to_list()
    called = table.filter(pl.col("called_rare") == 1)["score"]
    assert len(called) == 7
    assert called.min() >= table.filter(pl.col("called_rare") == 0)["score"].max()
    assert "the 7 highest are called rare" in result
    assert numbers["called"] == {"no": 233, "yes": 7}
    run(*words, "--threshold", 0.5, "--overwrite")
    table = pl.read_csv(tmp_path / "s.csv")
    assert ((table["score"] > 0.5) == (table["called_rare"] == 1)).all()
    assert table["probability"].is_between(0, 1, closed="none").all()


@pytest.mark.sampled(0)
def test_held_out_scores_are_as_of_the_saved_model(tmp_path, monkeypatch):
    purchases(2000).write_csv(tmp_path / "train.csv")
    words = ("fit", tmp_path / "train.csv", "-t", "fraud", "--method", "rankrc", "--lam", "0.1")
    run(*words, "-o", tmp_path / "m.rareclass", "--max-fpr", 0.1)
    content = open_model(tmp_path / "m.rareclass")
    rest = content.held_out.y == 0
    scores = scores_of(tmp_path / "m.rareclass", tmp_path / "train.csv")["score"].to_numpy()
    for share in (0.1, 0.5, 0.9):
        whole = np.quantile(scores[purchases(2000)["fraud"] == "no"], share)
        assert abs(np.quantile(content.held_out.scores[rest], share) - whole) < 0.1 * scores.std()
    called = content.held_out.scores[rest] > content.threshold
    assert called.mean() <= 0.1
    assert facts_as_json(content.facts)["rule"]["alerts"] >= called.sum()


def test_contradictions_are_refused(fitted, tmp_path):
    words = ("score", fitted.model, fitted.new, "-o", tmp_path / "s.csv")
    both = ("--top", "--threshold")
    for options, kind, facts in (
        (("--top", 3, "--threshold", 1), ErrorKind.COMBINATION, both),
        (("--top", 0), ErrorKind.SETTING, ("--top 0",)),
        (("--threshold", "nan"), ErrorKind.SETTING, ("--threshold nan",)),
        (("--json", fitted.new), ErrorKind.EXISTING_FILE, ("--json", "new.csv")),
        (("--json", tmp_path / "s.csv"), ErrorKind.EXISTING_FILE, ("--json", "--out")),
    ):
        refusal(invoke(*words, *options), kind, *facts)
    assert not (tmp_path / "s.csv").exists()


def test_a_column_that_is_empty_now_is_told(fitted, tmp_path):
    new, out = tmp_path / "new.csv", tmp_path / "s.csv"
    pl.read_csv(fitted.new).with_columns(amount=None).write_csv(new)
    words = ("score", fitted.model, new, "-o", out)
    result, numbers = run_with_json(*words)
    assert "amount (240, 100.0%)" in result
    assert numbers["empty_where_none_was"] == {"amount": 240}
    strict = invoke(*words, "--strict", "--overwrite")
    assert refusal(strict, ErrorKind.REFUSED, "'amount'").column == "amount"


def test_drift_is_told_and_refused(fitted, tmp_path, drifted):
    out = tmp_path / "s.csv"
    words = ("score", fitted.model, drifted, "-o", out)
    said, numbers = run_with_json(*words)
    says(said, "country (240, 100.0%)", "amount (240, 100.0%)", "significantly more alerts")
    assert numbers["columns"]["amount"] == {"cells": 240, "share": 1.0}
    assert numbers["alert_rate"]["is_far"]
    out.unlink()
    refusal(invoke(*words, "--strict", "--overwrite"), ErrorKind.REFUSED, "drifted.csv")
    assert not out.exists()
    evaluate = ("evaluate", fitted.model, drifted)
    assert "the probabilities are worse than" in run(*evaluate)
    refusal(invoke(*evaluate, "--strict"), ErrorKind.REFUSED, "drifted.csv")
    assert "log loss" in run("evaluate", fitted.model, fitted.new, "--strict")


ROWS = (
    purchases()
    .drop("order")
    .with_columns(
        items=pl.when(pl.int_range(240) % 5 == 0).then(None).otherwise("items"),
        day=pl.Series([f"2024-{1 + k % 12:02}-{1 + k % 28:02}" for k in range(240)]),
    )
)


@pytest.fixture(scope="module", params=["auto", "mibc", "stream"])
def learned(request, tmp_path_factory):
    how, folder = request.param, tmp_path_factory.mktemp("learned")
    ROWS.write_csv(folder / "rows.csv")
    words = ("fit", folder / "rows.csv", "-t", "fraud", "-o", folder / how)
    if how == "stream":
        words = ("stream", folder / "rows.csv", "-t", "fraud", "--checkpoint", folder / how)
    else:
        words += QUICK if how == "auto" else ("--method", how, "--cost", "1", "--holdout", "0")
    run(*words)
    return folder / how


@pytest.mark.sampled(1)
def test_alerts_are_explained_and_no_other_rows(learned, tmp_path):
    words = ("score", learned, learned.parent / "rows.csv", "-o", tmp_path / "s.parquet")
    result = run(*words, "--explain", 2)
    scores = pl.read_parquet(tmp_path / "s.parquet")
    names = [f"{what}_{k}" for k in (1, 2) for what in ("reason", "value", "effect")]
    if learned.name != "stream":
        names += ["case_1", "distance_1", "case_2", "distance_2"]
    assert scores.columns[-len(names) :] == names
    assert ("keeps no rare training rows" in result) == (learned.name == "stream")
    alerts, others = scores.filter("called_rare"), scores.filter(~pl.col("called_rare"))
    assert others["reason_1"].null_count() == len(others)
    assert set(alerts["reason_1"].drop_nulls()) <= set(ROWS.columns) - {"fraud"}
    assert "amount" in alerts["reason_1"].value_counts(sort=True)["reason_1"][:2].to_list()
    assert (alerts["effect_1"] >= alerts["effect_2"].fill_null(0)).all()
    assert (alerts["effect_1"] > 0).all()
    first = alerts.filter(pl.col("reason_1") == "amount").row(0, named=True)
    assert float(first["value_1"]) == ROWS["amount"][first["row"] - 1]
    run(*words, "--explain", 1, "--top", 3, "--overwrite")
    top = pl.read_parquet(tmp_path / "s.parquet").filter("called_rare")
    both = top.join(alerts, on="row")
    assert len(both) == 3
    np.testing.assert_allclose(both["effect_1"], both["effect_1_right"])


@pytest.mark.sampled(1)
@pytest.mark.parametrize("how", quick(2, ["auto", "disk", "mibc", "rankrc"]))
def test_the_nearest_cases_are_rare_rows_of_the_training_file(how, tmp_path, monkeypatch):
    n_more = 7  # rows without a label, and a copy of row 8, before those that are scored
    blank = ROWS[:n_more].with_columns(fraud=pl.lit(None, pl.String))
    train, model = pl.concat([blank, ROWS[3:4], ROWS]), tmp_path / "m.rareclass"
    train.write_csv(tmp_path / "train.csv")
    options = QUICK
    if how == "disk":
        monkeypatch.setattr("rareclass.fit.rows_on_disk.LARGE_SHARE", 1e12)
    elif how != "auto":
        options = ("--method", how, "--cost" if how == "mibc" else "--lam", 1, "--holdout", 0)
    fitted = run("fit", tmp_path / "train.csv", "-t", "fraud", "-o", model, *options)
    assert ("read from disk" in fitted) == (how == "disk")
    ROWS.write_csv(tmp_path / "rows.csv")
    scores = scores_of(model, tmp_path / "rows.csv", "--threshold", -1e9, "--explain", 3)
    fraud = train["fraud"].to_list()
    for k in (1, 2, 3):
        assert {fraud[number - 1] for number in scores[f"case_{k}"]} == {"yes"}
    assert (scores["distance_1"] <= scores["distance_2"]).all()
    own = scores.filter(pl.Series(ROWS["fraud"] == "yes"))
    expected = [8 if row == 4 else row + n_more + 1 for row in own["row"]]
    np.testing.assert_allclose(own["distance_1"], 0.0, atol=1e-6)
    assert own["case_1"].to_list() == expected


@pytest.mark.thorough
def test_many_rare_rows_are_thinned(tmp_path, monkeypatch):
    monkeypatch.setattr("rareclass.fit.training.MOST_CASES", 5)
    ROWS.write_csv(tmp_path / "train.csv")
    words = ("fit", tmp_path / "train.csv", "-t", "fraud", "--method", "mibc", "--holdout", 0)
    for name in ("one", "other"):
        run(*words, "--cost", 1, "-o", tmp_path / name)
    one, other = (open_model(tmp_path / name).cases for name in ("one", "other"))
    assert len(one.number) == 5
    assert one.number.tolist() == other.number.tolist()
    assert (ROWS["fraud"].to_numpy()[one.number - 1] == "yes").all()


@pytest.mark.sampled(1)
def test_the_column_of_each_feature_is_the_one_that_moves_it(learned):
    encoder = open_model(learned).encoder
    if encoder.feature_columns is None:
        return  # the model knows its columns
    columns = list(encoder.columns)

    def encoded(rows):
        text = pl.read_csv(rows.write_csv().encode(), infer_schema=False)
        return np.asarray(encoder.transform(read_as_trained(text, columns, 1)))

    features = np.array(encoder.feature_columns)
    alone = np.full(len(features), True)
    if isinstance(encoder, TableEncoder):  # other features are of two columns
        alone = encoder.view_.second_column_ < 0
    before = encoded(ROWS)
    assert before.shape[1] == len(features)
    for name in [column.name for column in columns]:
        after = encoded(ROWS.with_columns(pl.Series(name, ROWS[name].reverse())))
        moved = np.abs(after - before).max(axis=0) > 0
        assert set(features[moved & alone]) == {name}
        assert moved.sum() >= 0.5 * (features == name).sum()


@pytest.mark.thorough
def test_what_has_no_explanation_is_refused(fitted, tmp_path):
    words = ("score", fitted.model, fitted.new, "-o", tmp_path / "s.csv")
    assert "is not a number of columns" in complaint(*words, "--explain", 0)
    named = tmp_path / "named.csv"
    purchases().rename({"order": "value_2"}).write_csv(named)
    words = (*words[:2], named, *words[3:], "--id", "value_2")
    assert "a column of the scores has that name" in complaint(*words, "--explain", 2)
    run(*words, "--explain", 1)


def test_quiet_prints_faults_alone(fitted, tmp_path):
    words = ("score", fitted.model, fitted.new, "-o", tmp_path / "s.csv")
    result = invoke("--quiet", *words)
    assert (result.exit_code, result.output) == (0, "")
    assert (tmp_path / "s.csv").exists()
    assert "exists already" in complaint("-q", *words)
    assert "Scored 240 rows" in invoke(*words, "--overwrite").stdout
