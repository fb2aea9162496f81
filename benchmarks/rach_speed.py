"""How fast RACH is, part by part: `python -m benchmarks.rach_speed`.

- projection: `project_knapsack` of 1,000,000 multipliers, a tenth of them without a bound and half
  with the sign -1. Goal: under 1 s.
- kept: a fit with 5,000 rows in the optimisation (40 features, 30 rare labels, 70 of the majority,
  4,900 unlabelled, a tenth of which are rare; no filter), without a kernel and with the Gaussian
  one, at prices of an unlabelled row from 1 down to 1/1,000. Goal: the slowest under 10 s.
- filter: distances of 1,000,000 x 40 rows and the near ones of these, beside one pass of the
  Gaussian kernel with 300 landmarks (what `kernel_pass` calls one pass), and with a single one,
  over the same rows in numpy with the same number of threads, in turns. Goal: at most the time of
  the pass; beside a single landmark that is the time to read the rows.
- million: a fit with 1,000,000 unlabelled rows of 40 features, of which 1,000 are rare, from 3 rare
  labels and 30 of the majority: seconds, memory beyond the rows, precision and recall.

The rare rows are a cluster at a distance of 4 from the middle of a standard normal majority, 0.3
times as wide. Fits that take more than 5 seconds are not repeated.
"""

import argparse
import json
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from benchmarks import process_memory, record
from benchmarks.kernel_pass import one_pass
from benchmarks.paper_tables.study import print_table
from rareclass.hyperball.knapsack import project_knapsack
from rareclass.hyperball.pool import distances_to, near_rows
from rareclass.hyperball.problem import InputSpace
from rareclass.rows import ArrayRows, as_source

PARTS = ("projection", "kept", "filter", "million")
FEATURES, DISTANCE, WIDTH = 40, 4.0, 0.3
PROJECTION_GOAL, KEPT_GOAL, FILTER_GOAL = 1.0, 10.0, 1.0
KEPT_ROWS, KEPT_LABELS, KEPT_RARE_SHARE = 5000, (30, 70), 0.1
PRICES = (1.0, 0.1, 0.01, 0.001)
LANDMARKS = (1, 300)
MILLION_LABELS, MILLION_RARE_SHARE = (3, 30), 1e-3
# 1 / (unlabelled rows that are to stay outside), of the 20,000 that the filter lets in.
MILLION_PRICE = 1.0 / 18_500
LONG_SECONDS = 5.0  # not repeated
RARE_SHARE = 0.1  # what the filter is told


def cluster(
    rows: int, rare: int, labels: tuple[int, int], dtype: Any = np.float64
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows, true classes, and labels of which only the first few of either class are there."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((rows, FEATURES), dtype=dtype)
    truth = np.zeros(rows, dtype=np.int8)
    chosen = rng.permutation(rows)
    truth[chosen[:rare]] = 1
    X[truth == 1] *= WIDTH
    X[truth == 1, 0] += DISTANCE
    y = np.full(rows, -1, dtype=np.int8)
    y[chosen[: labels[0]]] = 1
    y[chosen[rare : rare + labels[1]]] = 0
    return X, truth, y


def projection(rows: int, repeats: int) -> dict[str, Any]:
    """Fastest seconds of a projection, and by how much its sum is out."""
    rng = np.random.default_rng(0)
    v, upper = rng.normal(size=rows), rng.uniform(0.0, 2.0, size=rows)
    upper[rng.random(rows) < 0.1] = np.inf
    signs = np.where(rng.random(rows) < 0.5, 1.0, -1.0)
    found, seconds = _fastest(lambda: project_knapsack(v, upper, signs, 1.0), repeats)
    return {"rows": rows, "seconds": seconds, "off": abs(float(signs @ found) - 1.0)}


def kept(rows: int, repeats: int) -> dict[str, Any]:
    """Seconds of fits at every price, without a kernel and with one."""
    from rareclass import RACH

    X, _, y = cluster(rows, round(KEPT_RARE_SHARE * rows), KEPT_LABELS)
    found = []
    for kernel in (None, "gaussian"):
        for price in PRICES:
            model = RACH(C2=price, kernel=kernel, filter=False, random_state=0)
            model, seconds = _fastest(lambda m=model: m.fit(X, y), repeats)
            found.append(
                {
                    "kernel": kernel,
                    "C2": price,
                    "seconds": seconds,
                    "steps": model.n_iter_,
                    "status": str(model.status_),
                    "gap": float(model.duality_gap_),
                    "inside": int((model.transduction_[y < 0] == 1).sum()),
                }
            )
    return {"rows": rows, "features": FEATURES, "fits": found}


def near(rows: int, threads: int, repeats: int) -> list[dict[str, Any]]:
    """The filter and passes of a kernel, in turns, as float64 and as float32."""
    found = []
    for dtype in (np.float64, np.float32):
        X, truth, _ = cluster(rows, max(LANDMARKS), MILLION_LABELS, dtype)
        rare = X[truth == 1].astype(np.float64)
        space = InputSpace(rare.mean(axis=0))
        table = ArrayRows(as_source(X), None, n_jobs=threads)
        center = np.zeros(FEATURES)
        ways: dict[str, Callable[[], Any]] = {
            "filter": lambda t=table, s=space, c=center: near_rows(
                distances_to(t, s, c), None, RARE_SHARE
            )
        }
        for count in LANDMARKS:
            Z = X[truth == 1][:count]
            ways[f"pass {count}"] = lambda X=X, Z=Z: one_pass(X, Z, 1.0 / (2.0 * FEATURES))
        seconds = dict.fromkeys(ways, np.inf)
        for _ in range(repeats):
            for name, way in ways.items():
                seconds[name] = min(seconds[name], _timed(way, threads)[1])
        found.append({"dtype": np.dtype(dtype).name, "threads": threads, "seconds": seconds})
    return found


def million(rows: int) -> dict[str, Any]:
    """A fit from a handful of labels, with what it found."""
    from rareclass import RACH

    found = []
    for kernel in (None, "gaussian"):
        X, truth, y = cluster(rows, max(5, round(MILLION_RARE_SHARE * rows)), MILLION_LABELS)
        model = RACH(C2=MILLION_PRICE, kernel=kernel, random_state=0)
        held = process_memory.resident()
        process_memory.reset_peak()
        model, seconds = _timed(lambda m=model, X=X, y=y: m.fit(X, y))
        beyond = process_memory.peak() - held
        is_free = y < 0
        taken = (model.transduction_ == 1) & is_free
        hits = int((taken & (truth == 1)).sum())
        found.append(
            {
                "kernel": kernel,
                "seconds": seconds,
                "beyond_mib": beyond / 2**20,
                "kept": len(model.rows_),
                "taken": int(taken.sum()),
                "hits": hits,
                "hidden": int((truth[is_free] == 1).sum()),
                "status": str(model.status_),
            }
        )
    return {"rows": rows, "features": FEATURES, "C2": MILLION_PRICE, "fits": found}


GOAL_HEADER = ["what", "measured", "goal, at most", "reached"]


def goal_lines(parts: dict[str, Any]) -> list[list[str]]:
    """What was measured beside its goals."""
    found = []
    if "projection" in parts:
        one = parts["projection"]
        found.append((f"projection of {one['rows']:,}, s", one["seconds"], PROJECTION_GOAL))
    if "kept" in parts:
        one = parts["kept"]
        for kernel in (None, "gaussian"):
            slowest = max(fit["seconds"] for fit in one["fits"] if fit["kernel"] == kernel)
            what = f"fit, {one['rows']:,} rows kept, kernel {kernel or 'none'}, slowest price, s"
            found.append((what, slowest, KEPT_GOAL))
    for run in parts.get("filter", {}).get("runs", []):
        for count in sorted(LANDMARKS, reverse=True):
            ratio = run["seconds"]["filter"] / run["seconds"][f"pass {count}"]
            what = (
                f"filter / kernel pass with {count} landmark(s), {run['dtype']}, "
                f"{run['threads']} thread(s)"
            )
            found.append((what, ratio, FILTER_GOAL))
    return [
        [what, f"{value:.2f}", f"{goal:g}", "yes" if value <= goal else "**no**"]
        for what, value, goal in found
    ]


KEPT_HEADER = ["fit", "C2", "s", "outer steps", "status", "gap", "taken for rare"]


def kept_lines(part: dict[str, Any]) -> list[list[str]]:
    """Each fit, as KEPT_HEADER names the columns."""
    return [
        [
            f"kernel {fit['kernel'] or 'none'}",
            f"{fit['C2']:g}",
            f"{fit['seconds']:.2f}",
            str(fit["steps"]),
            fit["status"],
            f"{fit['gap']:.0e}",
            f"{fit['inside']:,}",
        ]
        for fit in part["fits"]
    ]


FILTER_HEADER = ["rows", "threads", "filter s", *(f"pass, {k} landmark(s), s" for k in LANDMARKS)]


def filter_lines(part: dict[str, Any]) -> list[list[str]]:
    """The filter and the passes, as FILTER_HEADER names the columns."""
    return [
        [
            f"{part['rows']:,} x {FEATURES} {run['dtype']}",
            str(run["threads"]),
            *(f"{seconds:.3f}" for seconds in run["seconds"].values()),
        ]
        for run in part["runs"]
    ]


MILLION_HEADER = ["fit", "s", "MiB beyond the rows", "rows kept", "precision", "recall", "status"]


def million_lines(part: dict[str, Any]) -> list[list[str]]:
    """The fits from a handful of labels, as MILLION_HEADER names the columns."""
    return [
        [
            f"{part['rows']:,} x {part['features']}, kernel {fit['kernel'] or 'none'}",
            f"{fit['seconds']:.1f}",
            f"{fit['beyond_mib']:,.0f}",
            f"{fit['kept']:,}",
            f"{fit['hits'] / max(fit['taken'], 1):.2f}",
            f"{fit['hits'] / max(fit['hidden'], 1):.2f}",
            fit["status"],
        ]
        for fit in part["fits"]
    ]


def tables(parts: dict[str, Any]) -> list[tuple[list[str], list[list[str]]]]:
    """All tables of what was measured."""
    made = [(GOAL_HEADER, goal_lines(parts))]
    for name, header, lines in (
        ("kept", KEPT_HEADER, kept_lines),
        ("filter", FILTER_HEADER, filter_lines),
        ("million", MILLION_HEADER, million_lines),
    ):
        if name in parts:
            made.append((header, lines(parts[name])))
    return made


def main(argv: list[str] | None = None) -> int:
    """Measure, print beside the goals, write results/rach_speed.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.rach_speed", description=__doc__)
    parser.add_argument("--what", choices=["all", *PARTS], default="all")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=1_000_000, help="of all parts but kept")
    parser.add_argument("--kept-rows", type=int, default=KEPT_ROWS)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2], help="of the filter")
    parser.add_argument("--json", metavar="FILE", help="default: results/rach_speed.json")
    args = parser.parse_args(argv)
    file = Path(args.json) if args.json else record.RESULTS / "rach_speed.json"
    # What is not measured this time stays in the file, with its own date.
    parts = json.loads(file.read_text())["parts"] if file.is_file() else {}
    for what in PARTS:
        if args.what in ("all", what):
            print(f"Measuring: {what}", file=sys.stderr, flush=True)
            parts[what] = _measure(what, args) | {"date": record.environment()["date"]}
    for header, lines in tables(parts):
        print_table(header, lines)
        print()
    print("written:", record.write("rach_speed", {"parts": parts}, file))
    return 0


def _measure(what: str, args: argparse.Namespace) -> dict[str, Any]:
    if what == "projection":
        return projection(args.rows, args.repeats)
    if what == "kept":
        return kept(args.kept_rows, args.repeats)
    if what == "filter":
        runs = [run for threads in args.threads for run in near(args.rows, threads, args.repeats)]
        return {"rows": args.rows, "runs": runs}
    return million(args.rows)


def _fastest(way: Callable[[], Any], repeats: int) -> tuple[Any, float]:
    found, fastest = _timed(way)
    for _ in range(repeats - 1):
        if fastest <= LONG_SECONDS:
            fastest = min(fastest, _timed(way)[1])
    return found, fastest


def _timed(way: Callable[[], Any], threads: int | None = None) -> tuple[Any, float]:
    with warnings.catch_warnings(), threadpool_limits(threads):
        # The tables have the status, and balls at odd prices are odd on purpose.
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.simplefilter("ignore", UserWarning)
        start = time.perf_counter()
        found = way()
        return found, time.perf_counter() - start


if __name__ == "__main__":
    sys.exit(main())
