"""How much ridge texts want: `python -m benchmarks.mibc_ridges`.

The text problems of `paper_tables mibc4`, their training and test parts: test AUC of MIBC with
C = 1 for ridges from a thousandth to a hundred mean variances. The default of compressed rows, 1,
is judged by it (docs/decisions/0016).
"""

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_methods import N_FACTORS
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table, run_all
from rareclass.metrics import roc_auc
from rareclass.moments.covariance import make_covariance
from rareclass.moments.moments import moments_of
from rareclass.moments.solution import solve_path
from rareclass.rows import as_source

RIDGES = 10.0 ** np.arange(-3, 2.1, 0.5)
COVARIANCES = ("diagonal", "factor")


def measure(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Every covariance and ridge on one split of one problem."""
    problem_name, split = task
    folder = data_folder()
    assert folder is not None
    train, _, test = mibc_sets.parts(problem_name, folder, split)
    cells = []
    rare = np.flatnonzero(train.y == 1)
    source, majority = as_source(train.X), (train.y == 0).astype(float)
    for covariance in COVARIANCES:
        wanted = make_covariance(covariance, N_FACTORS, "auto").wanted(0)
        moments = moments_of(source, wanted, None, majority, n_jobs=1)
        for ridge in map(float, RIDGES):
            model = make_covariance(covariance, N_FACTORS, ridge).model(moments, True)
            problem = (model, moments.mean, train.X[rare], np.ones(len(rare)))
            (solved,) = solve_path(*problem, [1.0], 1e-6, 1000, 0)
            auc = float(roc_auc(test.y, test.X @ solved.coef))
            about = {"problem": problem_name, "split": split, "covariance": covariance}
            cells.append({**about, "ridge": ridge, "auc": auc})
    return cells


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """A line for each set and covariance, mean AUC in percent for each ridge."""
    table = []
    for name, covariance in product(mibc_sets.TEXTS, COVARIANCES):
        means = []
        for ridge in RIDGES:
            found = [
                cell["auc"]
                for cell in cells
                if cell["problem"].split()[0] == name
                and (cell["covariance"], cell["ridge"]) == (covariance, float(ridge))
            ]
            means.append(f"{100 * np.mean(found):.1f}" if found else "")
        table.append([f"{name}, {covariance}", *means])
    return table


def main(argv: list[str]) -> None:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mibc_ridges", description=__doc__)
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    known = [name for name in mibc_sets.TEXTS if mibc_sets.is_there(name, folder)]
    problems = [problem for name in known for problem in mibc_sets.problems(name, folder)]
    tasks = list(product(problems, range(options.splits)))
    cells = [c for part in run_all("Ridges", measure, tasks, options.jobs) for c in part]
    print_table(["AUC by ridge", *(f"{ridge:.3g}" for ridge in RIDGES)], lines(cells))
    record.write("mibc_ridges", {"splits": options.splits, "cells": cells}, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
