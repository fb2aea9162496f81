"""Table 2: simulated data with three overlaps and four imbalances (section 6.1).

1,000 training rows, 1,000 validation rows on which lam or k is chosen, 10,000 test rows; 10
trials. The centres are one fixed draw, the same in all trials (`mixture_centres`).
A cell is reached where RankRC's mean test AUC is at least the paper's minus 0.5.
"""

import time
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks import record
from benchmarks.paired_test import Paired, paired_peers
from benchmarks.paper_tables import paper
from benchmarks.paper_tables.methods import choose_on_validation
from benchmarks.paper_tables.protocol import Standardiser, auc, mean_and_error
from benchmarks.paper_tables.study import JOBS, options, parameters, run_all
from benchmarks.simulated import bayes_score, rare_mixture

OVERLAPS = (0.9, 0.75, 0.6)
RARE_SHARES = (0.1, 0.2, 0.3, 0.4)
TRAIN, VALIDATION, TEST = 1000, 1000, 10_000
ALLOWED_GAP = 0.5
METHODS = [name for name in paper.simulated_auc(0.9, 0.1) if name != "Bayes"]


class Trial(NamedTuple):
    """One data set of one cell."""

    overlap: float
    rare_share: float
    number: int
    methods: tuple[str, ...]


class Drawn(NamedTuple):
    """Standardised rows of a trial; the Bayes scorer needs the test rows as drawn."""

    train: tuple[np.ndarray, np.ndarray]
    validation: tuple[np.ndarray, np.ndarray]
    test: tuple[np.ndarray, np.ndarray]
    raw_test: np.ndarray


def draw(overlap: float, rare_share: float, number: int) -> Drawn:
    """The rows of a trial: the same whichever methods are run."""
    key = (OVERLAPS.index(overlap), RARE_SHARES.index(rare_share), number)
    rng = np.random.default_rng(np.random.SeedSequence(key))
    (X, y), (X_val, y_val), (X_test, y_test) = (
        rare_mixture(n, rare_share, overlap, random_state=rng) for n in (TRAIN, VALIDATION, TEST)
    )
    scale = Standardiser.of(X)
    return Drawn((scale(X), y), (scale(X_val), y_val), (scale(X_test), y_test), X_test)


def run_trial(trial: Trial) -> dict[str, dict[str, float]]:
    """Method -> test AUC, chosen parameter and seconds."""
    data = draw(trial.overlap, trial.rare_share, trial.number)
    X_test, y_test = data.test
    bayes = bayes_score(data.raw_test, trial.overlap)
    outcome = {"Bayes": {"auc": float(auc(y_test, bayes)[0])}}
    for name in trial.methods:
        start = time.perf_counter()
        chosen = choose_on_validation(name, data.train, data.validation, seed=trial.number)
        seconds = time.perf_counter() - start
        outcome[name] = {
            "auc": float(auc(y_test, chosen.scores(X_test))[0]),
            "param": chosen.param,
            "size": chosen.size,
            "stopped": chosen.stopped,
            "seconds": seconds,
        }
    return outcome


def leads(cells: Sequence[dict[str, Any]]) -> dict[str, Paired]:
    """RankRC minus each method in points of AUC, the means of each cell being one pair."""
    return paired_peers({
        method: [c["methods"]["RankRC"]["mean"] - c["methods"][method]["mean"] for c in cells]
        for method in METHODS
        if method != "RankRC"
    })  # fmt: skip


def main(argv: Sequence[str], table: str) -> Path:
    """Run, write results/table2.json."""
    args = options(
        __doc__,
        METHODS,
        argv,
        known=METHODS,
        jobs=JOBS,
        trials=(10, "data sets per cell (default: 10)"),
    )
    cells = list(product(OVERLAPS, RARE_SHARES))
    tasks = [
        Trial(*cell, number, tuple(args.methods)) for cell in cells for number in range(args.trials)
    ]
    outcomes = run_all("Table 2", run_trial, tasks, args.jobs)
    rows = [
        _summary(cell, outcomes[k * args.trials : (k + 1) * args.trials])
        for k, cell in enumerate(cells)
    ]
    return record.write("table2", {"parameters": parameters(args), "cells": rows}, args.json)


def _summary(cell: tuple[float, float], trials: list[dict[str, Any]]) -> dict[str, Any]:
    printed = paper.simulated_auc(*cell)
    row: dict[str, Any] = {"overlap": cell[0], "rare_share": cell[1], "methods": {}}
    for name in trials[0]:
        values = {key: [trial[name][key] for trial in trials] for key in trials[0][name]}
        mean, error = mean_and_error(values["auc"])
        row["methods"][name] = {
            "mean": mean, "error": error, "paper": printed[name], **values
        }  # fmt: skip
    ours = row["methods"].get("RankRC")
    if ours is not None:
        row["reached"] = bool(ours["mean"] >= ours["paper"][0] - ALLOWED_GAP)
    return row
