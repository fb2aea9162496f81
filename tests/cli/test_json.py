"""What a verb finds, as numbers for scripts: in a file, or alone on standard output."""

import json
from pathlib import Path

import pytest

from cli.test_hunt import FEW, data, words  # noqa: F401 (a fixture)
from command_line import complaint, invoke, run
from made_tables import purchases


@pytest.mark.sampled(0)
def test_a_hunt_gives_its_summary(data):  # noqa: F811
    result = invoke(*words(data, "--cleared", "ok", *FEW, "--json", "-"))
    assert result.exit_code == 0, result.output
    told = json.loads(result.stdout)
    assert told["counts"]["rare"] == {"fraud": 6}
    assert told == json.loads((data.parent / "found" / "hunt.json").read_text())
    inside = words(data, *FEW, "--overwrite", "--json", data.parent / "found" / "x.json")
    assert "--json" in complaint(*inside)


def test_a_stream_gives_its_last_report_and_may_do_so_again(tmp_path):
    purchases(600).write_csv(tmp_path / "rows.csv")
    words = ("stream", tmp_path / "rows.csv", "-t", "fraud", "--learner", "oam")
    file = tmp_path / "told.json"
    for _ in range(2):
        result = run(*words, "--checkpoint", tmp_path / "run", "--json", file)
        assert "told.json" in result
        told = json.loads(file.read_text())
        assert (told["rows"], told["rare"], told["stopped_by"]) == (600, 60, None)
        assert 0.5 < told["measures"]["auc"] <= 1.0
        assert Path(told["checkpoint"]).is_file()
    alone = invoke(*words, "--checkpoint", tmp_path / "other", "--json", "-")
    assert json.loads(alone.stdout)["rows"] == 600
    file.write_text("{}")
    refused = complaint(*words, "--checkpoint", tmp_path / "run", "--json", file)
    assert "no stream wrote it" in refused


@pytest.mark.parametrize("verb", ["score", "evaluate", "show", "threshold"])
def test_numbers_stand_alone_on_standard_output(fitted, tmp_path, verb):
    more = {
        "score": (fitted / "new.csv", "-o", tmp_path / "s.csv"),
        "evaluate": (fitted / "new.csv",),
        "show": (),
        "threshold": ("--max-fpr", 0.1),
    }
    result = invoke(verb, fitted / "model.rareclass", *more[verb], "--json", "-")
    assert result.exit_code == 0, result.output
    assert isinstance(json.loads(result.stdout), dict)
    assert not Path("-").exists()
    again = invoke("show", fitted / "model.rareclass")
    assert "Target" in again.stdout or "fraud" in again.stdout
