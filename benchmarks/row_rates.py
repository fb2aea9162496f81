"""Rows a second that `RareClassifier` scores from Python: `python -m benchmarks.row_rates`.

A model of a made table of 20,000 rows, 1 percent rare, with 6, 20 or 40 columns of numbers scores
200,000 new rows, in one thread and in two, after a first call that compiles and prepares.
"""

import time
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import make_classification

from benchmarks import repeated
from rareclass import RareClassifier

COLUMNS, THREADS = (6, 20, 40), (1, 2)
N_TRAINING, N_ROWS, SECONDS = 20_000, 200_000, 20.0


def main() -> int:
    """Measure, print, write results/row_rates.json."""
    return repeated.command("row_rates", __doc__, (3, "scorings of each kind"), _rates)


def _rates(folder: Path, repeats: int) -> list[dict[str, Any]]:
    """Return the best rate of each table and number of threads."""
    rows = []
    for n_columns in COLUMNS:
        X, y = make_classification(
            N_TRAINING + N_ROWS,
            n_columns,
            n_informative=n_columns // 2,
            n_redundant=0,
            weights=[0.99],
            random_state=0,
        )
        model = RareClassifier(time_budget=SECONDS, random_state=0, verbose=False)
        model.fit(X[:N_TRAINING], y[:N_TRAINING])
        members = [f"{each.name} {each.weight:.2f}" for each in model.members_]
        new = np.ascontiguousarray(X[N_TRAINING:])
        model.score_samples(new[:5000])
        for n_threads in THREADS:
            model.n_jobs = n_threads
            best, processor = np.inf, np.inf
            for _ in range(repeats):
                start, used = time.perf_counter(), time.process_time()
                model.score_samples(new)
                best = min(best, time.perf_counter() - start)
                processor = min(processor, time.process_time() - used)
            row = {
                "columns": n_columns,
                "threads": n_threads,
                "rows_per_second": N_ROWS / best,
                "processor_us_per_row": 1e6 * processor / N_ROWS,
                "members": members,
            }
            print(row)
            rows.append(row)
    return rows


if __name__ == "__main__":
    raise SystemExit(main())
