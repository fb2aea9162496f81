"""MIBC on kernel features: `python -m benchmarks.mibc_features`.

The sets of RankRC's Table 3, standardised; 70 per cent of the rows to learn from, 30 to test, at
random. Every method chooses its parameters by five folds on the first part: MIBC its C and its
ridge, RankRC its lam, the linear SVM its C (its classes balanced). Features are a Nyström map of
the Gaussian kernel with RankRC's width: 300 random landmarks (scikit-learn's `Nystroem`), or those
of RankRC, all rare rows and 200 others (`RankRC.transform`).
"""

import argparse
import sys
import time
import warnings
from collections.abc import Callable
from functools import cache
from itertools import product
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import ConvergenceWarning
from sklearn.kernel_approximation import Nystroem
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

from benchmarks import record
from benchmarks.paper_tables.protocol import Standardiser, data_folder, gaussian_gamma
from benchmarks.paper_tables.real_sets import SETS, is_there, load
from benchmarks.paper_tables.study import print_table, run_all
from rareclass import RankRC, RankRCCV
from rareclass.metrics import roc_auc
from rareclass.moments import MIBCCV

RIDGES = (10.0, 1.0, 0.1, 0.01)
LANDMARKS = ("rare+majority", 200)


def _mibc() -> MIBCCV:
    return MIBCCV(ridges=RIDGES, cv=5, verbose=False)


def _nystroem(X: np.ndarray, seed: int) -> Nystroem:
    return Nystroem(gamma=gaussian_gamma(X), n_components=min(300, len(X) // 2), random_state=seed)


def _svm(seed: int) -> GridSearchCV:
    folds = StratifiedKFold(5, shuffle=True, random_state=seed)
    svm = LinearSVC(class_weight="balanced", dual=False)
    return GridSearchCV(svm, {"C": 10.0 ** np.arange(-4, 2)}, scoring="roc_auc", cv=folds)


METHODS: dict[str, Callable[[np.ndarray, int], BaseEstimator]] = {
    "MIBC": lambda X, seed: _mibc(),
    "Nystroem + MIBC": lambda X, seed: make_pipeline(_nystroem(X, seed), _mibc()),
    "RankRC features + MIBC": lambda X, seed: make_pipeline(
        RankRC(landmarks=LANDMARKS, lam=1.0, random_state=seed, verbose=False), _mibc()
    ),
    "Nystroem + linear SVM": lambda X, seed: make_pipeline(_nystroem(X, seed), _svm(seed)),
    "RankRC": lambda X, seed: RankRCCV(
        landmarks=LANDMARKS, cv=5, equal_within=0, random_state=seed, verbose=False
    ),
}


@cache
def _load_compiled() -> None:
    """Compiled code is loaded, not timed."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    for make in METHODS.values():
        make(X, 0).fit(X, np.arange(60) % 3 == 0)


def measure(task: tuple[str, int]) -> list[dict[str, Any]]:
    """Every method on one split of one set."""
    _load_compiled()
    name, seed = task
    folder = data_folder()
    assert folder is not None
    X, y = load(name, folder)
    tested = np.zeros(len(y), dtype=bool)
    rng = np.random.default_rng(seed)
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        tested[rows[: round(0.3 * len(rows))]] = True
    scale = Standardiser.of(X[~tested])
    train, test = scale(X[~tested]), scale(X[tested])
    cells = []
    for method, make in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # a ridge that was needed
            warnings.simplefilter("ignore", ConvergenceWarning)
            start = time.perf_counter()
            model = make(train, seed).fit(train, y[~tested])
            seconds = time.perf_counter() - start
        auc = float(roc_auc(y[tested], model.decision_function(test)))
        cells.append({"set": name, "split": seed, "method": method, "auc": auc, "s": seconds})
    return cells


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """A line for each set, means over the splits; the last over the sets, with the seconds."""
    sets = list(dict.fromkeys(cell["set"] for cell in cells))

    def mean(method: str, measure: str, name: str | None = None) -> float:
        found = [c[measure] for c in cells if c["method"] == method and name in (None, c["set"])]
        return float(np.mean(found))

    table = [[name] + [f"{100 * mean(m, 'auc', name):.1f}" for m in METHODS] for name in sets]
    table.append(["mean"] + [f"{100 * mean(m, 'auc'):.1f}" for m in METHODS])
    table.append(["seconds a fit"] + [f"{mean(m, 's'):.2f}" for m in METHODS])
    return table


def main(argv: list[str]) -> None:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mibc_features", description=__doc__)
    parser.add_argument("--sets", type=lambda text: text.split(","), default=list(SETS))
    parser.add_argument("--splits", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        sys.exit("Set RARECLASS_DATA to the folder of the data sets.")
    known = [name for name in options.sets if is_there(name, folder)]
    tasks = list(product(known, range(options.splits)))
    cells = [c for part in run_all("Features", measure, tasks, options.jobs) for c in part]
    print_table(["AUC in percent", *METHODS], lines(cells))
    record.write("mibc_features", {"splits": options.splits, "cells": cells}, options.json)


if __name__ == "__main__":
    main(sys.argv[1:])
