"""The commands on tiny sizes, and the figures and pages made of their results."""

import json

import pytest

from benchmarks import (
    goals,
    peer_table,
    run,
)
from benchmarks.data_sets import simulated_name
from benchmarks.pages import speed
from benchmarks.pages.page import Results
from benchmarks.pages.registry import PAGES, there


def command(tmp_path, *words):
    file = tmp_path / f"{words[0]}.json"
    own = ["--json", str(file), "--scratch", str(tmp_path / "scratch"), "--threads", "1"]
    assert run.main([*words, *own]) == 0
    return json.loads(file.read_text())


@pytest.mark.thorough
def test_scale_counts_time_memory_and_passes_and_is_not_repeated(tmp_path, capsys):
    words = ("scale", "--rows", "2000", "--series", "share", "--what", "fit",
             "--memory", "64MiB", "--repeats", "1")  # fmt: skip
    first = command(tmp_path, *words)
    assert [one["rare"] for one in first["runs"]] == [2]
    for one in first["runs"]:
        assert one["status"] == "ok"
        assert one["seconds"] > 0
        assert one["details"]["passes"] > 0
        assert 0 <= one["peak_beyond_input"] < 264 * 2**20
    assert command(tmp_path, *words)["runs"] == first["runs"]
    assert "Exponent p" in capsys.readouterr().out


@pytest.mark.thorough
def test_peers_beside_rankrc(tmp_path, capsys):
    words = ("peers", "--rows", "4000", "--data", "4000x5", "--methods", "rankrc", "lightgbm",
             "--repeats", "1")  # fmt: skip
    found = command(tmp_path, *words)["runs"]
    assert [one["method"] for one in found] == ["rankrc", "lightgbm"]
    assert all(0.0 <= one["auc"] <= 1.0 and one["score_rows"] == 4000 for one in found)
    assert "| LightGBM |" in capsys.readouterr().out


def test_list_runs_nothing(tmp_path, capsys):
    for name in run.BENCHMARKS:
        file = tmp_path / "none.json"
        assert run.main([name, "--list", "--json", str(file)]) == 0
        assert not file.exists()
        assert "minutes on 2 cores" in capsys.readouterr().out


def fit(name, seconds, **about):
    return {
        "key": f"{about.get('data')}{about.get('memory')}{about.get('rows')} / {name}",
        "method": name,
        "repeat": 0,
        "status": "ok",
        "seconds": seconds,
        "process_seconds": seconds,
        "threads": 2,
        "rows": 1_000_000,
        "features": 40,
        "rare": 1000,
        "peak_beyond_input": 300 * 2**20,
        "details": {"passes": 11, "in_memory": 1.0, "landmarks": 1000},
        "score_rows": 10**6,
        "score_seconds": 0.5,
        "auc": 0.9,
        "average_precision": 0.1,
        **about,
    }


def made_up_runs():
    wide = simulated_name(1_000_000, 40, 1000)
    growth = {n: simulated_name(n, 5, n // 100, 40_000) for n in (20_000, 50_000, 150_000)}
    peers = [fit("rankrc", 4.0, data=wide), fit("lightgbm", 8.0, data=wide)]
    for n, data in growth.items():
        peers.append(fit("rankrc", 1.0, data=data, planned_rows=n))
        done = fit("libsvm", (n / 10_000) ** 2, data=data, planned_rows=n)
        stopped = {k: done[k] for k in ("key", "repeat", "method", "data", "planned_rows")}
        peers.append(done if n < 150_000 else stopped | {"status": "stopped", "limit": 300.0})
    scale = [
        fit("rankrc", n / 1e5, rows=n, series="fixed", what="fit", memory="256MiB", budget=2**28)
        for n in (250_000, 1_000_000)
    ]
    from_file = {
        "key": "5M",
        "repeat": 0,
        "status": "ok",
        "memory": "512MiB",
        "seconds": 60.0,
        "passes": 12,
        "peak_bytes": 3 * 2**30,
        "file_bytes": 10**9,
        "auc": 0.9,
    }
    on_workers = [
        on_worker("fit", rows, place, rows / 1e5)
        for rows in (1_000_000, 4_000_000)
        for place in ("memory, 2 threads", "dask, 1 worker", "dask, 2 workers")
    ]
    return {
        "scale": scale,
        "peers": peers,
        "disk": [from_file],
        "distributed": on_workers,
        "serving": [served(what) for what in ("single rows", "batches")],
    }


def served(what):
    return {
        "key": f"{what} / rankrc",
        "repeat": 0,
        "status": "ok",
        "what": what,
        "model": "rankrc",
        "rate": 500.0,
        "asked": 30_000,
        "statuses": {"200": 29_998},
        "rows_a_second": 499.0,
        "milliseconds": {"p50": 2.0, "p99": 9.0},
        "cores_used": 0.7,
        "resident_before": 400 * 2**20,
        "resident_after": 401 * 2**20,
        "load_average": 1.0,
    }


def on_worker(what, rows, place, seconds):
    about = {"what": what, "rows": rows, "place": place, "load_seconds": 1.0}
    key = f"{what} {rows} / {place}"
    return {"key": key, "repeat": 0, "status": "ok", "seconds": seconds} | about


def test_goals_are_judged():
    found = {line[0]: line[1:] for line in goals.lines(made_up_runs())}
    assert found["fit / LightGBM's, 1M x 40"] == ["<= 0.4", "0.5", "**no**"]
    assert found["exponent of fit time in rows, 256 MiB"] == ["<= 1.05", "1", "yes"]
    assert found["LIBSVM / fit at 150,000 x 5, 1 % rare"] == [">= 50", "225", "yes"]
    assert found["peak MiB of the process, 5M x 50 from Parquet"][2] == "**no**"
    assert found["fit on 2 workers of Dask / in memory by 2 threads, 4M x 40"][1] == "1"
    assert "16 lams / LightGBM, 1M x 40" not in found


def test_stopped_libsvm_is_marked_as_extrapolated():
    text = peer_table.render(made_up_runs()["peers"])
    assert "| 150,000 | 225.00 (extrapolated) | 1.00 | 225 |" in text
    assert "| 50,000 | 25.00 | 1.00 | 25 |" in text
    assert "rows^2.00" in text
    assert "stopped at 300" in text


def test_each_result_makes_its_pages_and_goals_are_made_of_several(tmp_path):
    for name, runs in made_up_runs().items():
        body = {"date": "2026-01-01", "cores": 2, "packages": {"numpy": "2.0"}, "runs": runs}
        (tmp_path / f"{name}.json").write_text(json.dumps(body))
    results = Results(tmp_path)
    assert set(there(results)) == {*made_up_runs(), "goals", "libsvm"}
    goals_result = results.of(PAGES["goals"])
    assert set(goals_result) == set(speed.OF_GOALS) - {"boosters"}
    assert "| fit / LightGBM's, 1M x 40 | <= 0.4 | 0.5 | **no** |" in PAGES["goals"].body(
        goals_result
    )


@pytest.mark.thorough
def test_disk_fits_from_the_file(tmp_path):
    words = ("disk", "--rows", "3000", "--features", "4", "--rare", "30", "--memory", "64MiB")
    (one,) = command(tmp_path, *words)["runs"]
    assert one["passes"] > 0
    assert one["auc"] > 0.5
