"""The command line, run in this process."""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import polars as pl
from typer.testing import CliRunner

from rareclass.cli.command import app

# For tests of what every training does: the quickest member, and fewest folds.
QUICK = ("--members", "logistic regression", "--folds", "2")
# Code for a process of its own that runs several commands, given as JSON, and has their `codes`.
RUN_EACH = """
import json, sys
from rareclass.cli.main import main
codes = []
for sys.argv[1:] in json.loads(sys.argv[1]):
    try:
        main()
    except SystemExit as end:
        codes.append(end.code or 0)
"""


def invoke(*words):
    return CliRunner().invoke(app, [str(word) for word in words])


def printed(*words):
    done = invoke(*words)
    assert done.exit_code == 0, done.output
    return done.stdout


def run(*words, code=0):
    """Return what a command prints, on one line: of standard error where it fails."""
    done = invoke(*words)
    assert done.exit_code == code, done.output
    return " ".join((done.stdout if code == 0 else done.stderr).split())


def json_of(*words):
    return json.loads(printed(*words, "--json", "-"), parse_float=fraction)


def run_with_json(*words):
    with TemporaryDirectory() as folder:
        file = Path(folder) / "numbers.json"
        printed = run(*words, "--json", file)
        return printed, json.loads(file.read_text(), parse_float=fraction)


def fraction(text):
    assert not text.endswith(".0"), f"{text} is a whole number"
    return float(text)


def complaint(*words):
    return message(invoke(*words))


def message(done):
    """Return what a refused command said, on one line; check that it was refused cleanly."""
    assert done.exit_code == 2, done.output
    assert "Traceback" not in done.output
    assert done.stderr.startswith("Error: ") or "Usage" in done.stderr
    return " ".join(done.stderr.split())


def says(text, *facts):
    for fact in facts:
        assert fact in text, f"{fact} is not in: {text}"


class Fitted(NamedTuple):
    """A model file, the tables that it was fitted on and is tried on, and what the fit printed."""

    folder: Path
    train: Path
    new: Path
    model: Path
    printed: str


def fit_in(folder, train, new, *words):
    """Write two tables into a folder and fit a model on the first of them."""
    paths = [folder / name for name in ("train.csv", "new.csv", "model.rareclass")]
    train.write_csv(paths[0])
    new.write_csv(paths[1])
    return Fitted(folder, *paths, printed("fit", paths[0], *words, "--out", paths[2]))


def in_new_process(code, *words, **more):
    """Run Python code in a process of its own; `more` as `subprocess.run` takes it."""
    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, **more)


def scores_of(model, rows, *words):
    with TemporaryDirectory() as folder:
        out = Path(folder) / "scores.parquet"
        run("score", model, rows, "--out", out, *words)
        return pl.read_parquet(out)
