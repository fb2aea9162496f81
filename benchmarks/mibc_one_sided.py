"""What a majority on both sides of its mean costs MIBC: `python -m benchmarks.mibc_one_sided`.

MIBC's penalty w'Sigma w is the mean of (w.(x - mean))^2 over the majority, on both sides. Rows
beyond the mean, away from the rare ones, do no harm, and yet they count. Here they do not: after a
first solution w_0 the sum is taken over the rows with w_0.(x - mean) > 0 alone, twice, which is one
more pass of the majority, and the problem is solved again. The splits and the choice of C and ridge
on the validation part are those of `paper_tables mibc2 --full`, whose liblinear figures stand
beside (docs/decisions/0016). The library has no such pass: every C would need one of its own.
"""

import argparse
import json
import sys
from itertools import product
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.paired_test import paired
from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_figures import SPLIT
from benchmarks.paper_tables.mibc_methods import CS, RIDGES, SQUARED
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table, run_all
from rareclass.metrics import roc_auc
from rareclass.moments.dual import solve_dual
from rareclass.moments.metric import DenseMetric

SIDES = ("two-sided", "one-sided", "either")
HEADER = ["AUC in percent", *SIDES, SQUARED, *(f"p, {side}" for side in SIDES)]


def hyperplane(second: np.ndarray, rare: np.ndarray, C: float) -> np.ndarray | None:
    """MIBC for a given matrix of second moments, rare rows being centred."""
    metric = DenseMetric.of(second)
    if metric is None:
        return None
    none = np.zeros(len(second))
    dual = solve_dual(metric.rare_rows(rare, none), np.full(len(rare), C))
    return metric.weights(dual, none).w


def measure(task: tuple[str, int]) -> dict[str, Any]:
    """Test AUC of each kind, all of them chosen on the validation part."""
    name, split = task
    folder = data_folder()
    assert folder is not None
    train, validation, test = mibc_sets.parts(name, folder, split)
    majority = train.X[train.y == 0]
    mean = majority.mean(axis=0)
    centred, rare = majority - mean, train.X[train.y == 1] - mean
    covariance = centred.T @ centred / len(centred)
    identity = np.mean(covariance.diagonal()) * np.eye(len(mean))
    found: dict[str, list[tuple[float, float]]] = {side: [] for side in SIDES}
    for ridge, C in product(RIDGES, CS):
        w = hyperplane(covariance + ridge * identity, rare, C)
        if w is None:
            continue
        near = centred[centred @ w > 0.0]
        half = 2.0 * near.T @ near / len(centred)
        once_more = hyperplane(half + ridge * identity, rare, C)
        for side, weights in (("two-sided", w), ("one-sided", once_more)):
            if weights is not None:
                pair = tuple(roc_auc(rows.y, rows.X @ weights) for rows in (validation, test))
                found[side].append(pair)
    found["either"] = found["two-sided"] + found["one-sided"]
    best = {side: max(pairs, key=lambda pair: pair[0])[1] for side, pairs in found.items()}
    return {"set": name, "split": split, **best}


def lines(cells: list[dict[str, Any]], liblinear: dict[tuple[str, int], float]) -> list[list[str]]:
    """A line for each set: mean AUCs in percent, and p of the difference from liblinear."""
    table = []
    for name in dict.fromkeys(cell["set"] for cell in cells):
        shared = [c for c in cells if c["set"] == name and (name, c["split"]) in liblinear]
        peer = np.array([liblinear[name, c["split"]] for c in shared])
        means, ps = [], []
        for side in SIDES:
            ours = np.array([c[side] for c in shared])
            means.append(f"{100 * ours.mean():.1f}")
            test = paired(ours - peer, *SPLIT)
            ps.append("-" if test is None else test.p_cell)
        table.append([name, *means, f"{100 * peer.mean():.1f}", *ps])
    return table


def main(argv: list[str]) -> None:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.mibc_one_sided", description=__doc__
    )
    parser.add_argument("--splits", type=int, default=20)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=None)
    parser.add_argument("--tables", default=record.RESULTS / "mibc_dense.json")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    with open(options.tables) as file:
        fits = json.load(file)["fits"]
    liblinear = {(f["problem"], f["split"]): f["auc"] for f in fits if f["method"] == SQUARED}
    names = options.sets or [n for n in mibc_sets.dense_names() if mibc_sets.is_there(n, folder)]
    tasks = list(product(names, range(options.splits)))
    cells = run_all("One side", measure, tasks, options.jobs)
    print_table(HEADER, lines(cells, liblinear))
    beside = [[*key, auc] for key, auc in liblinear.items() if key[0] in names]
    body = {"splits": options.splits, "cells": cells, "liblinear": beside}
    record.write("mibc_one_sided", body, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
