"""Fits and moments of rows in memory and of the same rows on workers of Dask.

Each cell has a process of its own; that of Dask starts its workers, which are processes with one
thread each, before the clock. Rows of the fits are those of `data_sets`, which every worker reads
from disk for itself; moments are of a folder of Parquet files.

- ``fit``: RankRC with all rare rows as landmarks; in memory with 1 and 2 threads, 1 and 2 workers.
- ``moments``: MIBC from a folder of Parquet, in memory limits of its own.
"""

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import data_sets, process_memory, simulated_fits
from benchmarks.cells import Cell, Group, time_limit
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table

MILLION = 1_000_000
PARTS = 16
WHERE = ("memory, 1 thread", "memory, 2 threads", "dask, 1 worker", "dask, 2 workers")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes, and which part."""
    parser.add_argument("--rows", type=int, default=4 * MILLION)
    parser.add_argument("--rare", type=int, default=1000)
    parser.add_argument("--moment-rows", type=int, default=20 * MILLION)
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a cell")


def groups(args: argparse.Namespace) -> list[Group]:
    """A group a question: the places take turns."""
    return [
        *_fits(args, args.rows, WHERE),
        _moments(args),
    ]


def _fits(args: argparse.Namespace, rows: int, places: tuple[str, ...]) -> Iterator[Group]:
    data = data_sets.simulated_name(rows, 40, args.rare)
    yield Group(
        f"RankRC, {rows:,} x 40",
        [
            Cell(
                f"fit {rows:,} / {place}",
                "benchmarks.distributed:fit",
                {"data": data, "scratch": str(args.scratch), "place": place},
                limit=args.limit,
                about={"what": "fit", "rows": rows, "place": place},
            )
            for place in places
        ],
        repeats=3,
        preparations=[data_sets.preparation(data, args.scratch)],
    )


def _moments(args: argparse.Namespace) -> Group:
    folder = str(args.scratch / f"moments-{args.moment_rows}x50")
    shape = {"folder": folder, "rows": args.moment_rows, "features": 50}
    return Group(
        f"MIBC, {args.moment_rows:,} x 50 from Parquet",
        [
            Cell(
                f"moments {args.moment_rows:,} / {place}",
                "benchmarks.distributed:moments",
                {"folder": folder, "place": place},
                limit=args.limit,
                about={"what": "moments", "rows": args.moment_rows, "place": place},
            )
            for place in ("memory, 2 threads", "dask, 2 workers")
        ],
        repeats=1,
        preparations=[Cell("write the folder", "benchmarks.distributed:write", shape)],
    )


@contextmanager
def workers(n_workers: int) -> Iterator[Any]:
    """A cluster of processes with a thread each, whose imports are done."""
    from distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=n_workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        client.run(_warm)
        yield client


def _warm() -> None:
    from rareclass import RankRC
    from rareclass.rows import dask_rows  # noqa: F401 - what workers need

    X = np.random.default_rng(0).normal(size=(300, 3)).astype(np.float32)
    RankRC(n_jobs=1).fit(X, np.arange(300) < 20)


def _cuts(n_rows: int) -> list[int]:
    return np.linspace(0, n_rows, PARTS + 1).astype(int).tolist()


def _pieces(paths: Sequence[Path], cuts: list[int]) -> list[list[Any]]:
    """Return the parts of each file, read where they are needed."""
    from dask import delayed

    return [[delayed(_slice)(str(path), a, b) for a, b in pairwise(cuts)] for path in paths]


def _slice(path: str, start: int, stop: int) -> np.ndarray:
    return np.array(np.load(path, mmap_mode="r")[start:stop])


def fit(
    data: str, scratch: str, place: str, threads: int = 1, limit: float = 600.0
) -> dict[str, Any]:
    """Seconds from rows that are where they are to a model."""
    from rareclass import RankRC

    X, y, X_test, y_test = (
        Path(scratch) / data / f"{name}.npy" for name in data_sets.DataSet._fields
    )
    options: dict[str, Any] = {"lam": simulated_fits.LAM, "tol": simulated_fits.TOL}
    model = RankRC(**options, memory="2GiB", n_jobs=2 if "2 threads" in place else 1, verbose=False)
    _warm()
    with _rows(place, X, y) as load:
        start = time.perf_counter()
        rows = load()
        loaded = time.perf_counter()
        with time_limit(limit):
            model.fit_rows(rows)
        seconds = time.perf_counter() - loaded
    from sklearn.metrics import roc_auc_score

    scores = model.score_samples(np.array(np.load(X_test, mmap_mode="r")))
    return {
        "seconds": seconds,
        "load_seconds": loaded - start,
        "auc": float(roc_auc_score(np.load(y_test), scores)),
    }


@contextmanager
def _rows(place: str, X: Path, y: Path) -> Iterator[Callable[[], Any]]:
    """What brings the rows of two files to a place."""
    from rareclass.rows import from_arrays, from_dask

    cuts = _cuts(len(np.load(y, mmap_mode="r")))
    if place.startswith("memory"):
        yield lambda: from_arrays(np.load(X), np.load(y))
    else:
        pieces = _pieces((X, y), cuts)
        with workers(int(place.split()[1])) as client:
            yield lambda: from_dask(pieces[0], pieces[1], client=client)


def write(
    folder: str, rows: int, features: int, threads: int = 1, limit: float = 0.0
) -> dict[str, Any]:
    """A folder of Parquet files with a rare class at 1 percent, of a million rows each."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    done = Path(folder) / "_done"
    if done.is_file():
        return {}
    Path(folder).mkdir(parents=True, exist_ok=True)
    for k in range(0, rows, MILLION):
        rng = np.random.default_rng(k)
        n = min(MILLION, rows - k)
        y = rng.random(n) < 0.01
        X = rng.standard_normal((n, features), dtype=np.float32)
        X[y, : features // 5] += 0.5
        columns = {f"x{j:02}": X[:, j] for j in range(features)}
        pq.write_table(
            pa.table({**columns, "target": y.astype(np.int8)}),
            f"{folder}/part-{k // MILLION:03}.parquet",
            compression="none",
            row_group_size=MILLION // 8,
        )
    done.write_text("")
    return {}


def moments(folder: str, place: str, threads: int = 1, limit: float = 600.0) -> dict[str, Any]:
    """Seconds from files to a model of MIBC, and the most memory of this process."""
    import pandas as pd

    from rareclass import MIBC
    from rareclass.rows import from_dask, from_parquet

    model = MIBC(n_jobs=2)
    with time_limit(limit), ExitStack() as until_learned:
        if place.startswith("memory"):
            start = time.perf_counter()
            rows = from_parquet(folder, target="target")
        else:
            from dask import delayed

            client = until_learned.enter_context(workers(int(place.split()[1])))
            start = time.perf_counter()
            files = sorted(Path(folder).glob("*.parquet"))
            parts = [delayed(pd.read_parquet)(path) for path in files]
            rows = from_dask(parts, target="target", client=client)
        loaded = time.perf_counter()
        model.fit_rows(rows)
        seconds = time.perf_counter() - loaded
    return {
        "seconds": seconds,
        "load_seconds": loaded - start,
        "peak_bytes": process_memory.peak(),
    }


def render(runs: list[Run]) -> str:
    """One line a place."""
    header = ["what", "rows", "place", "seconds", "reading s", "AUC"]
    body = [_line(run) for run in summaries(runs)]
    return (
        "Workers of Dask are processes with one thread each, on the same two cores. Reading is "
        "what brings the rows there, from files.\n\n" + table(header, body)
    )


def _line(run: Run) -> list[str]:
    name = [run["what"], f"{run['rows']:,}", run["place"]]
    if run["status"] != "ok":
        return [*name, f"{run['status']}: {run.get('message', '')}", *[""] * 2]

    def cell(key: str, scale: float, form: str) -> str:
        return format(run[key] * scale, form) if key in run else ""

    return [
        *name,
        cell("seconds", 1.0, ".3g"),
        cell("load_seconds", 1.0, ".1f"),
        cell("auc", 1.0, ".6f"),
    ]
