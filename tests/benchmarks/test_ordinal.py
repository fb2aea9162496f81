"""The ordinal benchmark: every method learns an order, the paired test, a tiny run."""

import json

import numpy as np
import pytest

from benchmarks.ordinal import __main__ as command
from benchmarks.ordinal import methods, protocol, sets
from benchmarks.ordinal.sets import Rows
from draws import quick

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


@pytest.fixture(scope="module")
def rows():
    """Four levels along a curve: level 1 is most frequent."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    score = X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.3 * rng.normal(size=400)
    return Rows(X, np.searchsorted(np.quantile(score, [0.15, 0.75, 0.9]), score))


@pytest.mark.parametrize("name", quick(4, methods.METHODS))
def test_method_ranks_levels(name, rows):
    if name not in methods.available():
        pytest.skip(f"the library of {name} is not installed")
    part = protocol.one_split(rows, 0)
    if name == methods.EVERY:  # where all others have some of the rare rows
        assert protocol.measure(part, name) is None
        part = part._replace(task=part.task._replace(landmarks=20))
    found = protocol.measure(part, name)
    assert found["mauc"] > 0.8
    assert 0.2 < found["vus"] < found["mauc"]
    assert found["fit_seconds"] > 0.0
    assert found["parameter"]
    assert (found["size"] is not None) == bool(methods.METHODS[name].carries)
    assert found["parts"] == []


@pytest.mark.parametrize(("rarest", "n_parts"), [(9, 0), (12, 12), (50, protocol.PARTS)])
def test_parts_of_the_test_rows_have_every_level(rarest, n_parts):
    y = np.repeat([0, 1, 2], [200, rarest, 60])
    found = protocol.part_values(y, y.astype(float))
    assert found == [1.0] * n_parts


def test_command_keeps_what_is_not_measured_again(tmp_path, capsys, monkeypatch, rows):
    monkeypatch.setattr(sets, "load", lambda name, folder: rows)
    monkeypatch.setattr(sets, "is_there", lambda name, folder: True)
    file = tmp_path / "ordinal.json"
    base = ["--json", str(file), "--splits", "2"]
    assert command.main([*base, "--sets", "wine", "--methods", methods.OURS, "ridge"]) == 0
    first = json.loads(file.read_text())["sets"]["wine"]
    words = ["--sets", "wine", "days", "--percents", "25", "--methods", "ridge"]
    assert command.main([*base, *words]) == 0
    second = json.loads(file.read_text())["sets"]
    assert list(second) == ["wine", "days"]
    assert first["levels"] == np.bincount(rows.y).tolist()

    def ours(found):
        return [fit for fit in found["fits"] if fit["method"] == methods.OURS]

    assert ours(second["wine"]) == ours(first)
    assert len(second["wine"]["fits"]) == 4
    assert [fit["percent"] for fit in second["days"]["fits"]] == [25.0]
    assert "OrdinalRankRC" in capsys.readouterr().out
