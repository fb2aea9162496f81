"""How to scale sparse rows before a Gaussian kernel: `python -m benchmarks.sparse_rows`.

The command line's landmarks, lam = 0.001, one class against the rest, the same splits of 75 : 25
for every scaling. tdt2 holds counts of words, sector scaled ones; the others are tables stored
as sparse rows, features of all kinds of scale.
"""

import argparse
import bz2
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from scipy import sparse
from sklearn.datasets import load_svmlight_file
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, MaxAbsScaler, Normalizer, StandardScaler

from benchmarks import record
from benchmarks.paper_tables.protocol import data_folder
from rareclass import RankRC
from rareclass.metrics import average_precision, roc_auc

SCALINGS: dict[str, Callable[[], Any]] = {
    "raw": FunctionTransformer,
    "deviation": lambda: StandardScaler(with_mean=False),
    "largest": MaxAbsScaler,
    "unit rows": Normalizer,
    "largest, unit rows": lambda: make_pipeline(MaxAbsScaler(), Normalizer()),
    "deviation, unit rows": lambda: make_pipeline(StandardScaler(with_mean=False), Normalizer()),
}
TEXTS = {"tdt2": (30, 29, 15), "sector": (100, 99, 27)}
TABLES = ("unsw_nb15_backdoor", "satimage", "give_me_some_credit")
MOST_TABLE_ROWS = 8000


def tasks(folder: Path) -> Iterator[tuple[str, sparse.csr_matrix, np.ndarray]]:
    """Name, sparse rows and rare rows of every task whose file is there."""
    for name, classes in TEXTS.items():
        path = folder / f"{name}.svmlight.bz2"
        if path.is_file():
            with bz2.open(path) as lines:
                X, labels = load_svmlight_file(lines)
            for label in classes:
                yield f"{name} {label}", X, labels == label
    for name in TABLES:
        path = folder / f"{name}.parquet"
        if path.is_file():
            table = pl.read_parquet(path)
            table = table.sample(min(table.height, MOST_TABLE_ROWS), seed=0)
            X = table.drop("target").fill_null(0).to_numpy().astype(float)
            yield name, sparse.csr_matrix(X), table["target"].to_numpy() == 1


def measure(X: sparse.csr_matrix, y: np.ndarray, n_splits: int) -> dict[str, list[float]]:
    """Mean (AUC, average precision) of each scaling."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in SCALINGS}
    for seed in range(n_splits):
        train, test = train_test_split(
            np.arange(len(y)), test_size=0.25, stratify=y, random_state=seed
        )
        for name, make in SCALINGS.items():
            scaling = make().fit(X[train])
            model = RankRC(lam=1e-3, landmarks=("rare+majority", 200), random_state=0)
            model.fit(scaling.transform(X[train]), y[train])
            scores = model.score_samples(scaling.transform(X[test]))
            found[name].append((roc_auc(y[test], scores), average_precision(y[test], scores)))
    return {name: np.mean(pairs, axis=0).tolist() for name, pairs in found.items()}


def main() -> int:
    """Measure, print a Markdown table, write results/sparse_rows.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sparse_rows", description=__doc__)
    parser.add_argument("--splits", type=int, default=2)
    parser.add_argument("--json", metavar="FILE", help="default: results/sparse_rows.json")
    args = parser.parse_args()
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return 0
    print("| set, class (rare rows) | " + " | ".join(SCALINGS) + " |")
    print("|---" * (len(SCALINGS) + 1) + "|")
    results = {}
    for name, X, y in tasks(folder):
        results[name] = {"rare": int(y.sum()), **measure(X, y, args.splits)}
        cells = (f"{auc:.3f} \\| {ap:.3f}" for auc, ap in map(results[name].get, SCALINGS))
        print(f"| {name} ({y.sum()}) | " + " | ".join(cells) + " |", flush=True)
    body = {"splits": args.splits, "results": results}
    print(f"wrote {record.write('sparse_rows', body, args.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
