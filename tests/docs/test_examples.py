"""The gallery: every script says what it shows, needs nothing from elsewhere, and runs in time."""

import ast
import re
import runpy
import time
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[2] / "docs" / "examples").glob("*.py"))
SECONDS = 30  # ten on a machine with nothing else to do


def test_there_are_ten_at_least():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_has_a_story_and_needs_no_files(path):
    text = path.read_text()
    title, line, _, *story = ast.get_docstring(ast.parse(text)).split("\n")
    assert set(line) == {"="}
    assert len(line) >= len(title)
    assert len(" ".join(story)) > 100
    assert "# %%\n# " in text
    assert not re.search(r"https?:|fetch_|read_csv|read_parquet\(|open\(", text)


@pytest.mark.thorough
@pytest.mark.filterwarnings("default")
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_it_runs_and_draws(path, monkeypatch):
    monkeypatch.setenv("MPLBACKEND", "agg")
    from matplotlib import pyplot
    from matplotlib.figure import Figure

    pyplot.switch_backend("agg")
    monkeypatch.setattr(pyplot, "show", lambda: None)
    started = time.perf_counter()
    names = runpy.run_path(str(path))
    assert time.perf_counter() - started < SECONDS
    drawn = [value for value in names.values() if isinstance(value, Figure)]
    pyplot.close("all")
    assert drawn
