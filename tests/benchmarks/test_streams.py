"""Benchmarks of streams on made-up ones: every way runs; ranks, rates and pages by hand."""

import json

import numpy as np
import pytest

from benchmarks import (
    stream_forests,
    stream_mixture,
)
from benchmarks.pages.registry import PAGES
from benchmarks.stream_mixture import Stream

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


def test_river_stands_beside_cbr():
    figures = {"auc": 0.8, "average_precision": 0.5, "precision_at_100_a_day": 0.4}
    result = {
        "rows": 1000,
        "tried_rows": 100,
        "chosen": {"rareclass": "CBR", "river": "River"},
        "results": {"CBR": {"rows_per_s": 5e5, **figures}},
        "against": {
            "River": {"times_the_rows_per_s": 25.0, "its_standard_error_over_days": 0.01, **figures}
        },
    }
    text = PAGES["stream_river"].body(result)
    assert "| CBR | 500,000 | 0.8000 | 0.5000 | 0.4000 |" in text
    assert "- Against River: 25.0 times the rows a second (goal 20), AUC +0.8000" in text


def shifted_columns(name, most):
    rng = np.random.default_rng(0)
    rare = rng.random(400) < 0.2
    X = rng.normal(size=(400, 3)) + 2.0 * rare[:, None] + [0.0, 10.0, 20.0]
    return Stream(X[:most], rare[:most], np.arange(400)[:most] // 100)


def test_forests_go_all_ways(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream_forests.stream_mixture, "read", shifted_columns)
    monkeypatch.setattr(stream_forests, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(stream_forests, "find_spec", lambda name: None)
    file = tmp_path / "found.json"
    call = ["--sets", "shuttle", "--rows", "300", "--json", str(file), "--drifts", "none"]
    assert stream_forests.main(call) == 0
    cells = json.loads(file.read_text())["cells"]
    assert len({cell["way"] for cell in cells}) == len(cells) == 6
    assert "Vowpal Wabbit is not installed: left out." in capsys.readouterr().out


def test_ranks_are_within_a_stream_and_rates_against_the_mixture():
    def cell(name, way, quality, rate):
        measures = dict.fromkeys(stream_forests.MEASURES, quality)
        return {"set": name, "drift": "none", "way": way, "rows_per_s": rate, **measures}

    cells = [
        cell("a", "mixture", 0.9, 100.0), cell("a", "other", 0.8, 1.0),
        cell("b", "mixture", 0.7, 400.0), cell("b", "other", 0.8, 1.0),
        cell("b", "only here", 0.9, 1.0),
    ]  # fmt: skip
    first, second = stream_forests.lines(cells)
    assert first == ["none", "mixture", "2", *["1.5, 0.800"] * 3, "1"]
    assert second == ["none", "other", "2", *["1.5, 0.800"] * 3, "200"]


def one_rare_shift(name, most):
    rng = np.random.default_rng(0)
    rare = rng.random(2500) < 0.1
    X = rng.normal(size=(2500, 3)) + rare[:, None]
    return stream_mixture.Stream(X, rare, np.arange(2500) // 1000)


def test_a_made_up_stream_goes_all_ways(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream_mixture, "read", one_rare_shift)
    monkeypatch.setattr(stream_mixture, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(stream_mixture.stream_river, "RIVER", {"its defaults": lambda: None})
    file = tmp_path / "found.json"
    assert stream_mixture.main(["--sets", "shuttle", "--json", str(file)]) == 0
    cells = json.loads(file.read_text())["cells"]
    assert len(cells) == 1 + 1 + 7 + 1
    assert all(cell["auc"] > 0.5 and cell["rows_per_s"] > 0 for cell in cells)
    assert stream_mixture.main(["--sets", "shuttle", "--keep-river", "--json", str(file)]) == 0
    again = json.loads(file.read_text())["cells"]
    assert again[-1] == cells[-1]
    assert [cell["way"] for cell in again] == [cell["way"] for cell in cells]
    said = capsys.readouterr().out
    assert "shuttle, chosen on" in said
    assert "best of River" in said
    assert "| shuttle, chosen on | mixture | " in PAGES["stream_mixture"].body({"cells": cells})
