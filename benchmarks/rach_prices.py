"""The default price C2 of `RACH`: `python -m benchmarks.rach_prices`.

`RACH` with its defaults (and with a Gaussian kernel) on the 22 problems of `paper_tables rach`; C2
is a fixed number or a number over the unlabelled rows that Algorithm 1 keeps. F1 of the rare class
among the unlabelled rows, and rows returned for each rare row that there is. Every other problem
chooses, the others confirm, as docs/decisions/0020 says, which also has the default.
"""

import argparse
import json
import sys
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.special import gammaincinv
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.paper_tables import rach_sets
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.rach_choice import MAJORITY, RARE, UNLABELLED, f1
from benchmarks.paper_tables.rach_protocol import labelled
from benchmarks.paper_tables.study import print_table, run_all
from rareclass import RACH

SHARES = (5, 15, 25)
KERNELS = (None, "gaussian")
Cell = dict[str, Any]


class Price(NamedTuple):
    """A rule for C2: a number, or a number over the unlabelled rows kept."""

    number: float
    over_kept: bool = False

    def of(self, n_kept: int) -> float:
        """C2 for so many rows."""
        return self.number / max(n_kept, 1) if self.over_kept else self.number

    def __str__(self) -> str:
        return f"{self.number:g}/kept" if self.over_kept else f"{self.number:g}"


PRICES = (
    *map(Price, (1.0, 0.1, 0.01, 0.0)),
    *(Price(number, True) for number in (0.1, 0.3, 1.0, 3.0, 10.0)),
)


class Task(NamedTuple):
    """One problem with a share of labels."""

    problem: str
    share: int
    splits: int


def measure(task: Task) -> list[Cell]:
    """Every kernel and rule on one problem, a figure for each split."""
    X, y = rach_sets.load(task.problem, data_folder())
    cells: dict[tuple[str, str], Cell] = {}
    for split, kernel in product(range(task.splits), KERNELS):
        labels = labelled(X, y, task.share, split).y
        known = [int((labels == kind).sum()) for kind in (RARE, MAJORITY)]
        n_kept = int((labels[_fit(X, labels, kernel, 0.0).rows_] == UNLABELLED).sum())
        unknown = labels == UNLABELLED
        n_rare = max(int(y[unknown].sum()), 1)
        for price in PRICES:
            found = _fit(X, labels, kernel, price.of(n_kept)).transduction_[unknown] == RARE
            key = (kernel or "none", str(price))
            about = {"problem": task.problem, "share": task.share, "kernel": key[0], "C2": key[1]}
            about |= {"labels": known, "unlabelled": int(unknown.sum()), "rare": n_rare}
            cell = cells.setdefault(key, about | {"f1": [], "found_per_rare": []})
            cell["f1"].append(round(f1(y[unknown], found), 4))
            cell["found_per_rare"].append(round(found.sum() / n_rare, 3))
    return list(cells.values())


def _fit(X: np.ndarray, labels: np.ndarray, kernel: str | None, C2: float) -> RACH:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", UserWarning)
        return RACH(C2=C2, kernel=kernel, n_landmarks=100, n_jobs=1).fit(X, labels)


def halves() -> tuple[list[str], list[str]]:
    """The problems that choose and those that confirm."""
    problems = [problem for name in rach_sets.SETS for problem in rach_sets.problems(name)]
    return problems[::2], problems[1::2]


def beyond_the_share(cell: Cell) -> list[float]:
    """F1 of the balls with more than twice the rows that can be rare, as `BEYOND_SHARE` has it."""
    n_rare, n_majority = cell["labels"]
    share = n_rare / (n_rare + n_majority)
    most = share * cell["unlabelled"] * gammaincinv(n_rare + 1.0, 0.975) / n_rare
    found = np.array(cell["found_per_rare"]) * cell["rare"]
    return list(np.array(cell["f1"])[found > 2.0 * most])


def lines(cells: list[Cell]) -> list[list[str]]:
    """A line for each rule: mean F1 in percent and the median of rows returned for a rare row.

    The last column counts the balls beyond the share, with their mean F1.
    """
    table = []
    for price in map(str, PRICES):
        row = [price]
        for kernel, half in product(("none", "gaussian"), halves()):
            own = [c for c in cells if (c["C2"], c["kernel"]) == (price, kernel)]
            own = [c for c in own if c["problem"] in half]
            if own:
                mean = 100.0 * np.mean([c["f1"] for c in own])
                times = np.median([c["found_per_rare"] for c in own])
                row.append(f"{mean:.1f} ({times:.2f})")
        there = [f1 for c in cells if c["C2"] == price for f1 in beyond_the_share(c)]
        row.append(f"{len(there)} ({100.0 * np.mean(there):.1f})" if there else "0")
        table.append(row)
    return table


HEADER = [
    *("C2", "round, choosing", "round, confirming"),
    *("Gaussian, choosing", "Gaussian, confirming", "beyond the share"),
]


def main(argv: list[str]) -> None:
    """Measure what is missing, print the table, store every cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rach_prices", description=__doc__)
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    file = Path(options.json) if options.json else record.RESULTS / "rach_prices.json"
    cells: list[Cell] = json.loads(file.read_text())["cells"] if file.is_file() else []
    done = {(c["problem"], c["share"]) for c in cells if len(c["f1"]) >= options.splits}
    cells = [c for c in cells if (c["problem"], c["share"]) in done]
    problems = [
        p for s in rach_sets.SETS if rach_sets.is_there(s, folder) for p in rach_sets.problems(s)
    ]
    tasks = [Task(p, share, options.splits) for share in SHARES for p in problems]

    def keep(task: Task, found: list[Cell]) -> None:
        cells.extend(found)
        record.write("rach_prices", {"splits": options.splits, "cells": cells}, file)

    run_all("Prices", measure, [t for t in tasks if (t[0], t[1]) not in done], 1, keep=keep)
    print_table(HEADER, lines(cells))


if __name__ == "__main__":
    main(sys.argv[1:])
