"""The benchmark of resets on a made-up stream."""

import json

import numpy as np

from benchmarks import online_page, stream_resets


def made_up(name, most):
    rng = np.random.default_rng(0)
    rare = rng.random(6000) < 0.1
    X = rng.normal(size=(6000, 3)) + np.array([2.0, 0.0, -4.0]) * (1.0 + rare[:, None])
    return stream_resets.Stream(X, rare, np.arange(6000) // 1000)


def test_an_exchange_of_columns_rings_and_resets(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(stream_resets.stream_mixture, "read", made_up)
    monkeypatch.setattr(stream_resets, "data_folder", lambda: tmp_path)
    monkeypatch.setattr(stream_resets, "WINDOW", 1000)
    monkeypatch.delitem(stream_resets.WAYS, "mixture")
    file = tmp_path / "found.json"
    assert stream_resets.main(["--sets", "shuttle,donors", "--json", str(file)]) == 0
    cells = json.loads(file.read_text())["cells"]
    assert len(cells) == 2 * 3 * 2 * 2
    for cell in cells:
        if cell["on_drift"] == "report":
            assert cell["resets"] == 0
        elif cell["drift"] != "none":
            assert cell["resets"] > 0
    assert "the 1 others" in capsys.readouterr().out
    assert "| abrupt | CBR | the 1 chosen on | " in online_page.resets({"cells": cells})
