"""Section 6.2 of Grave and El Ghaoui (2014): one run is one method on one split of one problem."""

import time
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from benchmarks.paper_tables import mibc_methods, mibc_sets
from benchmarks.paper_tables.mibc_sets import Parts, Rows

METHODS = {"dense": mibc_methods.DENSE, "text": mibc_methods.TEXT}


class Run(NamedTuple):
    """One method on one split of one problem of a study, "dense" or "text"."""

    folder: Path
    study: str
    problem: str
    method: str
    number: int

    def about(self) -> dict[str, Any]:
        """What tells it from the other runs."""
        return {"problem": self.problem, "split": self.number, "method": self.method}


FIELDS = ("problem", "split", "method")


def perform(run: Run) -> dict[str, Any]:
    """Test AUC, what was chosen, times, and the size of the training part."""
    _load_compiled(run.study)
    parts = mibc_sets.parts(run.problem, run.folder, run.number)
    start = time.perf_counter()
    found = METHODS[run.study][run.method](parts, run.number)
    y = parts.train.y
    return found | {
        "rows": len(y),
        "positives": [int(part.y.sum()) for part in parts],
        "features": parts.train.X.shape[1],
        "seconds": round(time.perf_counter() - start, 3),
    }


@cache
def _load_compiled(study: str) -> None:
    """Compiled code is loaded, not timed."""
    X = np.random.default_rng(0).normal(size=(60, 3))
    rows = Rows(sparse.csr_array(X) if study == "text" else X, (np.arange(60) % 3 == 0).astype(int))
    for method in METHODS[study].values():
        method(Parts(rows, rows, rows), 0)
