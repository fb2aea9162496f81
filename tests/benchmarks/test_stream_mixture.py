"""The mixture's benchmark on a made-up stream."""

import json

import numpy as np

from benchmarks import online_page, stream_mixture


def made_up(name, most):
    rng = np.random.default_rng(0)
    rare = rng.random(2500) < 0.1
    X = rng.normal(size=(2500, 3)) + rare[:, None]
    return stream_mixture.Stream(X, rare, np.arange(2500) // 1000)


def test_a_made_up_stream_goes_all_ways(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream_mixture, "read", made_up)
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
    assert "| shuttle, chosen on | mixture | " in online_page.mixture({"cells": cells})
