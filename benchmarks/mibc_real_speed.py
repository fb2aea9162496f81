"""MIBC beside liblinear on the sets of its tables: `python -m benchmarks.mibc_real_speed`.

Tables 3 and 5 of Grave and El Ghaoui (2014): milliseconds of one fit, input checks and moments
included. C and cost ratio of each method are those that `paper_tables mibc2` and `mibc4` chose on
the validation part of the same split. liblinear is timed at MIBC's C, which is the harder
comparison, and at its own, which is the paper's. All ways take turns on one thread; of the repeats
the median counts, of the splits the mean. Times are of the processor, not of the clock: another
program on the machine does not count.
"""

import argparse
import json
import sys
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_methods import COST, SQUARED
from benchmarks.paper_tables.protocol import needed_folder
from rareclass.moments import MIBC

COVARIANCE = {"dense": "full", "text": "diagonal"}
OURS, SAME, OWN = "MIBC", "at MIBC's C", "at its own C"
WAYS = (OURS, *(f"{peer}, {at}" for peer in (COST, SQUARED) for at in (SAME, OWN)))
HEADER = [
    "ms", "rows", *WAYS, "speed-up at MIBC's C", "over hinge", "each at its own C", "over hinge "
]  # fmt: skip

Choices = dict[tuple[str, int, str], dict[str, Any]]


def choices(study: str, results: Path) -> Choices:
    """C and cost ratio that each method chose, by problem, split and method."""
    fits = json.loads((results / f"mibc_{study}.json").read_text())["fits"]
    return {(fit["problem"], fit["split"], fit["method"]): fit for fit in fits}


def models(study: str, chosen: Choices, problem: str, split: int) -> dict[str, Any]:
    """The estimator of every way."""
    own = {name: chosen[problem, split, name] for name in (OURS, COST, SQUARED)}
    price = {name: 10.0 ** fit["log10_C"] for name, fit in own.items()}
    found: dict[str, Any] = {
        OURS: MIBC(price[OURS], covariance=COVARIANCE[study], random_state=split, n_jobs=1)
    }
    for peer, loss in ((COST, "hinge"), (SQUARED, "squared_hinge")):
        for at, C in ((SAME, price[OURS]), (OWN, price[peer])):
            found[f"{peer}, {at}"] = LinearSVC(
                C=C, loss=loss, dual=loss == "hinge" or study == "text", random_state=split,
                class_weight={1: own[peer]["other"]},
            )  # fmt: skip
    return found


def measure(study: str, chosen: Choices, problem: str, split: int, repeats: int) -> dict[str, Any]:
    """Median milliseconds of every way on one split; the ways take turns."""
    train = mibc_sets.parts(problem, needed_folder(), split).train
    ways = models(study, chosen, problem, split)
    taken: dict[str, list[float]] = {name: [] for name in ways}
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # liblinear's 1,000 passes
        warnings.simplefilter("ignore", UserWarning)  # a ridge that was needed
        for _ in range(repeats + 1):  # the first loads compiled code
            for name, model in ways.items():
                start = time.thread_time()
                model.fit(train.X, train.y)
                taken[name].append(1000.0 * (time.thread_time() - start))
    ms = {name: round(float(np.median(times[1:])), 4) for name, times in taken.items()}
    return {
        "study": study, "problem": problem, "split": split, "rows": len(train.y),
        "features": train.X.shape[1], "ms": ms,
    }  # fmt: skip


def speed_ups(cells: list[dict[str, Any]]) -> list[float]:
    """Of one problem: at MIBC's C over the faster loss and over hinge; the same at own Cs."""
    ms = {name: float(np.mean([cell["ms"][name] for cell in cells])) for name in WAYS}
    found = []
    for at in (SAME, OWN):
        hinge, squared = ms[f"{COST}, {at}"], ms[f"{SQUARED}, {at}"]
        found += [min(hinge, squared) / ms[OURS], hinge / ms[OURS]]
    return found


def lines(cells: list[dict[str, Any]], study: str) -> list[list[str]]:
    """A line for each problem, and the medians of the speed-ups."""
    table, all_ratios = [], []
    mine = [cell for cell in cells if cell["study"] == study]
    for problem in dict.fromkeys(cell["problem"] for cell in mine):
        of = [cell for cell in mine if cell["problem"] == problem]
        ms = [float(np.mean([cell["ms"][name] for cell in of])) for name in WAYS]
        ratios = speed_ups(of)
        all_ratios.append(ratios)
        shape = f"{of[0]['rows']:,} x {of[0]['features']:,}"
        table.append([problem, shape, *(f"{x:.2f}" for x in ms), *(f"{r:.1f}" for r in ratios)])
    if table:
        medians = np.median(all_ratios, axis=0)
        blank = [""] * (1 + len(WAYS))
        table.append(["median", *blank, *(f"{r:.1f}" for r in medians)])
    return table


def same_speed_ups(cells: list[dict[str, Any]], study: str) -> list[float]:
    """Speed-up of each problem, over the faster loss at MIBC's C."""
    mine = [cell for cell in cells if cell["study"] == study]
    problems = dict.fromkeys(cell["problem"] for cell in mine)
    return [speed_ups([cell for cell in mine if cell["problem"] == name])[0] for name in problems]


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write results/mibc_real_speed.json after each problem."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mibc_real_speed", description=__doc__
    )
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--studies", type=lambda text: text.split(","), default=[*COVARIANCE])
    parser.add_argument("--choices", type=Path, default=record.RESULTS, help="folder of the fits")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    needed_folder()
    file = Path(options.json) if options.json else record.RESULTS / "mibc_real_speed.json"
    old = json.loads(file.read_text())["cells"] if file.is_file() else []
    cells = [cell for cell in old if cell["study"] not in options.studies]
    for study in options.studies:
        chosen = choices(study, options.choices)
        for problem in dict.fromkeys(key[0] for key in chosen):
            splits = [k for k in range(options.splits) if (problem, k, COST) in chosen]
            cells += [measure(study, chosen, problem, k, options.repeats) for k in splits]
            body = {"splits": options.splits, "repeats": options.repeats, "cells": cells}
            record.write("mibc_real_speed", body, file)
        print(table(HEADER, lines(cells, study)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
