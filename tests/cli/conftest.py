"""Small tables with one rare class, and models of them."""

import pytest

from command_line import QUICK, complaint, fit_in, run
from made_tables import purchases
from rareclass.compare import compare_methods, leaderboard
from rareclass.model.facts import facts_as_json
from rareclass.model.model_file import load_model


@pytest.fixture(autouse=True)
def without_baselines(monkeypatch):
    """Plain methods beside a model take longer than most tests; `test_methods` has them."""
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])


@pytest.fixture
def table():
    return purchases()


@pytest.fixture
def train_csv(tmp_path, table):
    path = tmp_path / "train.csv"
    table.write_csv(path)
    return path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory):
    words = ("--target", "fraud", "--method", "rankrc", "--lam", "2^-4")
    return fit_in(tmp_path_factory.mktemp("fitted"), purchases(), purchases(seed=1), *words)


@pytest.fixture
def out(tmp_path):
    return tmp_path / "m.rareclass"


@pytest.fixture
def without_drawing(monkeypatch):
    """Plots are tested with the displays; drawing takes most of a page's time."""
    empty = '<svg viewBox="0 0 1 1"></svg>'
    monkeypatch.setattr("rareclass.report.drawing._written", lambda figure: empty)


@pytest.fixture
def in_this_process(monkeypatch):
    """Let methods run here: a process of its own takes seconds to begin."""

    def here(*given, **asked):
        return compare_methods(*given, **{**asked, "isolate": False})

    monkeypatch.setattr(leaderboard, "compare_methods", here)


def learned(folder, table, *words):
    table.write_csv(folder / "t.csv")
    target = () if "-t" in words else ("-t", "fraud")
    out = ("-o", folder / "m.rareclass", "--overwrite")
    return run("fit", folder / "t.csv", *target, *QUICK, *words, *out)


def fit_in_vain(path, *more):
    before = set(path.parent.iterdir()) if path.parent.exists() else set()
    options = [] if "--out" in more else ["--out", path.parent / "m.rareclass"]
    target = [] if {"--target", "-t"} & {*map(str, more)} else ["--target", "fraud"]
    said = complaint("fit", path, *target, *options, *more)
    assert set(path.parent.iterdir()) == before
    return said


def facts_of(model):
    return facts_as_json(load_model(model).facts)
