"""What is tried: each target makes a hostile input from a number, and does something with it.

The same number makes the same input, as long as neither the changes nor the sound files change.
"""

import io
import tempfile
import warnings
from collections.abc import Callable
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import polars as pl

from fuzz import bases, changed_archives, changed_bytes, changed_tables
from rareclass.model import ScoreSettings
from rareclass.model.evaluate import evaluate_file
from rareclass.model.score_file import score_rows
from rareclass.opening import describe, open_model


@dataclass(frozen=True)
class Case:
    """One hostile input, and what is done with it."""

    what: str  # what was changed in which file
    files: dict[str, bytes]  # by name, to be written into an empty folder
    action: Callable[[Path], Any]  # on that folder


@dataclass(frozen=True)
class Target:
    """A way into the package for bytes that somebody else wrote."""

    name: str
    case: Callable[[Path, int], Case]  # from the folder of sound files and a number


class NotFiniteError(Exception):
    """Scores that are no numbers, and nothing was said."""


def _draw(target, number):
    return Random(f"{target} {number}")


def score_with(model, rows, number=0):
    content = open_model(model)
    out = model.parent / "scores.parquet"
    settings = ScoreSettings(explain=1 if number % 4 == 0 else None)
    score_rows(content, rows, out, settings)
    check_scores(out)
    if number % 3 == 0:
        describe(model)
    if rows.suffix != ".svmlight" and number % 2:
        evaluate_file(content, rows)


def check_scores(out):
    table = pl.read_parquet(out) if out.suffix == ".parquet" else pl.read_csv(out)
    for name in {"score", "probability", "percentile"} & {*table.columns}:
        if table[name].dtype.is_float() and not np.isfinite(table[name].to_numpy()).all():
            raise NotFiniteError(f"column {name!r} of the scores")


def model_case(kind):
    """A model file, changed within or byte by byte."""

    def case(folder, number):
        rng = _draw(f"model {kind}", number)
        made = bases.make_model(folder, kind)
        files = {}
        if made.is_dir():
            files = {
                f"model/{each.name}": each.read_bytes()
                for each in made.iterdir()
                if each.suffix in (".json", ".rareclass", ".npz")
            }
            names = [name for name in files if name.endswith((".rareclass", ".npz"))]
            changed_name = max(names)
        else:
            files = {made.name: made.read_bytes()}
            changed_name = made.name
        if rng.random() < 0.25:
            change = rng.choice(changed_bytes.CHANGES)
            what, data = change.__name__, change(files[changed_name], rng)
        else:
            what, data = changed_archives.changed(files[changed_name], rng)
        files[changed_name] = data
        for name in files:  # a stream takes the one before, where the newest is damaged
            if name.endswith(".npz") and name != changed_name:
                files[name] = b""
        rows = bases.rows_for(folder, kind)
        model = "model" if made.is_dir() else made.name
        return Case(f"{what} in {kind}", files, lambda here: score_with(here / model, rows, number))

    return case


def rows_case(suffix, verb):
    def case(folder, number):
        rng = _draw(f"rows {suffix} {verb}", number)
        what, data = changed_tables.changed(folder, suffix, rng)
        name = f"rows.{suffix}"
        act = changed_tables.VERBS[verb]
        return Case(f"{what} at {verb}", {name: data}, lambda here: act(folder, here / name))

    return case


def all_targets():
    from fuzz.command_lines import command_line_case

    found = [Target(f"model {kind}", model_case(kind)) for kind in bases.MODELS]
    for suffix in changed_tables.SUFFIXES:
        for verb in changed_tables.VERBS:
            if suffix != "svmlight" or verb in ("score", "fit"):
                found.append(Target(f"rows {suffix} {verb}", rows_case(suffix, verb)))
    found.append(Target("command line", command_line_case))
    return {target.name: target for target in found}


@contextmanager
def written(case):
    with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
        folder = Path(made)
        for name, data in case.files.items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_bytes(data)
        yield folder


def run_case(case):
    """Do it, quietly; warnings of the package are no fault of it."""
    out, err = (redirect(io.StringIO()) for redirect in (redirect_stdout, redirect_stderr))
    with written(case) as folder, warnings.catch_warnings(action="ignore"), out, err:
        case.action(folder)
