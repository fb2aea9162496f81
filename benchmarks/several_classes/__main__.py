"""`RareClassifier` beside multiclass peers on several rare classes.

`python -m benchmarks.several_classes`: two stratified splits of glass, ecoli, yeast and wine, one
of the other tables; two thirds of the rows to learn from, one thread. Seconds are CPU seconds of
fit and probabilities, in a process that has learned a small table before: other programs on the
machine take nothing from them. Fits are stored as they come and not done again.
"""

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.model_selection import train_test_split

from benchmarks import other_work, record
from benchmarks.ledger import Ledger, Run
from benchmarks.markdown import table
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.several_classes import figures
from benchmarks.several_classes.measures import measures
from benchmarks.several_classes.methods import METHODS, TWO_CLASSES, Problem
from benchmarks.several_classes.tables import REST, TABLES, Table

TEST_SHARE = 1 / 3


def main(argv: list[str] | None = None) -> int:
    """Run what is not stored yet, print, write results/several_classes.json."""
    args = _options(argv)
    folder = needed_folder()
    ledger = Ledger("several_classes", args.json, {"threads": 1})
    there = [name for name in args.tables if TABLES[name].is_there(folder)]
    pending = [
        (split, name, method)
        for split in range(args.splits)
        for name in there
        if split < TABLES[name].splits
        for method in args.methods
        if args.again or not ledger.has(f"{name} / {method}", split)
    ]
    if pending:
        _warm_up({method for _, _, method in pending}, folder)
    tables = {name: TABLES[name].read(folder) for name in dict.fromkeys(n for _, n, _ in pending)}
    for split, name, method in pending:
        about = {"table": name, "method": method}
        run = measure(tables[name], split, method, TABLES[name].trees)
        ledger.add(f"{name} / {method}", split, about, run)
        print(
            f"{name} / {method}, split {split}: {run['seconds']:.1f} s, macro average precision "
            f"{np.mean(run['average_precisions']):.4f}",
            file=sys.stderr,
            flush=True,
        )
    print(table(figures.HEADER, figures.lines(ledger.runs)))
    print("written:", args.json or record.RESULTS / "several_classes.json")
    return 0


def measure(table: Table, split: int, method: str, catboost_trees: int) -> Run:
    """Fit one method on one split; return its measures, seconds, and what else is to be known."""
    labels, sizes = np.unique(table.y[table.y != REST].astype(str), return_counts=True)
    classes = labels[np.argsort(-sizes, kind="stable")].tolist()
    y = np.array([0 if label == REST else classes.index(label) + 1 for label in table.y])
    train, test = train_test_split(
        np.arange(len(y)), test_size=TEST_SHARE, random_state=split, stratify=y
    )
    problem = Problem(table.X[train], y[train], table.X[test], split, catboost_trees)
    learned, tested = y[train], y[test]
    if method == TWO_CLASSES:
        learned, tested = (learned > 0).astype(int), (tested > 0).astype(int)
    before, wall, own = other_work.now(), time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = METHODS[method](problem)
    seconds = {"seconds": time.process_time() - own, "wall_seconds": time.perf_counter() - wall}
    return {
        "status": "ok",
        **seconds,
        "cores_of_others": other_work.cores_of_others(before, other_work.now()),
        "rows": len(train),
        "classes": classes,
        "rare_rows": np.bincount(y)[1:].tolist(),
        **measures(tested, found, np.bincount(learned)[1:]),
        **({"trees": catboost_trees} if method.startswith("CatBoost") else {}),
    }


def _warm_up(methods: set[str], folder: Path) -> None:
    """Import libraries and load compiled loops before anything is timed."""
    made = TABLES["machine failures"].read(folder)
    kept = np.arange(0, len(made.y), 5)
    small = Table(made.X[kept], np.where(made.y[kept] == "random", REST, made.y[kept]))
    for method in sorted(methods):
        measure(small, 0, method, 10)


def _options(argv: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.several_classes",
                                     description=__doc__)  # fmt: skip
    parser.add_argument("--tables", nargs="+", choices=TABLES, default=list(TABLES))
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--splits", type=int, default=2, help="of a table, at most (default: 2)")
    parser.add_argument("--again", action="store_true", help="do all fits anew")
    parser.add_argument("--json", metavar="FILE", help="default: results/several_classes.json")
    return parser.parse_args(argv)


if __name__ == "__main__":
    sys.exit(main())
