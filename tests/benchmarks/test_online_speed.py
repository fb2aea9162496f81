"""The online learners' benchmark on tiny streams."""

import json

import numpy as np
import pytest

from benchmarks import online_page, online_speed, online_streams
from rareclass.online import CBR


@pytest.mark.thorough
def test_every_case_has_a_rate_and_memory_a_growth(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(online_speed, "data_folder", lambda: None)
    words = ["--rows", "1500", "--repeats", "1", "--memory-rows", "600", "--folder", str(tmp_path)]
    assert online_speed.main([*words, "--what", "rate"]) == 0
    rates = json.loads((tmp_path / "online_speed.json").read_text())
    assert {row["learner"] for row in rates["rows"]} == set(online_speed.LEARNERS)
    for row in rates["rows"]:
        assert row["rows_per_second"] > 0
        assert ("step_share" in row) == row["learner"].startswith("CBR")
    assert not (tmp_path / "online_memory.json").exists()
    assert "cod_rna, d = 8 is not in the data folder" in capsys.readouterr().out
    assert "| like covtype, d = 54 | OPAUC |" in online_page.online_speed(rates)

    assert online_speed.main([*words, "--what", "memory", "--learners", "UniExp"]) == 0
    memory = json.loads((tmp_path / "online_memory.json").read_text())
    (row,) = memory["rows"]
    assert row["rows"] == 600
    assert 0 < row["first_mib"] <= row["last_mib"] + 1.0
    assert "| UniExp |" in online_page.online_memory(memory)


def test_step_share_counts_pairs_by_their_definition():
    stream = online_streams.mixture(3000, rare_share=0.1)
    model = CBR(random_state=0).partial_fit(stream.X[:200], stream.y[:200], classes=[0, 1])
    held = online_streams.Stream(stream.X[-40:], stream.y[-40:])
    majority, rare = online_speed.buffered_rows(model)
    seen = stream.y[:200]
    assert (len(majority), len(rare)) == (min((seen == 0).sum(), 50), min(seen.sum(), 50))
    ours = {tuple(row) for row in np.vstack([majority, rare])}
    assert ours <= {tuple(row) for row in stream.X[:200]}
    made = total = 0
    for x, label in zip(*held, strict=True):
        for b in rare if label == 0 else majority:
            z = (x - b) if label else (b - x)
            loss = 0.5244005127080407 * np.sqrt(z @ model.state_.covariance @ z) - z @ model.coef_
            made, total = made + (loss > 0), total + 1
    assert 0.0 < made / total < 1.0
    assert online_speed.step_share(model, held) == pytest.approx(made / total)
