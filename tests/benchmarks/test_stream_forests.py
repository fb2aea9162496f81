"""The forests' benchmark on made-up streams."""

import json

import numpy as np
import pytest

from benchmarks import stream_forests
from benchmarks.stream_mixture import Stream


def made_up(name, most):
    rng = np.random.default_rng(0)
    rare = rng.random(400) < 0.2
    X = rng.normal(size=(400, 3)) + 2.0 * rare[:, None] + [0.0, 10.0, 20.0]
    return Stream(X[:most], rare[:most], np.arange(400)[:most] // 100)


def test_made_up_streams_go_all_ways_and_a_run_goes_on_where_it_stopped(
    tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(stream_forests.stream_mixture, "read", made_up)
    monkeypatch.setattr(stream_forests, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(stream_forests, "find_spec", lambda name: None)
    file = tmp_path / "found.json"
    call = ["--sets", "shuttle", "--rows", "300", "--json", str(file)]
    assert stream_forests.main([*call, "--drifts", "none"]) == 0
    first = json.loads(file.read_text())["cells"]
    assert len({cell["way"] for cell in first}) == len(first) == 6
    assert stream_forests.main([*call, "--drifts", "none,abrupt"]) == 0
    cells = json.loads(file.read_text())["cells"]
    assert cells[:6] == first
    assert [cell["drift"] for cell in cells] == ["none"] * 6 + ["abrupt"] * 6
    assert stream_forests.main([*call, "--drifts", "abrupt", "--again", "mixture"]) == 0
    again = json.loads(file.read_text())["cells"]
    assert [cell["way"] for cell in again] == [cell["way"] for cell in cells]
    changed = [k for k in range(12) if again[k] != cells[k]]
    assert changed == [6]
    assert again[6]["auc"] == cells[6]["auc"]
    assert "Vowpal Wabbit is not installed: left out." in capsys.readouterr().out
    with pytest.raises(SystemExit, match="has streams of 300 rows"):
        stream_forests.main(["--rows", "200", "--json", str(file)])


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
