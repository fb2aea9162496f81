"""Packages to install for a use that lacks them, and defaults that options show."""

import importlib
import sys

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from typer.main import get_command

from faults import refused
from rareclass import RACHCV, RankRC, RareClassifier, rows, to_onnx
from rareclass.cli.command import app
from rareclass.cli.model_file import RuleOptions
from rareclass.compare import leaderboard
from rareclass.errors import ErrorKind
from rareclass.online import CBR
from rareclass.tables.databases import DatabaseAddress, driver_of

X = np.random.default_rng(0).normal(size=(40, 2))
Y = np.arange(40) % 5 == 0


@pytest.fixture
def without():
    before = {}
    forgotten = []

    def hide(package, forget=()):
        forgotten.extend(forget)
        ours = [name for name in sys.modules if name.startswith(forget or "-")]
        before.update({name: sys.modules.pop(name) for name in ours})
        parts = [name for name in sys.modules if name.startswith(f"{package}.")]
        for name in (package, *parts):
            before[name] = sys.modules.get(name)
            sys.modules[name] = None

    yield hide
    for name in [name for name in sys.modules if name.startswith(tuple(forgotten) or "-")]:
        del sys.modules[name]
    known = {name: module for name, module in before.items() if module is not None}
    for name in before:
        sys.modules.pop(name, None)
    sys.modules.update(known)
    # A package has its modules as attributes, those that were imported meanwhile.
    for name, module in known.items():
        package, _, own = name.rpartition(".")
        if name.startswith(tuple(forgotten) or "-") and package in sys.modules:
            setattr(sys.modules[package], own, module)


def dask_array():
    import dask.array

    return dask.array.from_array(X, chunks=(20, 2))


def dask_frame():
    import dask.dataframe
    import pandas as pd

    return dask.dataframe.from_pandas(pd.DataFrame(X, columns=["a", "b"]), npartitions=2)


def ours(module):
    return importlib.import_module(f"rareclass.{module}")


DASK = "rareclass[dask]"
# A use, the packages that it needs, modules of ours that import them, and what is to be installed.
USES = {
    "rows of Dask": (lambda: rows.from_dask(dask_array(), target=Y), "distributed", (), DASK),
    "a Dask frame": (lambda: RankRC().fit(dask_frame(), Y), "distributed", (), DASK),
    "a Dask array": (lambda: RankRC().fit(dask_array(), Y), "distributed", (), DASK),
    "rows of Dask without cloudpickle": (
        lambda: rows.from_dask, "cloudpickle", ("rows.dask", "rows.dask_rows"), DASK,
    ),
    "ONNX": (lambda: to_onnx(RankRC().fit(X, Y)), "onnx", ("model.onnx",), "rareclass[onnx]"),
    "ONNX of a pipeline": (
        lambda: to_onnx(make_pipeline(StandardScaler(), RankRC()).fit(X, Y)), "skl2onnx",
        ("model.onnx",), "rareclass[onnx]",
    ),
    "DuckDB": (
        lambda: driver_of(DatabaseAddress("duckdb:///rows.duckdb")), "duckdb", (), "rareclass[sql]",
    ),
    "SQLite": (
        lambda: driver_of(DatabaseAddress("sqlite:///rows.db")), "adbc_driver_sqlite", (),
        "rareclass[sql]",
    ),
    "a service": (lambda: ours("serving.service"), "fastapi", ("serving",), "rareclass[serve]"),
    "a service without a server": (
        lambda: ours("serving.service"), "uvicorn", ("serving",), "rareclass[serve]",
    ),
    "plots": (
        lambda: ours("report").RocDisplay.from_estimator(RankRC().fit(X, Y), X, Y), "matplotlib",
        ("report",), "rareclass[cli]",
    ),
    "a page": (lambda: ours("report.page").rendered(None), "jinja2", (), "rareclass[cli]"),
    "River": (
        lambda: ours("online.river_adapter").as_river(CBR()), "river", ("online.river",), "river",
    ),
    "comparing methods": (
        lambda: ours("compare.leaderboard"), "pandas", ("compare",), "rareclass[cli]",
    ),
    "a member": (
        lambda: RareClassifier(members=["catboost"], cv=2).fit(X, Y), "catboost", (), "catboost",
    ),
}  # fmt: skip


@pytest.mark.parametrize("use", USES)
def test_what_is_to_be_installed_is_said(use, without):
    call, package, modules, install = USES[use]
    if "Dask" in use:
        dask_array(), dask_frame()  # which import what is hidden then
    without(package, forget=tuple(f"rareclass.{module}" for module in modules))
    with refused(ErrorKind.MISSING_PACKAGE, says=package) as caught:
        call()
    assert isinstance(caught.value, ImportError)  # for code that asks for that
    assert install in caught.value.remedy


SHOWN = {
    ("fit", "effort"): lambda: RareClassifier().effort,
    ("fit", "time_budget"): lambda: str(RareClassifier().time_budget).lower(),
    ("fit", "objective"): lambda: RareClassifier().objective.replace("_", "-"),
    ("fit", "members"): lambda: RareClassifier().members,
    ("fit", "confidence"): lambda: f"{RuleOptions(min_recall=0.5).rule(None).rule.confidence:g}",
    ("threshold", "confidence"): lambda: (
        f"{RuleOptions(min_recall=0.5).rule(None).rule.confidence:g}"
    ),
    ("compare", "time_budget"): lambda: str(leaderboard.CompareSettings("y").seconds).lower(),
    ("hunt", "c2"): lambda: f"{c2_that_are_tried()[0]:g}",
}


def c2_that_are_tried():
    """The values of C2 that the balls of a hunt are tried with where none is given."""
    tried = (
        RACHCV(n_balls=1, cv=2)
        .fit(X, np.where(Y, "case", np.where(X[:, 0] > 0, "cleared", "")))
        .cv_results_["C2"]
    )
    return sorted(set(tried.tolist()))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize(("verb", "option"), SHOWN)
def test_the_default_that_is_shown_is_the_one_that_is_used(verb, option):
    found = {each.name: each for each in get_command(app).commands[verb].params}
    assert found[option].show_default == SHOWN[verb, option]()
