"""Which rows are called rare, drift, and numbers for scripts, from the command line."""

import json
from pathlib import Path

import polars as pl
import pytest

from cli.conftest import Run, message, purchases


@pytest.fixture
def drifted(tmp_path: Path) -> Path:
    path = tmp_path / "drifted.csv"
    purchases(seed=2).with_columns(amount=pl.col("amount") + 500, country=pl.lit("ZZ")).write_csv(
        path
    )
    return path


def test_the_so_many_highest_rows(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    words = ("score", fitted / "model.skops", fitted / "new.csv", "-o", tmp_path / "s.csv")
    result = rareclass(*words, "--top", 7, "--json", tmp_path / "n.json", "--id", "order")
    assert result.exit_code == 0, result.output
    table = pl.read_csv(tmp_path / "s.csv")
    assert table["order"].to_list() == purchases(seed=1)["order"].to_list()
    called = table.filter(pl.col("called_rare") == 1)["score"]
    assert len(called) == 7
    assert called.min() >= table.filter(pl.col("called_rare") == 0)["score"].max()
    assert "the 7 highest are called rare" in result.stdout
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert numbers["called"] == {"no": 233, "yes": 7}
    result = rareclass(*words, "--threshold", 0.5, "--overwrite")
    assert result.exit_code == 0, result.output
    table = pl.read_csv(tmp_path / "s.csv")
    assert ((table["score"] > 0.5) == (table["called_rare"] == 1)).all()
    assert table["probability"].is_between(0, 1, closed="none").all()


def test_contradictions_are_refused(fitted: Path, tmp_path: Path, rareclass: Run) -> None:
    words = ("score", fitted / "model.skops", fitted / "new.csv", "-o", tmp_path / "s.csv")
    for options, told in (
        (("--top", 3, "--threshold", 1), "--top and --threshold both say"),
        (("--top", 0), "--top 0 is no number of rows"),
        (("--threshold", "nan"), "is no score"),
        (("--json", fitted / "new.csv"), "is the file to be scored"),
    ):
        assert told in message(rareclass(*words, *options))
    assert not (tmp_path / "s.csv").exists()


def test_drift_is_told_and_refused(
    fitted: Path, tmp_path: Path, drifted: Path, rareclass: Run
) -> None:
    out = tmp_path / "s.csv"
    words = ("score", fitted / "model.skops", drifted, "-o", out, "--json", tmp_path / "n.json")
    result = rareclass(*words)
    assert result.exit_code == 0, result.output
    said = " ".join(result.stdout.split())
    assert "column 'country': 240 cells hold values not seen in training (100.0%)" in said
    assert "amount (240, 100.0%)" in said
    assert "more alerts than chance explains" in said
    numbers = json.loads((tmp_path / "n.json").read_text())
    assert numbers["columns"]["amount"] == {"cells": 240, "share": 1.0}
    assert numbers["alert_rate"]["is_far"]
    out.unlink()
    assert "are unlike any of training" in message(rareclass(*words, "--strict", "--overwrite"))
    assert not out.exists()
    evaluate = ("evaluate", fitted / "model.skops", drifted)
    assert rareclass(*evaluate).exit_code == 0
    assert "are unlike any of training" in message(rareclass(*evaluate, "--strict"))
    result = rareclass("evaluate", fitted / "model.skops", fitted / "new.csv", "--strict")
    assert result.exit_code == 0, result.output
    assert "Log loss" in result.stdout
