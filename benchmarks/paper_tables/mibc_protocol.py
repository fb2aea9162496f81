"""Section 6.2 of Grave and El Ghaoui (2014): one run is one method on one split of one problem."""

import time
from functools import cache
from typing import Any

import numpy as np
from scipy import sparse

from benchmarks.paper_tables import mibc_methods, mibc_sets
from benchmarks.paper_tables.fits import Run
from benchmarks.paper_tables.mibc_sets import Parts
from benchmarks.paper_tables.protocol import Rows

METHODS = {"dense": mibc_methods.DENSE, "text": mibc_methods.TEXT}


FIELDS = ("problem", "split", "method")


def perform(run: Run) -> dict[str, Any]:
    """Test AUC, what was chosen, times, and the size of the training part."""
    problem, number, method = (run.about[field] for field in FIELDS)
    study = "text" if problem.partition(" ")[0] in mibc_sets.TEXTS else "dense"
    _load_compiled(study)
    assert run.folder is not None
    parts = mibc_sets.parts(problem, run.folder, number)
    start = time.perf_counter()
    found = METHODS[study][method](parts, number)
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
