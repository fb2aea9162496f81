"""Tables of millions of rows: `python -m benchmarks.millions`.

3,000,000 made rows of 20 numbers and a category in memory, on which `RareClassifier` with its
defaults is compared with LightGBM at two settings of a practitioner, and 10,000,000 rows of 20
and of 40 numbers in a Parquet file, for `RareClassifier` and, of 40, one lam of `RankRC` with 1,000
rare rows as landmarks; about 1 row in 500 is rare. Each fit has a process of its own: seconds of
reading and fit by the wall clock, the most memory, AUC and average precision on 1,000,000 new rows.
`READING` decodes the file once and keeps nothing.
"""

import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks import markdown, process_memory
from benchmarks.cells import Cell, run_cell
from benchmarks.ledger import Ledger, Run

NEW_ROWS, PART, THREADS = 1_000_000, 500_000, 2
RARE_SHARE = 0.002
SETTINGS: dict[str, dict[str, Any]] = {
    "LightGBM, min_child_weight=5": {"min_child_weight": 5},
    "LightGBM, 400 slow trees": {"n_estimators": 400, "learning_rate": 0.05, "min_child_weight": 5},
}
CLASSIFIER, MACHINE, READING = "RareClassifier", "RankRC, one lam", "reading alone"


class Table(NamedTuple):
    """A made table, and the methods that learn it."""

    name: str
    rows: int
    features: int
    in_memory: bool  # and with a category
    methods: tuple[str, ...]


IN_MEMORY = Table("3,000,000 rows in memory", 3_000_000, 20, True, (CLASSIFIER, *SETTINGS))
TABLES = (
    IN_MEMORY,
    Table("10,000,000 rows in Parquet", 10_000_000, 20, False, (CLASSIFIER,)),
    Table(
        "10,000,000 rows of 40 numbers in Parquet",
        10_000_000,
        40,
        False,
        (READING, MACHINE, CLASSIFIER),
    ),
)
HEADER = ["table", "method", "AUC", "average precision", "seconds", "most memory, GB"]
_TO_TEST = 9  # number of the first part that no table learns from


def made(part: int, n_features: int, has_category: bool) -> pa.Table:
    """Half a million rows: steps, products, waves and tails; one in 500 is rare."""
    rng = np.random.default_rng(part)
    X = rng.standard_normal((PART, n_features)).astype(np.float32)
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
    columns: dict[str, Any] = {f"x{k}": X[:, k] for k in range(n_features)}
    if has_category:
        kind = rng.integers(0, 12, PART)
        log_odds += 0.8 * np.random.default_rng(0).standard_normal(12)[kind]
        columns["kind"] = np.array([f"kind {k}" for k in range(12)])[kind]
    # Rows above the limit of logistic noise: so many that the share is that of rare rows.
    noisy = log_odds + rng.logistic(scale=0.7, size=PART)
    columns["rare"] = noisy > np.quantile(noisy, 1.0 - RARE_SHARE)
    return pa.table(columns)


def write(path: Path, first: int, n_rows: int, table: Table) -> None:
    """Write parts of half a million rows to a Parquet file, one after the other."""
    kind = table.features, table.in_memory
    with pq.ParquetWriter(path, made(first, *kind).schema) as file:
        for part in range(first, first + n_rows // PART):
            file.write_table(made(part, *kind))


def measured(method: str, file: str, new: str, limit: float, threads: int) -> dict[str, Any]:
    """Fit on the rows of a file and score those of another, in this process."""
    before = process_memory.resident()
    process_memory.reset_peak()
    start = time.perf_counter()
    model = _fitted(method, Path(file), threads)
    seconds = time.perf_counter() - start
    peak = process_memory.peak() - before
    spent = {"seconds": seconds, "peak_bytes": peak}
    if model is None:
        return spent
    from rareclass.metrics import average_precision, roc_auc

    rows = pl.read_parquet(new)
    y = rows["rare"].to_numpy()
    scores = model(rows.drop("rare"))
    accuracy = {"auc": roc_auc(y, scores), "average_precision": average_precision(y, scores)}
    return {name: float(value) for name, value in accuracy.items()} | spent


def _fitted(method: str, file: Path, threads: int) -> Any:
    """Learn from the rows of a file; return what scores new rows, None where nothing does."""
    if method == READING:
        for batch in pq.ParquetFile(file).iter_batches(1 << 16):
            del batch
        return None
    if "memory" not in file.stem:
        return _fitted_to_file(method, file, threads)
    table = pl.read_parquet(file)
    X, y = table.drop("rare"), table["rare"].to_numpy()
    if method == CLASSIFIER:
        from rareclass import RareClassifier

        model = RareClassifier(n_jobs=threads, random_state=0, verbose=False).fit(X, y)
        return model.score_samples
    from lightgbm import LGBMClassifier

    trees = LGBMClassifier(n_jobs=threads, verbose=-1, **SETTINGS[method]).fit(_by_pandas(X), y)
    return lambda new: trees.predict(_by_pandas(new), raw_score=True)


def _fitted_to_file(method: str, file: Path, threads: int) -> Any:
    """Learn from rows that stay in their file."""
    from rareclass import RankRC, RareClassifier
    from rareclass.rows import from_table

    with from_table(file, target="rare") as rows:
        settings = {"n_jobs": threads, "random_state": 0, "verbose": False}
        model: Any = RareClassifier(**settings)
        if method == MACHINE:
            model = RankRC(landmarks=("rare", 1000), **settings)
        model.fit(rows, rows.y)
    names = rows.feature_names
    return lambda new: model.score_samples(new.select(names))


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
            *(f"{run[name]:.4f}" if name in run else "" for name in ("auc", "average_precision")),
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
        for table in TABLES:
            stem = "memory" if table.in_memory else str(table.features)
            file, new = Path(name, f"{stem}.parquet"), Path(name, f"{stem} new.parquet")
            wanted = {method: f"{table.name} / {method}" for method in table.methods}
            if all(ledger.has(key, 0) for key in wanted.values()):
                continue
            write(file, 100, table.rows, table)
            write(new, _TO_TEST, NEW_ROWS, table)
            for method, key in wanted.items():
                if ledger.has(key, 0):
                    continue
                given = {"method": method, "file": str(file), "new": str(new)}
                cell = Cell(key, "benchmarks.millions:measured", given, 200.0, 1200.0)
                told = {"table": table.name, "method": method}
                run = ledger.add(key, 0, told, run_cell(cell, THREADS))
                print(key, run["status"], run.get("message", ""), file=sys.stderr, flush=True)
            file.unlink()
    print(page(ledger.runs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
