"""Commands that pages, notes and docstrings name exist and start; `scale` and `peers` run."""

import json
import re
import runpy
import sys

import pytest

from benchmarks import goals, growth, peer_table, run
from benchmarks.data_sets import simulated_name
from benchmarks.figures import ROOT
from benchmarks.pages.registry import PAGES

# These take no options and begin at once.
WITHOUT_HELP = {
    "benchmarks.figures",
    "benchmarks.millions",
    "benchmarks.member_costs",
}


def named_commands():
    """Modules that follow `python -m` in documentation and code."""
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


def test_list_runs_nothing(tmp_path, capsys):
    for name in run.BENCHMARKS:
        file = tmp_path / "none.json"
        assert run.main([name, "--list", "--json", str(file)]) == 0
        assert not file.exists()
        assert "0 runs done" in capsys.readouterr().out


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
    assert first["seconds"] > 0
    assert first["details"]["passes"] > 0
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


def fit(name, seconds, **about):
    common = {"method": name, "repeat": 0, "status": "ok", "seconds": seconds, "features": 40}
    common |= {"rows": 1_000_000, "rare": 1000, "auc": 0.9, "average_precision": 0.1}
    common |= {"key": f"{about.get('data')}{about.get('rows')} / {name}", "threads": 2}
    common |= {"process_seconds": seconds, "peak_beyond_input": 300 * 2**20, "score_rows": 10**6}
    details = {"passes": 11, "in_memory": 1.0, "landmarks": 1000}
    return {**common, "details": details, "score_seconds": 0.5, **about}


def made_up_peers():
    wide = simulated_name(1_000_000, 40, 1000)
    runs = [fit("rankrc", 4.0, data=wide), fit("lightgbm", 8.0, data=wide)]
    for n in (20_000, 50_000, 150_000):
        data = simulated_name(n, 5, n // 100, 40_000)
        runs.append(fit("rankrc", 1.0, data=data, planned_rows=n))
        done = fit("libsvm", (n / 10_000) ** 2, data=data, planned_rows=n)
        runs.append(done if n < 150_000 else done | {"status": "stopped", "limit": 300.0})
    return runs


def test_goals_are_judged():
    scale = [
        fit("rankrc", n / 1e5, rows=n, series="fixed", what="fit", memory="256MiB", budget=2**28)
        for n in (250_000, 1_000_000)
    ]
    lines = goals.lines({"scale": scale, "peers": made_up_peers()})
    found = {line[0]: line[1:] for line in lines}
    assert found["fit / LightGBM's, 1M x 40"] == ["<= 0.4", "0.5", "**no**"]
    assert found["exponent of fit time in rows, 256 MiB"] == ["<= 1.05", "1", "yes"]
    assert found["LIBSVM / fit at 150,000 x 5, 1 % rare"] == [">= 50", "225", "yes"]
    assert "16 lams / LightGBM, 1M x 40" not in found


def test_stopped_libsvm_is_marked_as_extrapolated():
    text = peer_table.render(made_up_peers())
    assert "| 150,000 | 225.00 (extrapolated) | 1.00 | 225 |" in text
    assert "rows^2.00" in text
    assert "stopped at 300" in text


def test_exponent_and_extrapolation():
    sizes = [10, 20, 80]
    seconds = [0.5 * size**1.7 for size in sizes]
    assert growth.exponent(sizes, seconds) == pytest.approx(1.7)
    assert growth.extrapolate(sizes, seconds, 1000) == pytest.approx(0.5 * 1000**1.7)
    assert growth.exponent([10], [1.0]) is None
    assert growth.exponent([10, 10], [1.0, 2.0]) is None
