"""Section VI of He, Tong and Carbonell (2010): one run is one method on one problem and share.

A share of 5 to 25 percent of the rows of each class, at least one, is labelled at random, anew for
each split; the labels of a greater share hold those of a smaller one. Everything else is unlabelled
and is what is guessed: the figure is the F1 of the rare class on those rows.
"""

import time
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.paper_tables import rach_sets
from benchmarks.paper_tables.fits import Run
from benchmarks.paper_tables.rach_choice import MAJORITY, RARE, UNLABELLED, Task, f1
from benchmarks.paper_tables.rach_methods import METHODS

SHARES = (5, 10, 15, 20, 25)


FIELDS = ("problem", "share", "method", "splits")


def perform(run: Run) -> dict[str, Any]:
    """F1 of every split, what was chosen, the number of rows, the mean seconds."""
    problem, share, method, splits = (run.about[field] for field in FIELDS)
    X, y = rach_sets.load(problem, run.folder)
    found, chosen = [], []
    start = time.perf_counter()
    for split in range(splits):
        task = labelled(X, y, share, split)
        with threadpool_limits(1):
            guess, best = METHODS[method](task, split)
        found.append(round(f1(y[task.unknown], guess[task.unknown]), 6))
        chosen.append(best)
    seconds = (time.perf_counter() - start) / splits
    return {
        "f1": found,
        "chosen": chosen,
        "labels": [int((task.y == kind).sum()) for kind in (RARE, MAJORITY)],
        "rows": len(y),
        "rare": int(y.sum()),
        "seconds": round(seconds, 4),
    }


def labelled(X: np.ndarray, y: np.ndarray, share: int, split: int) -> Task:
    """The rows with the labels of one split; all others are unlabelled."""
    labels = np.full(len(y), UNLABELLED)
    for kind in (RARE, MAJORITY):
        rows = np.random.default_rng([split, kind]).permutation(np.flatnonzero(y == kind))
        known = rows[: max(1, round(share / 100.0 * len(rows)))]
        labels[known] = kind
    return Task(X, labels)
