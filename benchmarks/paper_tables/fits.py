"""Fits that are done, in one file a study, one fit a line: a run that was ended goes on from there.

Tables that show different figures of the same fits (AUC and accuracy, AUC and times) share a file,
so either command leaves the other nothing to do. Fits by another protocol stay in the file beside
the others.
"""

import argparse
import ast
import hashlib
import json
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import rareclass
from benchmarks import record
from benchmarks.paper_tables.study import run_all

Fit = dict[str, Any]
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


class Run(NamedTuple):
    """Something to be done that leaves a fit: the folder of its data, what tells it from others."""

    folder: Path | None
    about: Fit


class Fits:
    """The fits of one file.

    Parameters
    ----------
    name : str
        Of the benchmark.
    file : Path
        Written after every fit; need not be there.
    fields : sequence of str
        Those of ``run.about``, in the order in which the file is sorted by them.
    code : str
        `code_of` the package that the fits are made by.
    """

    def __init__(self, name: str, file: Path, fields: Sequence[str], code: str):
        self.name, self.file = name, file
        self._fields, self._code = fields, code
        self.of: dict[tuple[Any, ...], Fit] = {}
        self._read()

    def _read(self) -> None:
        """Read the file: another process may have added some."""
        if self.file.is_file():
            for fit in json.loads(self.file.read_text())["fits"]:
                self.of[self._key(fit)] = fit

    def missing(self, runs: Sequence[Run]) -> list[Any]:
        """Those of the runs that are still to be done."""
        return [run for run in runs if self._key(run.about) not in self.of]

    def found(self, runs: Sequence[Run]) -> list[Fit]:
        """The fits of these runs, as far as they are done."""
        keys = [self._key(run.about) for run in runs]
        return [self.of[key] for key in keys if key in self.of]

    def add(self, run: Run, figures: dict[str, Any]) -> None:
        """Keep a fit and write the file."""
        self._read()
        fit = run.about | figures | {"code": self._code}
        self.of[self._key(fit)] = fit
        head = json.dumps({"benchmark": self.name, **record.environment()}, indent=1)[:-2]
        lines = ",\n".join(
            "  " + json.dumps(self.of[key], default=record.plain) for key in sorted(self.of)
        )
        record.replace_file(self.file, f'{head},\n "fits": [\n{lines}\n ]\n}}\n'.encode())

    def finish(
        self,
        runs: Sequence[Run],
        perform: Callable[[Any], dict[str, Any]],
        args: argparse.Namespace,
        ours: str = "",
    ) -> Path | None:
        """Do the runs that are not done, or all with --again; None where that was interrupted.

        Fits whose method begins with `ours` are by the package whose code `code` tells.
        """
        to_do = runs if args.again else self.missing(runs)
        try:
            run_all(f"Fits of {self.name}", perform, to_do, args.jobs, keep=self.add)
        except KeyboardInterrupt:
            print(
                f"\nStopped. {self.file} holds what is done; the same command goes on from there."
            )
            return None
        mine = [fit for fit in self.found(runs) if fit["method"].startswith(ours)]
        if any(fit["code"] != self._code for fit in mine):
            print("Some fits are by code that has been changed since: --again does them anew.")
        return self.file

    def _key(self, fit: Fit) -> tuple[Any, ...]:
        return tuple(fit[name] for name in self._fields)


@cache
def code_of(package: str) -> str:
    """Hash of the files of a package of rareclass and of all that they import, as `bare` code."""
    source = Path(rareclass.__file__).parents[1]
    found, to_read = {}, sorted((source / "rareclass" / package).glob("*.py"))
    while to_read:
        path = to_read.pop()
        if path not in found:
            found[path] = bare(path.read_text())
            to_read += _imported(found[path], source)
    return hashlib.sha256("".join(found[path] for path in sorted(found)).encode()).hexdigest()[:12]


def bare(code: str) -> str:
    """Return code without comments, docstrings and layout."""
    tree = ast.parse(code)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:] or [ast.Pass()]
    return ast.unparse(tree)


def _imported(code: str, source: Path) -> list[Path]:
    """Files of rareclass that code imports from."""
    names = [
        name
        for node in ast.walk(ast.parse(code))
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == "rareclass"
        for name in (node.module, *(f"{node.module}.{each.name}" for each in node.names))
    ]
    paths = [source / str(name).replace(".", "/") for name in names]
    files = [file for p in paths for file in (p.with_suffix(".py"), p / "__init__.py")]
    return [file for file in files if file.is_file()]
