"""What a command imports before it works, and what it does without: packages, folders, HOME."""

import json
import os
import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

import polars as pl
import pytest

import rareclass as package
from command_line import RUN_EACH, in_new_process, run
from made_tables import purchases
from rareclass.cli.fit import MethodName

HEAVY = [
    "numpy", "scipy", "sklearn", "skrub", "skops", "pandas", "polars", "pyarrow", "matplotlib",
    "numba", "joblib", "narwhals",
]  # fmt: skip
VERBS = ("fit", "score", "evaluate", "monitor", "export", "hunt", "stream", "demo")
RUN = "from rareclass.cli.main import main; main()"
ABSENT = """
import sys
class Absent:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {packages!r}:
            raise ModuleNotFoundError("No module named " + repr(name), name=name)
sys.meta_path.insert(0, Absent())
"""
LEARN_AND_SCORE = """
import pandas
from rareclass import RareClassifier
rows = pandas.DataFrame({"x": [k % 13 for k in range(120)], "c": list("abbb") * 30})
rare = (rows["x"] > 9) & (rows["c"] == "a")
model = RareClassifier(members=["logistic regression", "extra trees"], cv=2).fit(rows, rare)
print(len(model.score_samples(rows.head(7))), model.outside(rows.assign(x=99)))
"""


def imported(*commands):
    """Return what a process imports that runs these commands."""
    code = RUN_EACH + "assert not any(codes), codes\nprint('imported:', *sys.modules)"
    done = in_new_process(code, json.dumps([[*map(str, words)] for words in commands]))
    assert done.returncode == 0, done.stderr
    return set(done.stdout.rsplit("imported:", 1)[1].split())


def test_help_and_version_import_nothing_heavy():
    found = imported(["--help"], ["--version"], *([verb, "--help"] for verb in VERBS))
    assert found & {*HEAVY} == set()


NOT_TO_FIT = [
    "dask", "matplotlib", "pytest", "skrub", "sklearn.datasets", "sklearn.feature_extraction",
    "sklearn.feature_selection", "sklearn.gaussian_process", "sklearn.mixture",
    "rareclass.compare", "rareclass.hyperball", "rareclass.online.cbr", "rareclass.hunt",
    "rareclass.report.model_report", "rareclass.report.page", "rareclass.stream",
]  # fmt: skip
# What scikit-learn's own base class imports is none of our business: pandas and scipy.stats.
NOT_BEFORE_FIT = [
    "dask", "numba", "pandas", "polars", "pyarrow.dataset", "rich", "scipy.stats", "skops", "skrub",
    *(f"sklearn.{room}" for room in ["cluster", "covariance", "datasets", "decomposition"]),
    *(f"sklearn.{room}" for room in ["feature_extraction", "linear_model", "manifold", "metrics"]),
    *(f"sklearn.{room}" for room in ["ensemble", "model_selection", "neighbors", "tree"]),
    *(f"rareclass.{room}" for room in ("kernels", "ranking", "moments", "hyperball")),
    "rareclass.ensemble.cross_fitting", "rareclass.ensemble.plan",
]  # fmt: skip


@pytest.mark.sampled(0)
def test_what_a_classifier_learns_by_is_not_imported_before_it_learns():
    code = (
        "import sys, sklearn.base; before = {*sys.modules}\n"
        "from rareclass import RareClassifier; RareClassifier()\n"
        "print(*sorted({*sys.modules} - before))"
    )
    done = in_new_process(code)
    assert done.returncode == 0, done.stderr
    found = set(done.stdout.split())
    assert found & {*NOT_BEFORE_FIT} == set()
    assert "rareclass.ensemble.rare_classifier" in found


def test_a_short_process_looks_for_cycles_seldom_and_at_its_end_not_at_all():
    code = (
        "import gc\nfrom rareclass.cli.main import main\n"
        "try: main()\nexcept SystemExit: pass\n"
        "print(gc.get_threshold()[0], gc.get_freeze_count() > 10_000)"
    )
    assert in_new_process(code, "--version").stdout.split()[-2:] == ["10000", "True"]


@pytest.mark.sampled(0)
def test_a_table_of_numbers_is_learned_without_what_it_does_not_need(tmp_path):
    purchases(120).select("amount", "items", "fraud").write_csv(tmp_path / "t.csv")
    words = ("--members", "logistic regression,extra trees,mibc", "--folds", "2")
    fit = ("fit", tmp_path / "t.csv", "-t", "fraud", "-o", tmp_path / "m.rareclass", *words)
    assert imported(fit) & {*NOT_TO_FIT} == set()


# Models of every method score rows of numbers, and of categories, without these.
NOT_TO_SCORE = [
    "sklearn", "skrub", "pandas", "joblib", "scipy.stats", "scipy.optimize", "matplotlib", "river",
    "lightgbm", "xgboost", "catboost", "dask", "distributed", "pytest", "hypothesis",
    "rareclass.ensemble.cross_fitting", "rareclass.moments.mibc", "rareclass.ranking.solve",
    "rareclass.hyperball", "rareclass.online.cbr",
    "rareclass.fit.training", "rareclass.hunt.hunting", "rareclass.stream.loop",
    "rareclass.encoding.streams", "rareclass.report",
]  # fmt: skip
MEMBERS = "extra trees,logistic regression,kernel on quantiles,kernel on quantiles,mibc"
QUICKLY = {
    "auto": ("--members", MEMBERS, "--folds", "2"),
    "rankrc": ("--lam", "0.1"),
    "mibc": ("--cost", "0.1"),
    "ordinal-rankrc": ("--lam", "0.1", "--levels", "no,yes"),
}
SCORES_BY = {
    "rareclass.ensemble.tree_sum", "rareclass.estimators.rankings", "rareclass.kernels.expansion",
}  # fmt: skip


def test_a_row_is_scored_without_scikit_learn_and_pandas(tmp_path):
    table = purchases().select("amount", "items", "country", "fraud")
    table.write_csv(tmp_path / "t.csv")
    table.head(1).write_csv(tmp_path / "one.csv")
    scored = []
    for method in get_args(MethodName):
        model, out = tmp_path / f"{method}.rareclass", tmp_path / f"{method}.csv"
        words = ("-t", "fraud", "--method", method, *QUICKLY[method])
        run("fit", tmp_path / "t.csv", *words, "-o", model)
        scored.append(("score", model, tmp_path / "one.csv", "--out", out))
    found = imported(*scored)
    assert found & {*NOT_TO_SCORE} == set()
    assert found >= SCORES_BY
    assert "rareclass.cli.fit" not in found


@pytest.mark.parametrize("package", ["typer", "rich"])
@pytest.mark.thorough
def test_a_package_of_the_extra_that_is_absent(fitted, tmp_path, package):
    done = in_new_process(
        ABSENT.format(packages=[package]) + RUN,
        "score", fitted.model, fitted.new, "--out", tmp_path / "s.csv",
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr == (
        f"Error: The command line needs {package}, which is not installed: "
        'pip install "rareclass[cli]"\n'
    )
    assert not any(tmp_path.iterdir())


@pytest.mark.thorough
def test_the_library_learns_and_scores_without_the_extra():
    extra = ("typer", "rich", "matplotlib", "jinja2", "fsspec")
    done = in_new_process(ABSENT.format(packages=extra) + LEARN_AND_SCORE)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "7 {'x': 120}\n"


@pytest.mark.parametrize("names", [NOT_TO_FIT, NOT_BEFORE_FIT, NOT_TO_SCORE])
def test_rooms_that_are_not_to_be_imported_are_there(names):
    ours = [name for name in names if name.startswith("rareclass.")]
    assert [name for name in ours if find_spec(name) is None] == []


def test_a_package_of_ours_that_is_absent_is_no_matter_of_extras():
    done = in_new_process(ABSENT.format(packages=["email"]) + RUN, "--help")
    assert done.returncode != 2 or "rareclass[cli]" not in done.stderr


@pytest.fixture
def read_only(tmp_path):
    """Return the environment of a container: nothing can be written beside the code or in HOME.

    Files stand where folders would be made, which stops the superuser as well.
    """
    code = tmp_path / "code"
    shutil.copytree(
        Path(package.__file__).parent, code / "rareclass",
        ignore=shutil.ignore_patterns("__pycache__"),
    )  # fmt: skip
    for folder in [code / "rareclass", *(code / "rareclass").rglob("*")]:
        if folder.is_dir():
            (folder / "__pycache__").touch()
    home = tmp_path / "home"
    home.touch()
    kept = {
        name: os.environ[name] for name in ("PATH", "LANG", "LD_LIBRARY_PATH") if name in os.environ
    }
    return kept | {"PYTHONPATH": str(code), "HOME": str(home), "TMPDIR": str(tmp_path)}


@pytest.mark.thorough
def test_nothing_can_be_cached_and_home_is_no_folder(read_only, tmp_path):
    table = purchases(120)
    table.write_csv(tmp_path / "t.csv")
    model, scores = tmp_path / "m.rareclass", tmp_path / "s.csv"
    where = in_new_process("import rareclass; print(rareclass.__file__)", env=read_only)
    assert where.stdout.startswith(str(tmp_path))
    told = []
    for words in (
        ["fit", tmp_path / "t.csv", "-t", "fraud", "--method", "rankrc", "-o", model],
        ["score", model, tmp_path / "t.csv", "-o", scores],
    ):
        done = in_new_process(RUN, *words, env=read_only)
        assert done.returncode == 0, done.stderr
        told.append(done.stderr.splitlines())
    assert len(told[0]) == 1
    assert all("NUMBA_CACHE_DIR" in line for lines in told for line in lines)
    assert pl.read_csv(scores).height == 120


def test_the_package_is_run_as_a_module():
    code = "import runpy; runpy.run_module('rareclass', run_name='__main__')"
    done = in_new_process(code, "--version")
    assert (done.returncode, done.stdout.split()) == (0, ["rareclass", package.__version__])
