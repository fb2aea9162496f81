"""Millions of rows from Parquet: `RankRC.fit_rows` in a process that never holds them.

The benchmark writes the file in pieces (float32, not compressed), then fits with a memory budget in
a fresh process: seconds, the most memory that this process ever held, and the AUC on rows of
another seed.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from sklearn.metrics import roc_auc_score

from benchmarks import process_memory, simulated_fits
from benchmarks.cells import Cell, Group, time_limit
from benchmarks.data_sets import OVERLAP
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from benchmarks.simulated import mixture_centres, rare_mixture
from rareclass.files import replacing

PIECE_ROWS = 100_000
HELD_OUT_ROWS = 200_000
TARGET = "target"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size of the file and the budget."""
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--features", type=int, default=50)
    parser.add_argument("--rare", type=int, default=1000)
    parser.add_argument("--memory", nargs="+", default=["512MiB"])
    parser.add_argument("--limit", type=float, default=1800.0, help="seconds of a fit")


def groups(args: argparse.Namespace) -> list[Group]:
    """One group: the budgets take turns on one file."""
    path = args.scratch / f"rows-{args.rows}x{args.features}-{args.rare}.parquet"
    shape = {"rows": args.rows, "features": args.features, "rare": args.rare, "path": str(path)}
    cells = [
        Cell(
            f"{args.rows:,} x {args.features}, {args.rare:,} rare, memory {memory}",
            "benchmarks.disk:measure",
            {"path": str(path), "features": args.features, "memory": memory},
            limit=args.limit,
            about={"memory": memory},
        )
        for memory in args.memory
    ]
    writing = Cell("write the file", "benchmarks.disk:write", shape, 1800.0)
    return [Group("from Parquet", cells, repeats=1, preparations=[writing])]


def write(
    path: str, rows: int, features: int, rare: int, threads: int = 1, limit: float = 0.0
) -> dict[str, Any]:
    """Write simulated rows to one Parquet file, a row group a piece, unless it is there.

    Rare rows are spread over the pieces as evenly as whole numbers allow.
    """
    if Path(path).is_file():
        return {}
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    sizes = [min(PIECE_ROWS, rows - start) for start in range(0, rows, PIECE_ROWS)]
    before = np.round(np.linspace(0.0, rare, len(sizes) + 1)).astype(int)
    with replacing(Path(path)) as temporary:
        writer = None
        for seed, (size, n_rare) in enumerate(zip(sizes, np.diff(before), strict=True)):
            X, y = _rows(size, features, int(n_rare), seed)
            names = [f"x{k:02}" for k in range(features)]
            piece = pa.table({**dict(zip(names, X.T, strict=True)), TARGET: y.astype(np.int8)})
            writer = writer or pq.ParquetWriter(temporary, piece.schema, compression="none")
            writer.write_table(piece)
        if writer is not None:
            writer.close()
    return {}


def measure(
    path: str, features: int, memory: str, threads: int, limit: float, lam: float = 2.0**-8
) -> dict[str, Any]:
    """Fit from the file; the peak is of the whole process, imports included."""
    from rareclass import RankRC
    from rareclass.rows import from_parquet

    model = RankRC(lam=lam, tol=simulated_fits.TOL, memory=memory, n_jobs=threads, verbose=False)
    with time_limit(limit):
        start = time.perf_counter()
        rows = from_parquet(path, target=TARGET)
        model.fit_rows(rows)
        seconds = time.perf_counter() - start
    outcome = {
        "seconds": seconds,
        "peak_bytes": process_memory.peak(),
        "file_bytes": Path(path).stat().st_size,
        "passes": model.history_[-1].passes if model.history_ else 1.0,
        "status_of_solver": str(model.status_),
    }
    X, y = _rows(HELD_OUT_ROWS, features, HELD_OUT_ROWS // 1000, seed=10**6)
    return {**outcome, "auc": float(roc_auc_score(y, model.score_samples(X)))}


def _rows(size: int, features: int, rare: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    centres = mixture_centres(n_features=features)
    X, y = rare_mixture(size, rare / size, OVERLAP, centres, random_state=seed)
    return X.astype(np.float32), y


def render(runs: list[Run]) -> str:
    """One line a budget."""
    header = ["rows from Parquet", "file MB", "seconds", "passes", "peak of the process MiB", "AUC"]
    body = []
    for run in summaries(runs):
        if run["status"] != "ok":
            body.append([run["key"], "", f"{run['status']}: {run.get('message', '')}", "", "", ""])
            continue
        body.append(
            [
                run["key"],
                f"{run['file_bytes'] / 1e6:,.0f}",
                f"{run['seconds']:.1f}",
                f"{run['passes']:.1f}",
                f"{run['peak_bytes'] / 2**20:,.0f}",
                f"{run['auc']:.4f}",
            ]
        )
    return table(header, body)
