"""Commands that pages, notes and docstrings name exist and start; `scale` and `peers` run."""

import ast
import json
import re
import runpy
import sys
from inspect import signature

import pytest

import registered
from benchmarks import growth, run
from benchmarks.figures import ROOT
from benchmarks.pages.registry import PAGES

# These take no options and begin at once.
WITHOUT_HELP = {"benchmarks.figures", "benchmarks.millions", "benchmarks.member_costs"}


def named_commands():
    texts = [page.whole_command for page in PAGES.values()]
    for folder, ending in (("docs", "md"), ("src", "py")):
        paths = (ROOT / folder).rglob(f"*.{ending}")
        texts += [path.read_text() for path in paths if "generated" not in path.parts]
    texts += [(ROOT / name).read_text() for name in ("README.md", "CONTRIBUTING.md")]
    found = re.findall(r"python -m (benchmarks(?:\.\w+)+)", "\n".join(texts))
    return sorted(set(found) - WITHOUT_HELP)


@pytest.mark.sampled(3)
@pytest.mark.filterwarnings("ignore:.*found in sys.modules:RuntimeWarning")
@pytest.mark.parametrize("module", named_commands())
def test_a_command_starts(module, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", [module, "--help"])
    try:
        with pytest.raises(SystemExit) as ended:
            runpy.run_module(module, run_name="__main__")
    except ModuleNotFoundError as error:
        if str(error.name).startswith(("benchmarks", "rareclass")):
            raise
        pytest.skip(f"{error.name} is not installed")
    assert ended.value.code == 0
    assert "usage:" in capsys.readouterr().out


ESTIMATORS = {type(one).__name__: signature(type(one)) for one in registered.ESTIMATORS}


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").rglob("*.py")), ids=lambda p: p.stem)
def test_calls_of_estimators_fit_their_signatures(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ESTIMATORS:
            named = {each.arg: each.value for each in node.keywords if each.arg}
            ESTIMATORS[node.func.id].bind_partial(*node.args, **named)


def test_list_runs_nothing(tmp_path, capsys):
    """Without the data folder some benchmarks have nothing to list, and say so."""
    for name in run.BENCHMARKS:
        file = tmp_path / "none.json"
        assert run.main([name, "--list", "--json", str(file)]) == 0
        assert not file.exists()
        printed = capsys.readouterr().out
        assert "0 runs done" in printed or "left out, not in the data folder" in printed


def command(tmp_path, *words):
    file = tmp_path / f"{words[0]}.json"
    own = ["--json", str(file), "--scratch", str(tmp_path / "scratch"), "--threads", "1"]
    assert run.main([*words, *own]) == 0
    return json.loads(file.read_text())["runs"]


@pytest.mark.thorough
def test_scale_counts_time_memory_and_passes_and_is_not_repeated(tmp_path, capsys):
    words = ("scale", "--rows", "2000", "--series", "share", "--what", "fit",
             "--memory", "64MiB", "--repeats", "1")  # fmt: skip
    (first,) = command(tmp_path, *words)
    assert (first["rare"], first["status"]) == (2, "ok")
    assert min(first["seconds"], first["details"]["passes"]) > 0
    assert 0 <= first["peak_beyond_input"] < 264 * 2**20
    assert command(tmp_path, *words) == [first]
    assert "Exponent p" in capsys.readouterr().out


@pytest.mark.thorough
def test_peers_beside_rankrc(tmp_path, capsys):
    words = ("peers", "--rows", "4000", "--data", "4000x5", "--methods", "rankrc", "lightgbm",
             "--repeats", "1")  # fmt: skip
    found = command(tmp_path, *words)
    assert [one["method"] for one in found] == ["rankrc", "lightgbm"]
    assert all(0.0 <= one["auc"] <= 1.0 and one["score_rows"] == 4000 for one in found)
    assert "| LightGBM |" in capsys.readouterr().out


def test_exponent_of_growth():
    sizes = [10, 20, 80]
    assert growth.exponent(sizes, [0.5 * size**1.7 for size in sizes]) == pytest.approx(1.7)
    assert growth.exponent([10], [1.0]) is growth.exponent([10, 10], [1.0, 2.0]) is None
