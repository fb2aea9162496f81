"""Tests on folds by group and by time: `python -m benchmarks.decisions.groups_and_days`.

Two learners of linear discriminants share two columns and have two of their own, which groups, or
days, shift: equally good, so that a test at 5 % tells them apart by chance alone. Rare rows are
spread over groups, or come in bursts. Side by side: intervals of rows and of groups, of the models
alone and stretched for what other training rows would have changed, as `compare_methods` has it.
"""

import argparse
import json
from itertools import product
from typing import Any

import numpy as np

from benchmarks.decisions.folds import discriminant
from rareclass.compare import compare_scores
from rareclass.folds import RareGroupKFold, RareTimeSplit

N_RARE, OTHERS, N_NOISE, N_FOLDS = 100, 30, 10, 5
MEASURES = ("roc_auc", "average_precision")
CELLS = list(product(("group", "time"), (False, True), (150, 30), (0.0, 1.0)))


def sample(
    by: str, in_bursts: bool, n_groups: int, shift: float, rng: np.random.Generator
) -> dict[str, Any]:
    """Out-of-fold scores of both learners, with fold and group of each row."""
    n = N_RARE * (1 + OTHERS)
    group = rng.integers(0, n_groups, n)
    y = rng.permutation(np.arange(n) < N_RARE)
    if in_bursts:
        group[y] = rng.choice(rng.choice(n_groups, N_RARE // 4, replace=False), N_RARE)
    shared = rng.normal(size=(n, 2))
    columns = []
    for _ in range(2):
        X = np.hstack([shared, rng.normal(size=(n, 2 + N_NOISE))])
        X[:, 2:4] += shift * rng.normal(size=(n_groups, 2))[group]
        X[y, :4] += np.sqrt(0.5)
        columns.append(X)
    splitter: Any = RareGroupKFold(N_FOLDS, random_state=0, pos_label=True)
    if by == "time":
        splitter = RareTimeSplit(N_FOLDS, pos_label=True)
    folds = list(splitter.split(y, y, group))
    tested = np.concatenate([test for _, test in folds])
    return {
        "y": y[tested],
        "scores": [
            np.concatenate([X[test] @ discriminant(X[train], y[train]) for train, test in folds])
            for X in columns
        ],
        "fold": np.repeat(np.arange(len(folds)), [len(test) for _, test in folds]),
        "group": group[tested],
        "n_train": float(np.mean([len(train) for train, _ in folds])),
    }


def measure(draws: int = 150, seed: int = 0) -> list[dict[str, Any]]:
    """How often each test tells equally good learners apart, by cell and measure."""
    found = []
    for cell in CELLS:
        rng = np.random.default_rng([seed, CELLS.index(cell)])
        apart: dict[str, int] = {}
        for _ in range(draws):
            drawn = sample(*cell, rng)
            a, b = drawn["scores"]
            for group, stretched in product((True, False), (True, False)):
                told = compare_scores(
                    drawn["y"],
                    {"a": a, "b": b},
                    MEASURES,
                    folds=drawn["fold"],
                    groups=drawn["group"] if group else None,
                    n_train=drawn["n_train"] if stretched else None,
                    n_replicates=200,
                )
                for each in told.measures:
                    name = f"{each.measure}, {'groups' if group else 'rows'}"
                    name += "" if stretched else ", models alone"
                    beside = each.standings[1].beside_the_best
                    assert beside is not None
                    apart[name] = apart.get(name, 0) + beside.significant
        shares = {name: count / draws for name, count in apart.items()}
        found.append(dict(zip(("by", "bursts", "groups", "shift"), cell, strict=True)) | shares)
    return found


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=150)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for row in measure(given.draws, given.seed):
        print(json.dumps(row))
