"""Small tables with one rare class, and the command line run in this process."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from rareclass.cli.app import app

Run = Callable[..., Result]
# For tests of what every training does: the quickest member, and fewest folds.
QUICK = ("--members", "logistic regression", "--folds", "2")


@pytest.fixture(autouse=True)
def without_baselines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plain methods beside a model take longer than most tests; `test_baselines` has them."""
    monkeypatch.setattr("rareclass.fit.training.baselines", lambda *rows: [])


@pytest.fixture(scope="session")
def rareclass() -> Run:
    """Run the command line with the given words."""
    runner = CliRunner()

    def run(*words: object) -> Result:
        return runner.invoke(app, [str(word) for word in words])

    return run


def purchases(n_rows: int = 240, seed: int = 0) -> pl.DataFrame:
    """Return rows in which about a tenth are fraud, told apart by amount and country."""
    generator = np.random.default_rng(seed)
    rare = np.arange(n_rows) % 10 == 3
    amount = generator.normal(50, 10, n_rows) + 25 * rare
    return pl.DataFrame(
        {
            "order": [f"o-{k * 7919 % 99991}" for k in range(n_rows)],
            "amount": amount.round(2),
            "items": generator.integers(1, 9, n_rows),
            "country": np.where(rare & (generator.random(n_rows) < 0.5), "XX", "DE"),
            "member": generator.random(n_rows) < 0.5,
            "fraud": np.where(rare, "yes", "no"),
        }
    )


@pytest.fixture
def table() -> pl.DataFrame:
    return purchases()


@pytest.fixture
def train_csv(tmp_path: Path, table: pl.DataFrame) -> Path:
    path = tmp_path / "train.csv"
    table.write_csv(path)
    return path


@pytest.fixture(scope="session")
def fitted(tmp_path_factory: pytest.TempPathFactory, rareclass: Run) -> Path:
    """Return a folder with train.csv, and model.rareclass made from it."""
    folder = tmp_path_factory.mktemp("fitted")
    purchases().write_csv(folder / "train.csv")
    purchases(seed=1).write_csv(folder / "new.csv")
    result = rareclass(
        "fit", folder / "train.csv", "--target", "fraud", "--method", "rankrc", "--lam", "2^-4",
        "--out", folder / "model.rareclass",
    )  # fmt: skip
    assert result.exit_code == 0, result.output
    return folder


@pytest.fixture
def without_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Plots are tested with the displays; drawing takes most of a page's time."""
    empty = '<svg viewBox="0 0 1 1"></svg>'
    monkeypatch.setattr("rareclass.report.drawing._written", lambda figure: empty)


def message(result: Result) -> str:
    """Return what a refused command said, on one line; check that it was refused cleanly."""
    assert result.exit_code == 2, result.output
    assert "Traceback" not in result.output
    assert result.stderr.startswith("Error: ") or "Usage" in result.stderr
    return " ".join(result.stderr.split())


def output_of(result: Result) -> str:
    """Return what a command printed, on one line; check that it succeeded."""
    assert result.exit_code == 0, result.output
    return " ".join(result.stdout.split())


def learned(rareclass: Run, folder: Path, table: pl.DataFrame, *words: object) -> str:
    """Fit the quickest member on a table, save it as m.rareclass, and return what is printed."""
    table.write_csv(folder / "t.csv")
    target = () if "-t" in words else ("-t", "fraud")
    out = ("-o", folder / "m.rareclass", "--overwrite")
    return output_of(rareclass("fit", folder / "t.csv", *target, *QUICK, *words, *out))


def fit_in_vain(rareclass: Run, path: Path, *more: object) -> str:
    """Return what a refused fit says; check that it leaves no file behind."""
    before = set(path.parent.iterdir()) if path.parent.exists() else set()
    options = [] if "--out" in more else ["--out", path.parent / "m.rareclass"]
    target = [] if {"--target", "-t"} & {*map(str, more)} else ["--target", "fraud"]
    said = message(rareclass("fit", path, *target, *options, *more))
    assert set(path.parent.iterdir()) == before
    return said
