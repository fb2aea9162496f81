"""What a model file is shown to hold."""

import json
from pathlib import Path

import polars as pl

from cli.conftest import Run, message, output_of, purchases
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model


def test_a_model_file_is_shown_as_it_is(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    model = fitted / "model.rareclass"
    said = output_of(rareclass("show", model, "--json", tmp_path / "m.json"))
    content = load_model(model)
    told = json.loads((tmp_path / "m.json").read_text())
    assert told["bytes"] == model.stat().st_size
    assert told["estimate"] == facts_as_json(content.facts)["held_out"]
    assert [column["name"] for column in told["columns"]] == purchases().columns[:-1]
    assert told["thresholds"] == [content.threshold]
    assert content.held_out is not None
    assert told["held_out_scores"] == len(content.held_out.scores)
    assert abs(told["probabilities"]["prevalence"] - 0.1) < 0.01
    for part in (
        "Rare class: fraud = yes, 24 rows (10.00%)",
        "method rankrc",
        "Estimate by held-out rows",
    ):
        assert part in said
    assert f"{told['estimate']['measures']['AUC']['value']:.3f}" in said
    assert json.loads(rareclass("show", model, "--json", "-").stdout) == told
    assert "exists already" in message(rareclass("show", model, "--json", tmp_path / "m.json"))


def test_the_rule_of_a_threshold_is_shown(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    changed = tmp_path / "changed.rareclass"
    words = ("threshold", fitted / "model.rareclass", fitted / "new.csv", "--max-fpr", 0.2)
    assert rareclass(*words, "-o", changed).exit_code == 0
    said = " ".join(rareclass("show", changed).stdout.split())
    assert "rule: false-positive rate <= 0.2, confidence 0.9" in said


def test_a_stream_is_shown_and_an_old_hunt_is_not(tmp_path: Path, rareclass: Run) -> None:
    table = purchases().with_columns(pl.col("amount").cast(pl.Float64))
    table.drop("order").write_csv(tmp_path / "t.csv")
    run = tmp_path / "run"
    output_of(rareclass("stream", tmp_path / "t.csv", "-t", "fraud", "--checkpoint", run))
    result = output_of(rareclass("show", run))
    assert "Rare class: fraud = yes" in result
    assert "amount" in result
    (tmp_path / "found").mkdir()
    (tmp_path / "found" / "hunt.json").write_text("{}")
    assert "score.rareclass does not exist" in message(rareclass("show", tmp_path / "found"))
    assert "does not exist" in message(rareclass("show", tmp_path / "nothing.rareclass"))
