"""MIBC beside liblinear at one C, moments beside reading: `python -m benchmarks.mibc_speed`.

Dense (d = 150, 300 positives, 10,000 negatives, full covariance) and text (100 positives, 100,000
negatives, diagonal): for every C of the paper's grid the fastest of the repeats of MIBC with its
moments, of MIBC from known moments and factors, and of cost-sensitive LinearSVC with the weight r
(negatives to a positive) on the positives, by the hinge loss as in the paper and by the squared
hinge (the primal on dense rows and the dual on text, as each is faster there). All take turns on
one thread, on the same rows, input checks included; what takes more than 5 seconds is not repeated.

Parquet (10 million rows of 50 features): decoding the file to arrays alone, the same with
`partial_fit`, and `fit_rows`, which reads a file that it may read again; each in a process of its
own, on all cores, with the most memory that it held.
"""

import argparse
import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC
from threadpoolctl import threadpool_limits

from benchmarks import mibc_rows, process_memory, record
from benchmarks.data_sets import OVERLAP
from benchmarks.markdown import table
from benchmarks.paper_tables.mibc_methods import CS
from benchmarks.paper_tables.mibc_sets import Rows
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.paper_tables.time_limit import call_within
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass.metrics import roc_auc
from rareclass.moments import MIBC
from rareclass.moments.covariance import make_covariance
from rareclass.moments.solution import solve_path
from rareclass.rows import from_table, parquet_batches

FIT, KNOWN = "MIBC, with moments", "MIBC, moments known"
HINGE, SQUARED = "liblinear, hinge", "liblinear, squared hinge"
COVARIANCE = {"dense": "full", "text": "diagonal"}
DENSE_SHAPE = (150, 300)  # features, positives
LONG_MS = 5000.0  # not repeated
LIMIT_SECONDS = 1800.0
TARGET = "target"
FILE_RARE_SHARE = 1e-4
PIECE_ROWS = 100_000

READING, BATCHES, FIT_ROWS = "reading alone", "reading and partial_fit", "fit_rows(from_table)"


def beside(rows: Rows, covariance: str, repeats: int) -> dict[str, Any]:
    """Fastest milliseconds of every way at every C, and what it ranks the training rows like."""
    ratio = float((rows.y == 0).sum() / (rows.y == 1).sum())
    is_text = sparse.issparse(rows.X)
    known = MIBC(covariance=covariance, n_jobs=1).fit(rows.X, rows.y)
    fastest = {name: np.full(len(CS), np.inf) for name in (FIT, KNOWN, HINGE, SQUARED)}
    auc = {name: np.full(len(CS), np.nan) for name in (FIT, HINGE, SQUARED)}
    for k in range(repeats):
        for column, C in enumerate(CS):
            ways = {
                FIT: _fit(MIBC(C, covariance=covariance, n_jobs=1), rows),
                KNOWN: _solve(known, C),
                HINGE: _fit(_liblinear(C, ratio, "hinge", dual=True), rows),
                SQUARED: _fit(_liblinear(C, ratio, "squared_hinge", dual=is_text), rows),
            }
            for name, way in ways.items():
                if k and fastest[name][column] > LONG_MS:
                    continue
                model, ms = _timed(way)
                fastest[name][column] = min(fastest[name][column], ms)
                if name in auc:
                    auc[name][column] = roc_auc(rows.y, model.decision_function(rows.X))
    return {
        "rows": len(rows.y),
        "positives": int(rows.y.sum()),
        "features": rows.X.shape[1],
        "cells": int(rows.X.nnz if is_text else rows.X.size),
        "ms": {name: ms.round(4).tolist() for name, ms in fastest.items()},
        "auc": {name: found.round(4).tolist() for name, found in auc.items()},
    }


def speed_up(found: dict[str, Any], way: str, peer: str, C: float | None = 1.0) -> float:
    """How many times faster than liblinear: at one C, or over the whole grid."""
    own, other = (found["ms"][name] for name in (way, peer))
    if C is not None:
        column = int(np.argmin(np.abs(CS - C)))
        return other[column] / own[column]
    return sum(other) / sum(own)


def reading(way: str, path: str) -> dict[str, Any]:
    """Seconds and the most memory of one way through the file; meant for a process of its own."""
    _ = MIBC().partial_fit(*_few(), classes=[0, 1]).coef_  # compiled code is loaded
    start, held = time.perf_counter(), process_memory.resident()
    rows = 0
    if way == READING:
        for batch in parquet_batches(path, TARGET):
            rows += len(batch.source.take(slice(None)))
    elif way == BATCHES:
        model = MIBC()
        for batch in parquet_batches(path, TARGET):
            model.partial_fit(batch, batch.y, classes=[0, 1])
            rows += len(batch)
        _ = model.coef_  # the problem is solved when a weight is asked for
    else:
        with from_table(path, target=TARGET) as stored:
            MIBC().fit_rows(stored)
            rows = len(stored)
    seconds = time.perf_counter() - start
    beyond = process_memory.peak() - held
    return {"rows": rows, "seconds": seconds, "beyond_mib": beyond / 2**20}


def write_rows(path: str, rows: int, features: int) -> None:
    """Write simulated rows to one Parquet file, a row group a piece, rare rows spread evenly."""
    centres = mixture_centres(n_features=features)
    sizes = [min(PIECE_ROWS, rows - start) for start in range(0, rows, PIECE_ROWS)]
    n_rare = max(2, round(FILE_RARE_SHARE * rows))
    before = np.round(np.linspace(0.0, n_rare, len(sizes) + 1)).astype(int)
    names = [f"x{k:02}" for k in range(features)]
    schema = pa.schema([*((name, pa.float32()) for name in names), (TARGET, pa.int8())])
    with pq.ParquetWriter(path, schema, compression="none") as writer:
        for seed, (size, rare) in enumerate(zip(sizes, np.diff(before), strict=True)):
            X, y = rare_mixture(size, rare / size, OVERLAP, centres, random_state=seed)
            columns = [*X.T.astype(np.float32), y.astype(np.int8)]
            writer.write_table(pa.table(columns, schema))


def parquet(rows: int, features: int, repeats: int) -> dict[str, Any]:
    """Write the file in pieces, then every way through it; ways take turns."""
    where = "/var/tmp" if Path("/var/tmp").is_dir() else None
    with tempfile.TemporaryDirectory(dir=where) as folder:
        path = str(Path(folder) / "rows.parquet")
        write_rows(path, rows, features)
        runs: dict[str, list[dict[str, Any]]] = {}
        for _ in range(repeats):
            for way in (READING, BATCHES, FIT_ROWS):
                found = call_within(LIMIT_SECONDS, reading, way, path)
                if found is not None:
                    runs.setdefault(way, []).append(found)
        size = Path(path).stat().st_size / 2**20
    best = {way: min(found, key=lambda one: one["seconds"]) for way, found in runs.items()}
    return {"rows": rows, "features": features, "file_mib": size, "ways": best, "runs": runs}


def lines_beside(name: str, found: dict[str, Any]) -> list[list[str]]:
    """Each way of MIBC beside liblinear, as BESIDE_HEADER names the columns."""
    one = int(np.argmin(np.abs(CS - 1.0)))
    ms = found["ms"]
    lines = []
    for way in (FIT, KNOWN):
        lines.append(
            [
                f"{name}: {way}",
                f"{ms[way][one]:.2f}",
                f"{ms[HINGE][one]:,.1f}",
                f"{ms[SQUARED][one]:,.1f}",
                f"{speed_up(found, way, HINGE):.1f}",
                f"{speed_up(found, way, SQUARED):.1f}",
                f"{speed_up(found, way, HINGE, None):.1f}",
            ]
        )
    return lines


BESIDE_HEADER = [
    "ms at C = 1", "MIBC", HINGE, SQUARED, "speed-up", "over squared", "over hinge, all C",
]  # fmt: skip


def lines_by_price(found: dict[str, Any]) -> list[list[str]]:
    """Milliseconds at every C, as PRICE_HEADER names the columns."""
    return [
        [f"10^{np.log10(C):.0f}"]
        + [f"{ms[k]:,.2f}" for ms in found["ms"].values()]
        + [f"{found['ms'][HINGE][k] / found['ms'][way][k]:,.1f}" for way in (FIT, KNOWN)]
        for k, C in enumerate(CS)
    ]


PRICE_HEADER = ["ms at C", FIT, KNOWN, HINGE, SQUARED, "speed-up", "moments known"]


def lines_reading(found: dict[str, Any]) -> list[list[str]]:
    """Each way through the file, as READING_HEADER names the columns."""
    alone = found["ways"].get(READING, {}).get("seconds")
    lines = []
    for way, one in found["ways"].items():
        ratio = one["seconds"] / alone if alone else None
        lines.append(
            [
                way,
                f"{one['seconds']:.1f}",
                f"{found['file_mib'] / one['seconds']:,.0f}",
                "-" if ratio is None else f"{ratio:.2f}",
                f"{one['beyond_mib']:,.0f}",
            ]
        )
    return lines


READING_HEADER = ["way", "s", "MiB/s", "times reading", "peak MiB beyond start"]


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write results/mibc_speed.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mibc_speed", description=__doc__)
    parser.add_argument("--what", choices=["all", *COVARIANCE, "parquet"], default="all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=10_000_000, help="of the Parquet file")
    parser.add_argument("--negatives", type=int, help="default: 10,000 dense and 100,000 of text")
    parser.add_argument("--json", metavar="FILE", help="default: results/mibc_speed.json")
    args = parser.parse_args(argv)
    file = Path(args.json) if args.json else record.RESULTS / "mibc_speed.json"
    # What is not measured this time stays in the file, with its own date.
    parts = json.loads(file.read_text())["parts"] if file.is_file() else {}
    if args.what in ("all", "text"):
        needed_folder()  # ends the command where there is none
    for what in (*COVARIANCE, "parquet"):
        if args.what in ("all", what):
            print(f"Measuring: {what}", file=sys.stderr, flush=True)
            parts[what] = _measure(what, args) | {"date": record.environment()["date"]}
            _show(what, parts[what])
    print("written:", record.write("mibc_speed", {"parts": parts}, file))
    return 0


def _measure(what: str, args: argparse.Namespace) -> dict[str, Any]:
    if what == "parquet":
        return parquet(args.rows, 50, args.repeats)
    if what == "dense":
        rows = mibc_rows.dense(*DENSE_SHAPE, args.negatives or 10_000)
        return beside(rows, COVARIANCE[what], args.repeats)
    negatives = args.negatives or 100_000
    rows = mibc_rows.text(max(negatives // 1000, 5), negatives, needed_folder())
    return beside(rows, COVARIANCE[what], args.repeats) | {"made_of": "newsgroups20"}


def _show(what: str, found: dict[str, Any]) -> None:
    if what == "parquet":
        print(table(READING_HEADER, lines_reading(found)))
    else:
        print(table(BESIDE_HEADER, lines_beside(what, found)))
        print(table(PRICE_HEADER, lines_by_price(found)))
    print()


def _liblinear(C: float, ratio: float, loss: str, dual: bool) -> LinearSVC:
    return LinearSVC(C=C, loss=loss, dual=dual, class_weight={1: ratio}, random_state=0)


def _fit(model: Any, rows: Rows) -> Callable[[], Any]:
    return lambda: model.fit(rows.X, rows.y)


def _solve(known: MIBC, C: float) -> Callable[[], Any]:
    """From the moments of a model and their factors: its rare rows brought in, solved, weights."""
    is_sparse = sparse.issparse(known.rare_rows_)
    model = make_covariance(known.covariance, known.n_factors, known.ridge)
    modelled, mean = model.model(known.moments_, is_sparse), known.moments_.mean
    rare = (known.rare_rows_, known.rare_weight_)
    return lambda: solve_path(modelled, mean, *rare, [C], known.tol, known.max_iter, 0)


def _timed(way: Callable[[], Any]) -> tuple[Any, float]:
    with warnings.catch_warnings(), threadpool_limits(1):
        warnings.simplefilter("ignore", ConvergenceWarning)  # passes are limited, as by default
        start = time.perf_counter()
        found = way()
        return found, 1000.0 * (time.perf_counter() - start)


def _few() -> tuple[np.ndarray, np.ndarray]:
    return np.random.default_rng(0).normal(size=(60, 3)), (np.arange(60) % 3 == 0).astype(np.int8)


if __name__ == "__main__":
    sys.exit(main())
