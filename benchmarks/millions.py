"""Tables of millions of rows: `python -m benchmarks.millions`.

3,000,000 made rows of 20 numbers and a category in memory, on which `RareClassifier` with its
default time is compared with LightGBM at two settings of a practitioner, and 10,000,000 rows of 20
numbers in a Parquet file, for `RareClassifier` alone; about 1 row in 500 is rare. Each fit has a
process of its own: seconds of reading and fit by the wall clock, the most memory, AUC and average
precision on 1,000,000 new rows.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import markdown, process_memory
from benchmarks.cells import Cell, run_cell
from benchmarks.ledger import Ledger, Run

FEATURES, NEW_ROWS, PART, THREADS = 20, 1_000_000, 500_000, 2
RARE_SHARE = 0.002
SETTINGS: dict[str, dict[str, Any]] = {
    "LightGBM, min_child_weight=5": {"min_child_weight": 5},
    "LightGBM, 400 slow trees": {"n_estimators": 400, "learning_rate": 0.05, "min_child_weight": 5},
}
IN_MEMORY, IN_A_FILE = "3,000,000 rows in memory", "10,000,000 rows in Parquet"
ROWS = {IN_MEMORY: 3_000_000, IN_A_FILE: 10_000_000}
METHODS = {IN_MEMORY: ("RareClassifier", *SETTINGS), IN_A_FILE: ("RareClassifier",)}
HEADER = ["table", "method", "AUC", "average precision", "seconds", "most memory, GB"]
_TO_TEST = 9  # number of the first part that no table learns from


def made(part: int, has_category: bool) -> pa.Table:
    """Half a million rows: steps, products, waves and tails; one in 500 is rare."""
    rng = np.random.default_rng(part)
    X = rng.standard_normal((PART, FEATURES)).astype(np.float32)
    log_odds = (
        0.9 * X[:, 0]
        + 0.7 * np.maximum(X[:, 1], 0.0) * X[:, 2]
        + 0.6 * X[:, 3]
        + 0.7 * np.sin(2.0 * X[:, 4])
        + 0.6 * (np.abs(X[:, 5]) > 1.5)
        + 0.6 * X[:, 6] * X[:, 8]
        + 0.4 * X[:, 7]
    )
    X[:, 3], X[:, 7] = np.exp(X[:, 3]), np.exp(1.5 * X[:, 7])
    columns: dict[str, Any] = {f"x{k}": X[:, k] for k in range(FEATURES)}
    if has_category:
        kind = rng.integers(0, 12, PART)
        log_odds += 0.8 * np.random.default_rng(0).standard_normal(12)[kind]
        columns["kind"] = np.array([f"kind {k}" for k in range(12)])[kind]
    # Rows above the limit of logistic noise: so many that the share is that of rare rows.
    noisy = log_odds + rng.logistic(scale=0.7, size=PART)
    columns["rare"] = noisy > np.quantile(noisy, 1.0 - RARE_SHARE)
    return pa.table(columns)


def write(path: Path, first: int, n_rows: int, has_category: bool) -> None:
    """Write parts of half a million rows to a Parquet file, one after the other."""
    with pq.ParquetWriter(path, made(first, has_category).schema) as file:
        for part in range(first, first + n_rows // PART):
            file.write_table(made(part, has_category))


def measured(method: str, file: str, new: str, limit: float, threads: int) -> dict[str, Any]:
    """Fit on the rows of a file and score those of another, in this process."""
    before = process_memory.resident()
    process_memory.reset_peak()
    start = time.perf_counter()
    model = _fitted(method, Path(file), threads)
    seconds = time.perf_counter() - start
    peak = process_memory.peak() - before
    from rareclass.metrics import average_precision, roc_auc

    rows = pl.read_parquet(new)
    y = rows["rare"].to_numpy()
    scores = model(rows.drop("rare"))
    return {
        "auc": float(roc_auc(y, scores)),
        "average_precision": float(average_precision(y, scores)),
        "seconds": seconds,
        "peak_bytes": peak,
    }


def _fitted(method: str, file: Path, threads: int) -> Any:
    """Learn from the rows of a file; return what scores new rows."""
    if method == "RareClassifier" and "category" not in file.stem:
        from rareclass import RareClassifier
        from rareclass.rows import from_parquet

        with from_parquet(file, target="rare") as rows:
            model = RareClassifier(n_jobs=threads, random_state=0, verbose=False)
            model.fit(rows, rows.y)
        names = rows.feature_names
        return lambda new: model.score_samples(new.select(names).to_numpy())
    table = pl.read_parquet(file)
    X, y = table.drop("rare"), table["rare"].to_numpy()
    if method == "RareClassifier":
        from rareclass import RareClassifier

        model = RareClassifier(n_jobs=threads, random_state=0, verbose=False).fit(X, y)
        return model.score_samples
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_jobs=threads, verbose=-1, **SETTINGS[method]).fit(_by_pandas(X), y)
    return lambda new: trees.predict(_by_pandas(new), raw_score=True)


def _by_pandas(X: pl.DataFrame) -> Any:
    """A pandas table with the words as categories, in the order of the alphabet."""
    words = [name for name, kind in X.schema.items() if kind == pl.String]
    levels = pl.Enum([f"kind {k}" for k in range(12)])
    return X.with_columns(pl.col(words).cast(levels)).to_pandas()


def lines(runs: Sequence[Run]) -> list[list[str]]:
    """A line a fit."""
    return [
        [
            run["table"],
            run["method"],
            f"{run['auc']:.4f}",
            f"{run['average_precision']:.4f}",
            f"{run['seconds']:.0f}",
            f"{run['peak_bytes'] / 1e9:.1f}",
        ]
        for run in runs
        if run["status"] == "ok"
    ]


def page(runs: Sequence[Run]) -> str:
    """The table of all fits."""
    return markdown.table(HEADER, lines(runs))


def main() -> int:
    """Measure what is not stored yet, print, write results/millions.json."""
    ledger = Ledger("millions", None, {"threads": THREADS, "new_rows": NEW_ROWS})
    with tempfile.TemporaryDirectory(dir="/var/tmp" if Path("/var/tmp").is_dir() else None) as name:
        for table, n_rows in ROWS.items():
            has_category = table == IN_MEMORY
            stem = "category" if has_category else "numbers"
            file, new = Path(name, f"{stem}.parquet"), Path(name, f"{stem} new.parquet")
            write(file, 100, n_rows, has_category)
            write(new, _TO_TEST, NEW_ROWS, has_category)
            for method in METHODS[table]:
                key = f"{table} / {method}"
                if ledger.has(key, 0):
                    continue
                given = {"method": method, "file": str(file), "new": str(new)}
                cell = Cell(key, "benchmarks.millions:measured", given, 200.0, 1200.0)
                run = ledger.add(
                    key, 0, {"table": table, "method": method}, run_cell(cell, THREADS)
                )
                print(key, run["status"], run.get("message", ""), file=sys.stderr, flush=True)
    print(page(ledger.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
