"""A majority of several moment pairs: `python -m benchmarks.mibc_pairs`.

MIBC's penalty w'Sigma w is the largest that the mean of (w.(x - mu))_+^2 can be for rows of which
mu and Sigma are known. With the share p_k, the mean mu_k and the covariance of each of K clusters
known, the largest is

    w'S w + sum_k p_k t_k^2,   t_k = max(0, w.(mu_k - mu)),

S being Sigma within the clusters: clusters beyond the mean, away from the rare rows, cost nothing.
One cluster is MIBC; as many clusters as rows are the one-sided form of `mibc_one_sided`. "free"
charges t_k = max(0, w.mu_k - b) and asks rare rows for w.x >= b + 1, b being found too: with as
many clusters as rows, a support vector machine with the squared hinge on the majority.

The dual has a multiplier a_i for each rare row, from 0 to C, and b_k >= 0 for each cluster:

    max  1'a - 1/2 |A'a - M'b|^2 - 1/2 sum_k b_k^2 / p_k

with A the rare rows and M the means in the metric of S, centred at mu; for "free", 1'b is added and
a column of 3 to both. Coordinate descent solves it. Clusters are k-means' of up to 2,000 majority
rows; their sums are one pass. Splits and the choice of C and ridge on the validation part are those
of `paper_tables mibc2 --full`, whose liblinear figures stand beside (docs/decisions/0016).
"""

import argparse
import json
import sys
from itertools import product
from typing import Any, NamedTuple

import numba
import numpy as np
from sklearn.cluster import KMeans

from benchmarks import record
from benchmarks.paired_test import Paired, paired
from benchmarks.paper_tables import mibc_sets
from benchmarks.paper_tables.mibc_figures import SPLIT
from benchmarks.paper_tables.mibc_methods import CS, SQUARED
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table, run_all
from rareclass.metrics import roc_auc

FORMS = {
    "1 pair": (1, False),
    "4 pairs": (4, False),
    "16 pairs": (16, False),
    "64 pairs": (64, False),
    "64, free": (64, True),
}
# Named before the first look: the choice is made on these, and the other sets confirm it.
CHOOSING = (
    "abalone19", "mammograph", "wine4", "oil", "solarm0", "coil", "scene", "euthyroid",
)  # fmt: skip
HEADER = ["AUC in percent", *FORMS, SQUARED, *(f"p, {form}" for form in FORMS)]
RIDGES = (10.0, 1.0, 0.1, 0.01, 0.001)
_SAMPLE, _PASSES, _TOL, _THRESHOLD = 2000, 200, 1e-4, 3.0


class Pairs(NamedTuple):
    """Shares and means of clusters, and the covariance within them."""

    share: np.ndarray
    means: np.ndarray
    within: np.ndarray


def pairs_of(X: np.ndarray, n_pairs: int, seed: int) -> Pairs:
    """The moments of k-means' clusters; no more of them than rows in the sample."""
    sample = X[np.random.default_rng(seed).permutation(len(X))[:_SAMPLE]]
    n_pairs = min(n_pairs, len(np.unique(sample, axis=0)))
    found = KMeans(n_pairs, n_init=1, max_iter=10, random_state=seed).fit(sample).predict(X)
    share = np.bincount(found, minlength=n_pairs) / len(X)
    used = np.flatnonzero(share)
    means = np.array([X[found == k].mean(axis=0) for k in used])
    between = (means - X.mean(axis=0)) * np.sqrt(share[used])[:, None]
    total = np.cov(X, rowvar=False, bias=True)
    return Pairs(share[used], means, total - between.T @ between)


@numba.njit
def descend(Z, linear, square, upper, alpha, passes, tol):  # type: ignore[no-untyped-def]
    """Maximise linear.alpha - |Z'alpha|^2 / 2 - sum square alpha^2 / 2 from alpha on; Z'alpha."""
    u = Z.T @ alpha
    for _ in range(passes):
        moved = 0.0
        for i in range(len(Z)):
            curvature = Z[i] @ Z[i] + square[i]
            rise = linear[i] - Z[i] @ u - square[i] * alpha[i]
            new = min(max(alpha[i] + rise / curvature, 0.0), upper[i])
            step = new - alpha[i]
            if step != 0.0:
                alpha[i] = new
                u += step * Z[i]
                moved = max(moved, abs(step) * np.sqrt(curvature))
        if moved <= tol * np.sqrt(u @ u):
            break
    return u


def hyperplanes(rare: np.ndarray, pairs: Pairs, mean: np.ndarray, ridge: float, free: bool) -> Any:
    """w for each C, increasing."""
    values, vectors = np.linalg.eigh(pairs.within + ridge * np.eye(len(mean)))
    white = vectors / np.sqrt(np.maximum(values, 1e-12))
    A, M = (rare - mean) @ white, (pairs.means - mean) @ white
    Z = np.ascontiguousarray(np.vstack([A, -M]))
    linear = np.repeat([1.0, float(free)], [len(A), len(M)])
    if free:
        Z = np.column_stack([Z, np.repeat([_THRESHOLD, -_THRESHOLD], [len(A), len(M)])])
    square = np.concatenate([np.zeros(len(A)), 1.0 / pairs.share])
    alpha = np.zeros(len(Z))
    for C in CS:
        upper = np.repeat([C, np.inf], [len(A), len(M)])
        u = descend(Z, linear, square, upper, alpha, _PASSES, _TOL)
        yield white @ u[: len(mean)]


def measure(task: tuple[str, int]) -> dict[str, Any]:
    """Test AUC of each form, all of them chosen on the validation part."""
    name, split = task
    folder = data_folder()
    assert folder is not None
    train, validation, test = mibc_sets.parts(name, folder, split)
    X, rare = train.X[train.y == 0], train.X[train.y == 1]
    unit = float(X.var(axis=0).mean())
    best = {}
    for form, (n_pairs, free) in FORMS.items():
        pairs, found = pairs_of(X, n_pairs, split), []
        for ridge in RIDGES:
            for w in hyperplanes(rare, pairs, X.mean(axis=0), ridge * unit, free):
                found.append([float(roc_auc(r.y, r.X @ w)) for r in (validation, test)])
        best[form] = max(found, key=lambda both: both[0])[1]
    return {"set": name, "split": split, **best}


def lines(cells: list[dict[str, Any]], liblinear: dict[tuple[str, int], float]) -> list[list[str]]:
    """A line for each set: mean AUCs, and p against liblinear; means over both halves."""
    names = list(dict.fromkeys(cell["set"] for cell in cells))
    groups = {name: [name] for name in names}
    groups["choosing sets"] = [name for name in names if name in CHOOSING]
    groups["confirming sets"] = [name for name in names if name not in CHOOSING]
    table = []
    for title, members in groups.items():
        mine = [c for c in cells if c["set"] in members]
        if not mine:
            continue
        peer = np.array([liblinear[c["set"], c["split"]] for c in mine])
        ours = {form: np.array([c[form] for c in mine]) for form in FORMS}
        sets = np.array([c["set"] for c in mine])
        tests = [_test(one - peer, sets) for one in ours.values()]
        ps = ["-" if each is None else each.p_cell for each in tests]
        means = [f"{100 * one.mean():.1f}" for one in (*ours.values(), peer)]
        table.append([title, *means, *ps])
    return table


def _test(differences: np.ndarray, sets: np.ndarray) -> Paired | None:
    """Test the splits of one set, or the means of several."""
    names = np.unique(sets)
    if len(names) == 1:
        return paired(differences, *SPLIT)
    return paired([float(differences[sets == name].mean()) for name in names])


def main(argv: list[str]) -> None:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mibc_pairs", description=__doc__)
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
    tasks = [task for task in product(names, range(options.splits)) if task in liblinear]
    cells = run_all("Pairs", measure, tasks, options.jobs)
    print_table(HEADER, lines(cells, liblinear))
    beside = [[*task, liblinear[task]] for task in tasks]
    body = {"splits": options.splits, "cells": cells, "liblinear": beside}
    record.write("mibc_pairs", body, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
