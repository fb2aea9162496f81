"""Rows in memory beside the same rows on workers: fits, moments and an AUC, and what a pass costs.

Each cell has a process of its own; that of Dask starts its workers, which are processes with one
thread each, before the clock. Rows of the fits are those of `data_sets`, which every worker reads
from disk for itself; moments are of a folder of Parquet files; the scores of the AUC are drawn
where they are.

- ``fit``: RankRC with all rare rows as landmarks; in memory with 1 and 2 threads, 1 and 2 workers
  of Dask, and Spark with 2 cores (fewer rows).
- ``moments``: MIBC from a folder of Parquet, in memory limits of its own.
- ``auc``: the exact AUC of so many scores.
- ``pass``: what a pass costs besides its work, against the number of workers; tasks of nothing.
"""

import argparse
import os
import sys
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
SPARK = "spark, local[2]"


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sizes, and which part."""
    parser.add_argument("--rows", type=int, default=4 * MILLION)
    parser.add_argument("--spark-rows", type=int, default=MILLION)
    parser.add_argument("--rare", type=int, default=1000)
    parser.add_argument("--moment-rows", type=int, default=20 * MILLION)
    parser.add_argument("--scores", type=int, default=50 * MILLION)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4, 8])
    parser.add_argument("--limit", type=float, default=900.0, help="seconds of a cell")


def groups(args: argparse.Namespace) -> list[Group]:
    """A group a question: the places take turns."""
    return [
        *_fits(args, args.rows, WHERE),
        *_fits(args, args.spark_rows, ("memory, 2 threads", "dask, 2 workers", SPARK)),
        _ensembles(args, args.rows, 40),
        _ensembles(args, 5 * args.rows, 12),
        _moments(args),
        _aucs(args),
        _passes(args),
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
                estimate=simulated_fits.seconds_of("rankrc", rows, args.rare, cached=False),
                limit=args.limit,
                about={"what": "fit", "rows": rows, "place": place},
            )
            for place in places
        ],
        repeats=3,
        preparations=[data_sets.preparation(data, args.scratch)],
    )


def _ensembles(args: argparse.Namespace, rows: int, features: int) -> Group:
    # As many held-out rows as training rows: average precision varies with 125 rare ones.
    data = data_sets.simulated_name(rows, features, args.rare, min(rows, 4 * MILLION))
    return Group(
        f"RareClassifier, {rows:,} x {features}",
        [
            Cell(
                f"ensemble {rows:,} / {place}",
                "benchmarks.distributed:ensemble",
                {"data": data, "scratch": str(args.scratch), "place": place},
                estimate=100.0,
                limit=args.limit,
                about={"what": "RareClassifier", "rows": rows, "place": place},
            )
            for place in ("memory, 2 threads", "dask, 2 workers")
        ],
        repeats=1,
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
                estimate=3e-6 * args.moment_rows,
                limit=args.limit,
                about={"what": "moments", "rows": args.moment_rows, "place": place},
            )
            for place in ("memory, 2 threads", "dask, 2 workers")
        ],
        repeats=1,
        preparations=[
            Cell("write the folder", "benchmarks.distributed:write", shape, 1e-5 * args.moment_rows)
        ],
    )


def _aucs(args: argparse.Namespace) -> Group:
    return Group(
        f"AUC of {args.scores:,} scores",
        [
            Cell(
                f"auc {args.scores:,} / {place}",
                "benchmarks.distributed:auc",
                {"scores": args.scores, "place": place},
                estimate=20.0,
                limit=args.limit,
                about={"what": "auc", "rows": args.scores, "place": place},
            )
            for place in ("memory, 2 threads", "dask, 1 worker", "dask, 2 workers")
        ],
        repeats=1,
    )


def _passes(args: argparse.Namespace) -> Group:
    return Group(
        "a pass of nothing",
        [
            Cell(
                f"pass / dask, {n} workers",
                "benchmarks.distributed:empty_passes",
                {"n_workers": n},
                estimate=15.0,
                limit=args.limit,
                about={"what": "pass", "rows": 1000 * n, "place": f"dask, {n} workers"},
            )
            for n in args.workers
        ],
        repeats=1,
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
    from rareclass.rows import places  # noqa: F401 - what workers need

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
    """Seconds from rows that are where they are to a model, and what its passes cost."""
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
        told = passes_of(rows)
    from sklearn.metrics import roc_auc_score

    scores = model.score_samples(np.array(np.load(X_test, mmap_mode="r")))
    return {
        "seconds": seconds,
        "load_seconds": loaded - start,
        **told,
        "auc": float(roc_auc_score(np.load(y_test), scores)),
    }


def ensemble(
    data: str, scratch: str, place: str, threads: int = 1, limit: float = 600.0
) -> dict[str, Any]:
    """Seconds from files to a `RareClassifier` with defaults.

    From Dask it learns from a draw of the rows, a member on each worker at a time.
    """
    from sklearn.metrics import average_precision_score, roc_auc_score

    from rareclass import RareClassifier

    X, y, X_test, y_test = (
        Path(scratch) / data / f"{name}.npy" for name in data_sets.DataSet._fields
    )
    model = RareClassifier(random_state=0)
    with ExitStack() as until_read:
        if place.startswith("dask"):
            from dask import array

            until_read.enter_context(workers(int(place.split()[1])))
            stored = [np.load(each, mmap_mode="r") for each in (X, y)]
            cuts = _cuts(len(stored[0]))
            sizes = np.diff(cuts).tolist()
            given = [
                array.concatenate(
                    [
                        array.from_delayed(part, (n, *each.shape[1:]), each.dtype)
                        for part, n in zip(parts, sizes, strict=True)
                    ]
                )
                for each, parts in zip(stored, _pieces((X, y), cuts), strict=True)
            ]
        start = time.perf_counter()
        if not place.startswith("dask"):
            given = [np.load(X), np.load(y)]
        with time_limit(limit):
            model.fit(*given)
        seconds = time.perf_counter() - start
    scores, labels = model.decision_function(np.load(X_test)), np.load(y_test)
    return {
        "seconds": seconds,
        "auc": float(roc_auc_score(labels, scores)),
        "average_precision": float(average_precision_score(labels, scores)),
    }


@contextmanager
def _rows(place: str, X: Path, y: Path) -> Iterator[Callable[[], Any]]:
    """What brings the rows of two files to a place."""
    from rareclass.rows import from_arrays, from_dask

    cuts = _cuts(len(np.load(y, mmap_mode="r")))
    if place.startswith("memory"):
        yield lambda: from_arrays(np.load(X), np.load(y))
    elif place.startswith("dask"):
        pieces = _pieces((X, y), cuts)
        with workers(int(place.split()[1])) as client:
            yield lambda: from_dask(pieces[0], pieces[1], client=client)
    else:
        with spark_rows(X, y, cuts) as load:
            yield load


@contextmanager
def spark_rows(X: Path, y: Path, cuts: list[int]) -> Iterator[Callable[[], Any]]:
    """The rows of two files as a Spark DataFrame with a column for each feature."""
    import pyarrow as pa
    from pyspark.sql import SparkSession

    from rareclass.rows import from_spark

    os.environ["PYSPARK_PYTHON"] = sys.executable
    session = (
        SparkSession.builder.master("local[2]")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "6g")
        .getOrCreate()
    )
    width = np.load(X, mmap_mode="r").shape[1]
    names = [f"x{k}" for k in range(width)]
    schema = ", ".join([*(f"{name} float" for name in names), "target int"])

    def read(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            for k in batch.column(0).to_pylist():
                rows = _slice(str(X), cuts[k], cuts[k + 1])
                target = _slice(str(y), cuts[k], cuts[k + 1]).astype(np.int32)
                columns = [np.ascontiguousarray(column) for column in rows.T]
                yield pa.RecordBatch.from_arrays([*map(pa.array, columns), pa.array(target)],
                                                 [*names, "target"])  # fmt: skip

    frame = session.range(0, len(cuts) - 1, 1, len(cuts) - 1).mapInArrow(read, schema)
    try:
        yield lambda: from_spark(frame, target="target")
    finally:
        session.stop()


def passes_of(rows: Any) -> dict[str, Any]:
    """What the sums of a fit cost, where they crossed processes: medians over the passes."""
    engine = getattr(rows.source, "engine", None)
    if engine is None:
        return {}
    sums = [each for each in engine.passes if each.kind == "sum"]
    return {
        "passes": len(sums),
        "requests": len(engine.passes),
        # Of all requests together: of waiting for them, and of the work of the slowest place.
        "asked_seconds": sum(each.seconds for each in engine.passes),
        "work_seconds": sum(each.work_seconds for each in engine.passes),
        "overhead_seconds": float(np.median([each.seconds - each.work_seconds for each in sums])),
        "sent_bytes": float(np.median([each.sent_bytes for each in sums])),
        "most_sent_bytes": max(each.sent_bytes for each in sums),
        "received_bytes": float(np.median([each.received_bytes for each in sums])),
    }


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
        seconds, told = time.perf_counter() - loaded, passes_of(rows)
    return {
        "seconds": seconds,
        "load_seconds": loaded - start,
        **told,
        "peak_bytes": process_memory.peak(),
    }


def _scores(seed: int, n: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.001
    return y, rng.standard_normal(n) + y


def auc(scores: int, place: str, threads: int = 1, limit: float = 600.0) -> dict[str, Any]:
    """Seconds of an exact AUC of columns that are where they are."""
    from rareclass.metrics import roc_auc

    sizes = [scores // PARTS] * PARTS
    roc_auc(*_scores(0, 300_000))  # compiled
    if place.startswith("memory"):
        y, s = map(np.concatenate, zip(*map(_scores, range(PARTS), sizes), strict=True))
        start = time.perf_counter()
        found = roc_auc(y, s)
        return {"seconds": time.perf_counter() - start, "auc": found}
    import dask.array as da
    from dask import delayed
    from distributed import wait

    with workers(int(place.split()[1])) as client:
        drawn = [delayed(_scores, nout=2)(k, size) for k, size in enumerate(sizes)]
        columns = [
            da.concatenate(
                [da.from_delayed(part[k], (n,), kind) for part, n in zip(drawn, sizes, strict=True)]
            )
            for k, kind in enumerate((bool, float))
        ]
        columns = [column.persist() for column in columns]
        wait(columns)
        client.run(_warm_auc)
        start = time.perf_counter()
        found = roc_auc(*columns)
        return {"seconds": time.perf_counter() - start, "auc": found}


def _warm_auc() -> None:
    from rareclass.metrics import roc_auc

    roc_auc(*_scores(0, 300_000))


def _nothing(block: Any) -> tuple[int]:
    return (block.stop - block.start,)


def empty_passes(n_workers: int, threads: int = 1, limit: float = 600.0) -> dict[str, Any]:
    """Milliseconds of passes over a thousand rows a worker, which are all overhead."""
    from dask import delayed

    from rareclass.rows import from_dask, rows_of

    with workers(n_workers) as client:
        parts = [delayed(np.zeros)((1000, 2)) for _ in range(n_workers)]
        rows: Any = rows_of(from_dask(parts, client=client).source)
        engine = rows._source.engine
        assert len(set(engine.place_of)) == n_workers
        for _ in range(30):
            rows.sum(_nothing)
        seconds = [each.seconds - each.work_seconds for each in engine.passes[5:]]
        return {
            "seconds": float(np.median(seconds)),
            "slowest": max(seconds),
            "overhead_seconds": float(np.median(seconds)),
        }


def render(runs: list[Run]) -> str:
    """One line a place."""
    header = [
        "what", "rows", "place", "seconds", "reading s", "passes", "overhead a pass ms",
        "sent a pass kB", "sent at most kB", "received a pass kB", "AUC", "AP",
    ]  # fmt: skip
    body = [_line(run) for run in summaries(runs)]
    return (
        "Workers of Dask are processes with one thread each, on the same two cores. Overhead is "
        "the time of a pass less that of the place that worked longest; bytes are of all places "
        "together. Reading is what brings the rows there, from files.\n\n" + table(header, body)
    )


def _line(run: Run) -> list[str]:
    name = [run["what"], f"{run['rows']:,}", run["place"]]
    if run["status"] != "ok":
        return [*name, f"{run['status']}: {run.get('message', '')}", *[""] * 8]

    def cell(key: str, scale: float, form: str) -> str:
        return format(run[key] * scale, form) if key in run else ""

    return [
        *name,
        cell("seconds", 1.0, ".3g"),
        cell("load_seconds", 1.0, ".1f"),
        cell("passes", 1.0, ".0f"),
        cell("overhead_seconds", 1e3, ".1f"),
        cell("sent_bytes", 1e-3, ",.1f"),
        cell("most_sent_bytes", 1e-3, ",.0f"),
        cell("received_bytes", 1e-3, ",.1f"),
        cell("auc", 1.0, ".6f"),
        cell("average_precision", 1.0, ".4f"),
    ]
