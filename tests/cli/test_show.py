"""Models that are opened: what is shown of one, numbers for scripts, and `rareclass.load`."""

import json
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import rareclass as package
from cli.test_hunt import FEW, words
from cli.test_hunt import data as data
from command_line import complaint, json_of, run, run_with_json, says, scores_of
from made_tables import purchases
from rareclass.errors import InputError
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model


def test_a_model_file_is_shown_as_it_is(fitted, tmp_path):
    model = fitted.model
    said, told = run_with_json("show", model)
    content = load_model(model)
    assert told["bytes"] == model.stat().st_size
    assert told["estimate"] == facts_as_json(content.facts)["held_out"]
    assert [column["name"] for column in told["columns"]] == purchases().columns[:-1]
    assert told["thresholds"] == [content.threshold]
    assert told["held_out_scores"] == len(content.held_out.scores)
    assert abs(told["probabilities"]["prevalence"] - 0.1) < 0.01
    rare = "Rare class: fraud = yes, 24 rows (10.00%)"
    assert all(part in said for part in (rare, "method rankrc", "Estimate by held-out rows"))
    assert f"{told['estimate']['measures']['AUC']['value']:.3f}" in said
    assert json_of("show", model) == told
    assert "exists already" in complaint("show", model, "--json", fitted.new)


def test_the_rule_of_a_threshold_is_shown(fitted, tmp_path):
    changed = tmp_path / "changed.rareclass"
    words = ("threshold", fitted.model, fitted.new, "--max-fpr", 0.2)
    run(*words, "-o", changed)
    assert "rule: false-positive rate <= 0.2, confidence 0.9" in run("show", changed)


@pytest.mark.usefixtures("without_drawing")
@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", ["not asked for", "stopped", "refitted"])
def test_a_model_says_from_how_many_rows_it_learned(tmp_path, monkeypatch, way):
    if way == "stopped":
        monkeypatch.setattr("rareclass.fit.training._Training.refit", lambda *given: None)
    more = ("--no-refit",) if way == "not asked for" else ()
    rule = ("--method", "rankrc", "--lam", 1, "--holdout", 0.3, "--min-recall", 0.5)
    no_copies = pl.col("amount") + pl.int_range(pl.len()) / 1e6
    purchases(600).with_columns(no_copies).write_csv(tmp_path / "t.csv")
    model = tmp_path / "m.rareclass"
    said = run("fit", tmp_path / "t.csv", "-t", "fraud", *rule, *more, "-o", model)
    assert ("(approximate)" in said) == (way == "refitted")
    shown = run("show", model)
    assert ("600 rows, seed" if way == "refitted" else "420 of 600 rows, 42 of them rare") in shown
    run("report", model, "-o", tmp_path / "r.html")
    learned = "600 rows, 60 of them" if way == "refitted" else "420 of 600 rows, 42 of them rare"
    assert f" on {learned}" in (tmp_path / "r.html").read_text()


def test_a_stream_is_shown_and_an_old_hunt_is_not(tmp_path):
    table = purchases().with_columns(pl.col("amount").cast(pl.Float64))
    table.drop("order").write_csv(tmp_path / "t.csv")
    folder = tmp_path / "run"
    run("stream", tmp_path / "t.csv", "-t", "fraud", "--checkpoint", folder)
    says(run("show", folder), "Rare class: fraud = yes", "amount")
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "hunt.json").write_text("{}")
    assert "score.rareclass does not exist" in complaint("show", tmp_path / "found")
    assert "does not exist" in complaint("show", tmp_path / "nothing.rareclass")


@pytest.mark.sampled(0)
def test_a_hunt_gives_its_summary(data):
    told = json_of(*words(data, "--cleared", "ok", *FEW))
    assert told["counts"]["rare"] == {"fraud": 6}
    assert told == json.loads((data.parent / "found" / "hunt.json").read_text())
    inside = words(data, *FEW, "--overwrite", "--json", data.parent / "found" / "x.json")
    assert "--json" in complaint(*inside)


def test_a_stream_gives_its_last_report_and_may_do_so_again(tmp_path):
    purchases(600).write_csv(tmp_path / "rows.csv")
    words = ("stream", tmp_path / "rows.csv", "-t", "fraud", "--learner", "oam")
    file = tmp_path / "told.json"
    for _ in range(2):
        assert "told.json" in run(*words, "--checkpoint", tmp_path / "run", "--json", file)
        told = json.loads(file.read_text())
        assert (told["rows"], told["rare"], told["stopped_by"]) == (600, 60, None)
        assert 0.5 < told["measures"]["auc"] <= 1.0
        assert Path(told["checkpoint"]).is_file()
    assert json_of(*words, "--checkpoint", tmp_path / "other")["rows"] == 600
    file.write_text("{}")
    refused = complaint(*words, "--checkpoint", tmp_path / "run", "--json", file)
    assert "no stream wrote it" in refused


@pytest.mark.parametrize(
    ("verb", "more"),
    [("score", ("-o", "s.csv")), ("evaluate", ()), ("threshold", ("--max-fpr", 0.1))],
)
def test_numbers_stand_alone_on_standard_output(fitted, tmp_path, monkeypatch, verb, more):
    monkeypatch.chdir(tmp_path)
    assert json_of(verb, fitted.model, fitted.new, *more)
    assert not Path("-").exists()


@pytest.fixture(scope="module")
def written(fitted):
    return scores_of(fitted.model, fitted.new)


@pytest.mark.parametrize("kind", ["path", "polars", "pandas", "pyarrow"])
def test_a_table_of_any_kind_is_scored_as_the_command_scores_its_file(fitted, written, kind):
    model = package.load(fitted.model)
    table = pl.read_csv(fitted.new)
    make = {"polars": table.clone, "pandas": table.to_pandas, "pyarrow": table.to_arrow}
    given = make.get(kind, lambda: str(fitted.new))()
    np.testing.assert_array_equal(model.score_samples(given), written["score"].to_numpy())
    called = model.predict(given)
    assert set(called) == {"yes", "no"}
    np.testing.assert_array_equal(called == "yes", written["called_rare"].to_numpy())
    probability = model.predict_proba(given)
    np.testing.assert_allclose(probability[:, 1], written["probability"].to_numpy(), rtol=1e-12)
    np.testing.assert_allclose(probability.sum(axis=1), 1.0)


def test_what_a_model_says_of_itself(fitted):
    model = package.load(fitted.model)
    assert model.target == "fraud"
    assert model.columns == ["amount", "items", "country", "member"]
    assert model.classes == ("no", "yes")
    assert model.thresholds.shape == (1,)
    assert model.facts.target.n_rare == 24
    assert repr(model) == "<Model of 'fraud': no, yes>"
    assert package.load in [getattr(package, name) for name in package.__all__]


def test_columns_in_another_order_and_no_rows(fitted):
    model = package.load(fitted.model)
    table = pl.read_csv(fitted.new).select("member", "amount", "country", "items")
    expected = model.score_samples(fitted.new)
    np.testing.assert_array_equal(model.score_samples(table), expected)
    np.testing.assert_allclose(model.score_samples(table.head(7)), expected[:7], rtol=1e-12)
    assert model.score_samples(table.head(0)).shape == (0,)
    assert model.predict(table.head(0)).shape == (0,)


def test_a_stream_is_opened_by_its_folder_or_a_checkpoint(fitted, tmp_path):
    folder = tmp_path / "stream"
    rows = pl.read_csv(fitted.train).with_columns(fraud=pl.col("fraud") == "yes")
    rows.write_csv(tmp_path / "rows.csv")
    run("stream", tmp_path / "rows.csv", "-t", "fraud", "--checkpoint", folder)
    model = package.load(folder)
    assert model.classes == ("false", "true")
    scores = model.score_samples(fitted.new)
    # Twice: a model has no memory of what it has scored.
    np.testing.assert_array_equal(model.score_samples(fitted.new), scores)
    newest = max(folder.glob("checkpoint-*.npz"))
    np.testing.assert_array_equal(package.load(newest).score_samples(fitted.new), scores)
    bad = pl.read_csv(fitted.new, infer_schema=False)
    bad[3, "amount"] = "lots"
    for _ in range(2):
        with pytest.raises(InputError, match=r"Row 4: .*lots"):
            model.score_samples(bad)


def test_what_is_no_table_and_no_model(fitted, tmp_path):
    model = package.load(fitted.model)
    cut = tmp_path / "cut.rareclass"
    cut.write_bytes(fitted.model.read_bytes()[:1000])
    for ask, given, said in (
        (model.score_samples, np.zeros((2, 4)), "ndarray is not a table"),
        (model.score_samples, pl.read_csv(fitted.new).drop("amount"), "lacks column 'amount'"),
        (package.load, tmp_path / "none.rareclass", "does not exist"),
        (package.load, tmp_path, "is a folder"),
        (package.load, fitted.new, "not a model file"),
        (package.load, cut, "damaged"),
    ):
        with pytest.raises(InputError, match=said):
            ask(given)
