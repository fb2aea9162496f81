"""The measurement behind `scale` and `peers`: one fit of one method on one data set."""

import time
import warnings
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import data_sets, process_memory
from benchmarks.cells import time_limit
from benchmarks.peers import METHODS, Fitted, Task

WARM_UP_MAJORITY = 2000
WARM_UP_RARE = 50


def measure(
    data: str,
    scratch: str,
    name: str,
    options: dict[str, Any],
    threads: int,
    limit: float,
    score: bool = True,
) -> dict[str, Any]:
    """Fit method `name` on a prepared data set and score its held-out rows.

    Seconds are of the fit alone: everything has been imported and a tiny fit has been made.
    ``peak_beyond_input`` is the most memory held during the fit above what was held before it,
    when the rows were loaded.
    """
    rows = data_sets.read(data, scratch)
    fit, task = METHODS[name][1], Task(threads=threads, options=options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a tiny fit may well not converge
        warm_up(fit, rows.X, rows.y, task)
    process_memory.reset_peak()
    before = process_memory.resident()
    with time_limit(limit), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        start = time.perf_counter()
        fitted = fit(rows.X, rows.y, task)
        seconds = time.perf_counter() - start
    outcome = {
        "seconds": seconds,
        "peak_beyond_input": process_memory.peak() - before,
        "input_bytes": rows.X.nbytes,
        "rows": len(rows.X),
        "features": rows.X.shape[1],
        "rare": int(rows.y.sum()),
        "details": fitted.details,
        "warnings": sorted({str(warning.message)[:200] for warning in caught}),
    }
    return outcome | (held_out(fitted, rows.X_test, rows.y_test) if score else {})


def warm_up(fit: Any, X: np.ndarray, y: np.ndarray, task: Task) -> None:
    """A fit on a few rows of both classes, so that what is compiled or loaded late is there."""
    few = np.concatenate(
        [np.flatnonzero(y == 0)[:WARM_UP_MAJORITY], np.flatnonzero(y == 1)[:WARM_UP_RARE]]
    )
    fit(X[few], y[few], replace(task, search_seconds=0.0)).scores(X[few[:100]])


def held_out(fitted: Fitted, X: np.ndarray, y: np.ndarray) -> dict[str, Any]:
    """AUC, average precision and speed of scoring on rows that were not fitted on."""
    X, y = np.array(X), np.array(y)  # from disk
    start = time.perf_counter()
    scores = fitted.scores(X)
    seconds = time.perf_counter() - start
    return {
        "score_seconds": seconds,
        "score_rows": len(X),
        "auc": float(roc_auc_score(y, scores)),
        "average_precision": float(average_precision_score(y, scores)),
    }
