"""Methods on the same folds: failures are lines, Ctrl-C leaves what is done."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import warnings

import numpy as np
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import StratifiedKFold
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier

from faults import refused
from rareclass import RankRC
from rareclass.compare import compare_methods, compare_scores, out_of_fold
from rareclass.compare.out_of_fold import fit_on, take_rows
from rareclass.errors import ErrorKind

QUICK = {"measures": ["roc_auc"], "progress": False}


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    y = np.arange(n) % 10 == 0
    return rng.normal(size=(n, 3)) + 1.5 * y[:, None], np.where(y, "bad", "fine")


class Wrong(BaseEstimator):
    def fit(self, X, y):
        raise RuntimeError("no\n good")


class Impatient(BaseEstimator):
    def fit(self, X, y):
        raise KeyboardInterrupt


def test_out_of_fold_scores_are_compared():
    X, y = rows()
    lda, bayes = LinearDiscriminantAnalysis(), GaussianNB()
    found = compare_methods(X, y, {"lda": lda, "bayes": bayes, "wrong": Wrong()}, **QUICK)
    order = np.argsort(found.rows, kind="stable")
    assert (found.rows[order] == np.arange(120)).all()
    for number in range(5):
        test = found.rows[found.fold == number]
        train = np.setdiff1d(np.arange(120), test)
        expected = -LinearDiscriminantAnalysis().fit(X[train], y[train]).decision_function(X[test])
        assert found.scores["lda"][found.fold == number] == pytest.approx(expected)
    again = compare_scores(
        y[found.rows] == "bad", found.scores, ["roc_auc"], folds=found.fold, n_train=96
    )
    assert found.comparison == again
    assert [run.status for run in found.runs] == ["ok", "ok", "failed"]
    assert found.says()[-1] == "wrong: failed, RuntimeError: no good."
    assert sum(not run.is_judged for run in found.runs) == 1
    assert json.loads(json.dumps(found.to_dict()))["methods"][2]["name"] == "wrong"


def test_a_test_of_methods_asks_for_more_than_one_of_their_models():
    X, y = rows()
    found = compare_methods(X, y, {"a": GaussianNB(), "b": KNeighborsClassifier()}, **QUICK)
    of_models = compare_scores(y[found.rows] == "bad", found.scores, ["roc_auc"], folds=found.fold)
    methods, models = (
        each.by("AUC").standings[1].beside_the_best for each in (found.comparison, of_models)
    )
    assert methods.difference == models.difference
    assert methods.low - methods.difference == pytest.approx(1.5 * (models.low - models.difference))
    assert methods.p_value > models.p_value


def test_groups_times_and_rows_tested_twice():
    X, y = rows()
    by_group = compare_methods(X, y, {"a": GaussianNB()}, 3, groups=np.arange(120) // 4, **QUICK)
    assert (by_group.folds, by_group.comparison.n_groups) == ("3 folds by group", 30)
    fold = np.empty(120, int)
    fold[by_group.rows] = by_group.fold
    assert (fold.reshape(30, 4) == fold.reshape(30, 4)[:, :1]).all()
    by_time = compare_methods(X, y, {"a": GaussianNB()}, 3, time=np.arange(120.0), **QUICK)
    assert by_time.says()[0].endswith("3 folds in the order of time")
    assert len(by_time.rows) < 120
    assert by_time.comparison.n_groups is None  # a row a day
    days = np.arange(120.0) // 4 + np.tile([0.0, 0.2, 0.3, 0.9], 30)
    by_day = compare_methods(X, y, {"a": GaussianNB()}, 3, time=days, **QUICK)
    assert by_day.comparison.n_groups == len(np.unique(np.floor(days[by_day.rows])))
    dates = np.datetime64("2026-01-01") + (days * 86400).astype("m8[s]")
    of_dates = compare_methods(X, y, {"a": GaussianNB()}, 3, time=dates, **QUICK)
    assert of_dates.comparison.n_groups == by_day.comparison.n_groups
    halves = StratifiedKFold(2).split(X, y)
    twice = compare_methods(X, y, {"a": GaussianNB()}, [*halves] * 2, **QUICK)
    assert twice.comparison.n_groups == 120


def test_weights_are_copies_for_methods_that_take_none():
    X, y = rows()
    weight = 1.0 + np.arange(120) % 3
    model = fit_on(KNeighborsClassifier(3), X, y == "bad", weight)
    twice = np.repeat(np.arange(120), weight.astype(int))
    expected = KNeighborsClassifier(3).fit(X[twice], y[twice] == "bad")
    assert (model.predict_proba(X) == expected.predict_proba(X)).all()
    with refused(ErrorKind.UNSUPPORTED, says="KNeighborsClassifier takes no sample_weight"):
        fit_on(KNeighborsClassifier(3), X, y, weight / 2)
    with refused(ErrorKind.UNSUPPORTED, says="600,000,000 repeated rows") as caught:
        fit_on(KNeighborsClassifier(3), X, y, np.full(120, 5e6))
    assert caught.value.remedy == "Leave it out."
    found = compare_methods(X, y, {"a": RankRC(lam=0.1)}, sample_weight=weight, **QUICK)
    assert found.comparison.n_rows == weight.sum()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, pl.DataFrame, list])
def test_rows_of_any_kind(kind):
    X = np.arange(12.0).reshape(6, 2)
    taken = take_rows(kind(X), np.array([4, 1]))
    if sparse.issparse(taken):
        taken = taken.toarray()
    assert (np.asarray(taken) == X[[4, 1]]).all()


def test_ctrl_c_leaves_what_is_done():
    X, y = rows()
    methods = {"a": GaussianNB(), "b": Impatient(), "c": GaussianNB()}
    found = compare_methods(X, y, methods, **QUICK)
    assert [run.status for run in found.runs] == ["ok", "interrupted", "interrupted"]
    assert found.comparison.by("AUC").best.name == "a"
    with pytest.raises(KeyboardInterrupt):
        compare_methods(X, y, {"b": Impatient()}, **QUICK)


def test_a_method_that_is_too_slow_is_stopped():
    X, y = rows()
    found = compare_methods(X, y, {"a": GaussianNB()}, time_budget=1e-9, **QUICK)
    assert (found.runs[0].status, found.runs[0].n_folds) == ("stopped", 1)
    assert found.comparison is None
    assert found.says()[0].startswith("a: stopped: it needs about ")


@pytest.mark.parametrize(
    ("limit", "seconds", "is_stopped"),
    [
        (None, [5.0], False),
        (10.0, [2.9], False),  # needs 14.5, which may turn out less
        (10.0, [3.1], True),
        (10.0, [1.0, 5.1], True),
        (10.0, [2.0, 2.0, 2.0, 4.5], True),
        (10.0, [9.0] * 5, False),  # it is done
    ],
)
def test_a_method_stops_when_its_folds_foretell_too_much(limit, seconds, is_stopped):
    assert bool(out_of_fold.why_stopped(limit, seconds, 5)) == is_stopped


def test_each_method_is_told_as_it_ends():
    X, y = rows()
    told = []
    methods = {"bayes": GaussianNB(), "wrong": Wrong()}
    found = compare_methods(
        X, y, methods, measures=["average_precision"], progress=False,
        report=lambda run, value: told.append((run.name, run.status, value)),
    )  # fmt: skip
    best = found.comparison.by("average precision").best
    assert told == [("bayes", "ok", pytest.approx(best.value)), ("wrong", "failed", None)]


class Slow(BaseEstimator):
    def fit(self, X, y):
        time.sleep(60)


class Crash(BaseEstimator):
    def fit(self, X, y):
        os._exit(3)


class Warns(GaussianNB):
    def fit(self, X, y):
        print("noise")
        warnings.warn("odd rows", stacklevel=1)
        return super().fit(X, y)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("method", "says"),
    [(Slow(), r"stopped after 0\.5 s\."), (Wrong(), r"failed, RuntimeError: no good\."),
     (Crash(), r"failed, .*its process ended.*\(3\)")],
)  # fmt: skip
def test_in_processes_of_their_own(capfd, method, says):
    X, y = rows()
    methods, limits = {"bayes": Warns(), "bad": method}, {"bad": 0.5 if says[0] == "s" else None}
    found = compare_methods(X, y, methods, isolate=True, time_budget=limits, **QUICK)
    assert [run.status for run in found.runs] == ["ok", says.split()[0].strip(",")]
    assert found.runs[0].warnings == ("odd rows",)
    assert re.match(f"bad: {says}", found.runs[1].why_not())
    here = compare_methods(X, y, {"bayes": GaussianNB()}, **QUICK)
    assert (found.scores["bayes"] == here.scores["bayes"]).all()
    assert "noise" not in capfd.readouterr().out
    with refused(ErrorKind.UNSUPPORTED, says="isolate=False"):
        out_of_fold.OwnProcesses(lambda: None)


KILLED = """
import os, signal, time
from sklearn.naive_bayes import GaussianNB
from rareclass.compare import compare_methods

class Killer(GaussianNB):
    def fit(self, X, y):
        open(os.path.join(os.environ["TMPDIR"], "pid"), "w").write(str(os.getpid()))
        os.kill(os.getppid(), signal.SIGNAL)
        time.sleep(600)

if __name__ == "__main__":
    X = [[k % 7, k % 5] for k in range(90)]
    compare_methods(X, [k % 9 == 3 for k in range(90)], {"k": Killer()}, isolate=True)
"""


@pytest.mark.sampled(1)
@pytest.mark.skipif(os.name == "nt", reason="Windows names no parent that is gone")
@pytest.mark.parametrize("name", ["SIGKILL", "SIGTERM"])
def test_processes_and_files_of_a_comparison_that_is_killed_end_with_it(tmp_path, name):
    held = tmp_path / "held"
    held.mkdir()
    script = tmp_path / "compare.py"
    script.write_text(KILLED.replace("SIGNAL", name))
    environment = {**os.environ, "TMPDIR": str(held)}
    ended = subprocess.run([sys.executable, script], env=environment, capture_output=True)
    assert ended.returncode == -getattr(signal, name), ended.stderr
    number = int((held / "pid").read_text())
    for _ in range(300):
        try:
            os.kill(number, 0)
        except ProcessLookupError:
            break
        time.sleep(0.1)
    else:
        pytest.fail("the process of the method goes on")
    assert [each.name for each in held.iterdir()] == ["pid"]


@pytest.mark.parametrize(
    ("change", "kind", "says"),
    [
        ({"methods": {}}, ErrorKind.SHAPE, "methods="),
        (
            {"cv": [(np.arange(60), np.arange(61, 70))]},
            ErrorKind.TOO_FEW_ROWS,
            "fold 1 has no rare",
        ),
        ({"y": np.arange(120) % 3}, ErrorKind.LABELS, "3 labels"),
        ({"groups": np.arange(120), "time": np.arange(120)}, ErrorKind.COMBINATION, "both given"),
        ({"cv": "5"}, None, "Expected `cv`"),
        ({"cv": 20}, None, "12 rare rows cannot be in the test part of each of 20 folds"),
        ({"time_budget": 0}, None, "time_budget=0"),
    ],
)
def test_comparisons_that_are_refused(change, kind, says):
    X, y = rows()
    asked = {"X": X, "y": y, "methods": {"a": LogisticRegression()}, **change}
    with pytest.raises(ValueError, match=says) if kind is None else refused(kind, says=says):
        compare_methods(**asked, **QUICK)
