"""What a model file is shown to hold."""

import json

import polars as pl

from command_line import complaint, invoke, run
from made_tables import purchases
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model


def test_a_model_file_is_shown_as_it_is(fitted, tmp_path):
    model = fitted / "model.rareclass"
    said = run("show", model, "--json", tmp_path / "m.json")
    content = load_model(model)
    told = json.loads((tmp_path / "m.json").read_text())
    assert told["bytes"] == model.stat().st_size
    assert told["estimate"] == facts_as_json(content.facts)["held_out"]
    assert [column["name"] for column in told["columns"]] == purchases().columns[:-1]
    assert told["thresholds"] == [content.threshold]
    assert told["held_out_scores"] == len(content.held_out.scores)
    assert abs(told["probabilities"]["prevalence"] - 0.1) < 0.01
    for part in (
        "Rare class: fraud = yes, 24 rows (10.00%)",
        "method rankrc",
        "Estimate by held-out rows",
    ):
        assert part in said
    assert f"{told['estimate']['measures']['AUC']['value']:.3f}" in said
    assert json.loads(invoke("show", model, "--json", "-").stdout) == told
    assert "exists already" in complaint("show", model, "--json", tmp_path / "m.json")


def test_the_rule_of_a_threshold_is_shown(fitted, tmp_path):
    changed = tmp_path / "changed.rareclass"
    words = ("threshold", fitted / "model.rareclass", fitted / "new.csv", "--max-fpr", 0.2)
    run(*words, "-o", changed)
    said = " ".join(invoke("show", changed).stdout.split())
    assert "rule: false-positive rate <= 0.2, confidence 0.9" in said


def test_a_stream_is_shown_and_an_old_hunt_is_not(tmp_path):
    table = purchases().with_columns(pl.col("amount").cast(pl.Float64))
    table.drop("order").write_csv(tmp_path / "t.csv")
    folder = tmp_path / "run"
    run("stream", tmp_path / "t.csv", "-t", "fraud", "--checkpoint", folder)
    result = run("show", folder)
    assert "Rare class: fraud = yes" in result
    assert "amount" in result
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "hunt.json").write_text("{}")
    assert "score.rareclass does not exist" in complaint("show", tmp_path / "found")
    assert "does not exist" in complaint("show", tmp_path / "nothing.rareclass")
