"""Rows a second of every online learner, and its memory: `python -m benchmarks.online_speed`.

Rate: `partial_fit` in batches on one thread, input checks included, after compiling and after the
first rows, buffers 50 + 50. Of CBR also the share of pairs that make a step when the stream has
been learned: a pair without one is much cheaper, so a rate says little without it. Rows per
processor second stand beside rows a second, because others may be at work on the machine. Goals:
CBR full 500,000 rows/s at 8 features and 60,000 at 54, CBR diagonal 20,000 on text of 100 words of
50,000, OPAUC 150,000 at 54.

Memory: each learner in a process of its own takes 10 million rows made block by block; what the
process holds after the first million and at the end. Goal: less than 16 MiB between them.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from threadpoolctl import threadpool_limits

from benchmarks import online_streams, process_memory, record
from benchmarks.online_streams import Stream
from benchmarks.paper_tables.cbr_methods import BUFFER
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table
from benchmarks.paper_tables.time_limit import call_within
from rareclass import online
from rareclass.metrics import roc_auc

BATCH = 10_000
WARM_SHARE = 0.05
MOST_SECONDS = 20.0  # a slower learner sees the head of the stream only
MEMORY_ROWS, MEMORY_FIRST, MEMORY_BLOCK = 10_000_000, 1_000_000, 50_000
MEMORY_GOAL_MIB = 16.0
MEMORY_LIMIT_SECONDS = 1800.0

LEARNERS: dict[str, tuple[str, dict[str, Any]]] = {
    "CBR full, fifo": ("CBR", {"policy": "fifo"}),
    "CBR full, reservoir": ("CBR", {"policy": "reservoir"}),
    "CBR diagonal": ("CBR", {"covariance": "diagonal"}),
    "OAM sequential": ("OAM", {"update": "sequential", "C": 0.1}),
    "OAM gradient": ("OAM", {"update": "gradient", "C": 0.1}),
    "OPAUC": ("OPAUC", {"eta": 0.01, "lam": 1e-4}),
    "OPAUC, rank 50": ("OPAUC", {"eta": 0.01, "lam": 1e-4, "rank": 50}),
    "AdaOAM": ("AdaOAM", {"eta": 0.1, "lam": 1e-4, "delta": 0.5}),
    "UniExp": ("UniExp", {"eta": 0.01}),
}
RATE_HEADER = [
    "stream", "learner", "rows/s", "goal", "reached", "rows/processor s", "pairs that step", "AUC",
]  # fmt: skip
_TEXT = ("CBR diagonal", "OAM sequential", "OAM gradient", "OPAUC, rank 50", "UniExp")


class Case(NamedTuple):
    """A learner on a stream, and the rows a second that it is to reach."""

    stream: str
    learner: str
    goal: float | None = None


CASES = [
    Case("cod_rna, d = 8", "CBR full, fifo", 500_000),
    Case("cod_rna, 1 % rare, d = 8", "CBR full, fifo", 500_000),
    Case("mixture, 1 % rare, d = 8", "CBR full, fifo", 500_000),
    Case("like covtype, d = 54", "CBR full, fifo", 60_000),
    Case("like covtype, d = 54", "OPAUC", 150_000),
    Case("text, 100 of 50,000", "CBR diagonal", 20_000),
    *(
        Case("like covtype, d = 54", name)
        for name in LEARNERS
        if name not in ("CBR full, fifo", "OPAUC")
    ),
    *(Case("text, 100 of 50,000", name) for name in _TEXT if name != "CBR diagonal"),
]


def learner(name: str) -> Any:
    """A learner that has seen nothing, with its parameters of LEARNERS."""
    kind, own = LEARNERS[name]
    own = {"buffer_size": BUFFER, **own} if kind in ("CBR", "OAM") else own
    return getattr(online, kind)(random_state=0, **own)


def streams(rows: int, folder: Path | None) -> dict[str, Callable[[], Stream]]:
    """How each stream is made; those of real rows only where the data folder is there."""
    made: dict[str, Callable[[], Stream]] = {
        "mixture, 1 % rare, d = 8": lambda: online_streams.mixture(rows),
        "like covtype, d = 54": lambda: online_streams.like_covtype(rows),
        "text, 100 of 50,000": lambda: online_streams.text(max(rows // 20, 100)),
    }
    if folder is not None:
        made["cod_rna, d = 8"] = lambda: _head(online_streams.cod_rna(folder), rows)
        made["cod_rna, 1 % rare, d = 8"] = lambda: _head(online_streams.cod_rna(folder, 0.01), rows)
    return made


def _head(stream: Stream, rows: int) -> Stream:
    return Stream(stream.X[:rows], stream.y[:rows])


def rate(name: str, stream: Stream, repeats: int) -> dict[str, Any]:
    """Rows a second, the best of the repeats; AUC on the rows that came last, not learned."""
    n = len(stream.y)
    warm, last = max(2, int(WARM_SHARE * n)), n - max(2, int(WARM_SHARE * n))
    rates, by_processor = [], []
    for _ in range(repeats):
        model = learner(name)
        _feed(model, stream, 0, warm)  # compiled code is loaded, buffers are full
        seconds, processor, rows = _feed(model, stream, warm, last, MOST_SECONDS)
        rates.append(rows / seconds)
        by_processor.append(rows / processor)
    held = _part(stream, last, n)
    found = {
        "rows_per_second": max(rates),
        "rows_per_processor_second": max(by_processor),
        "rates": rates,
        "rows": rows,
    }
    if 0 < held.y.sum() < len(held.y):
        found["auc"] = roc_auc(held.y, model.score_samples(held.X))
    return found | ({"step_share": step_share(model, held)} if name.startswith("CBR") else {})


def step_share(model: Any, rows: Stream, most: int = 200) -> float:
    """Share of pairs (row, buffered row of the other class) that CBR would make a step for now.

    A step is made where ``phi sqrt(v) > y mu.z``, v being ``z' S z`` or, of a diagonal,
    ``sum z_i^2 / (G_i + C)``. The pairs are formed one by one here, from the state: nothing is
    learned.
    """
    state, phi = model.state_, NormalDist().inv_cdf(model.eta)
    buffered = buffered_rows(model)
    made = pairs = 0
    for k in range(min(most, len(rows.y))):
        x = rows.X[[k]].toarray()[0] if sparse.issparse(rows.X) else rows.X[k]
        z = x - buffered[1 - rows.y[k]]
        if model.covariance == "full":
            v = np.einsum("ij,ij->i", z @ state.covariance, z)
        else:
            v = z**2 @ (1.0 / (state.precision + model.C))
        margin = (2 * rows.y[k] - 1) * (z @ state.mean)
        made += int((phi * np.sqrt(np.maximum(v, 0.0)) > margin).sum())
        pairs += len(z)
    return made / max(pairs, 1)


def buffered_rows(model: Any) -> list[np.ndarray]:
    """The rows that CBR holds of the majority and of the rare class, dense."""
    buffers = model.state_.buffers
    filled = np.minimum(buffers.seen, model.buffer_size)
    if model.covariance == "full":
        return [buffers.rows[k, :, : filled[k]].T for k in (0, 1)]
    dense = [np.zeros((n, model.n_features_in_)) for n in filled]
    for k in (0, 1):
        for b in range(filled[k]):
            used = slice(buffers.lengths[k, b])
            dense[k][b, buffers.indices[k, b, used]] = buffers.values[k, b, used]
    return dense


def memory(name: str, rows: int, first: int, block: int) -> dict[str, Any]:
    """MiB that the process holds after the first rows and at the end."""
    with threadpool_limits(1):
        model, seen, early = learner(name), 0, 0
        start = time.perf_counter()
        for part in online_streams.blocks(rows, block):
            model.partial_fit(part.X, part.y, classes=[0, 1])
            seen += len(part.y)
            if seen >= first and not early:
                early = process_memory.resident()
        end = process_memory.resident()
    return {
        "rows": seen,
        "seconds": time.perf_counter() - start,
        "first_mib": early / 2**20,
        "last_mib": end / 2**20,
        "growth_mib": (end - early) / 2**20,
    }


def main(argv: list[str] | None = None) -> int:
    """Measure, print beside the goals, write results/online_speed.json and online_memory.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.online_speed", description=__doc__)
    parser.add_argument("--rows", type=int, default=online_streams.COVTYPE_ROWS)
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--what", choices=["all", "rate", "memory"], default="all")
    parser.add_argument("--memory-rows", type=int, default=MEMORY_ROWS)
    parser.add_argument("--learners", nargs="+", choices=list(LEARNERS), default=list(LEARNERS))
    parser.add_argument("--folder", metavar="DIR", help="of the JSON files; default: results")
    args = parser.parse_args(argv)
    parameters = {k: v for k, v in vars(args).items() if k not in ("folder", "what")}
    folder = Path(args.folder) if args.folder else record.RESULTS
    for name, what, measure in (
        ("online_speed", "rate", _all_rates),
        ("online_memory", "memory", _all_memory),
    ):
        if args.what in ("all", what):
            body = {"parameters": parameters, "rows": measure(args)}
            print("written:", record.write(name, body, folder / f"{name}.json"))
    return 0


def _all_rates(args: argparse.Namespace) -> list[dict[str, Any]]:
    makers = streams(args.rows, data_folder())
    rows, lines, made = [], [], {}
    for case in CASES:
        if case.learner not in args.learners:
            continue
        if case.stream not in makers:
            print(f"Skipped: {case.stream} is not in the data folder (RARECLASS_DATA).")
            continue
        if case.stream not in made:
            made = {case.stream: makers[case.stream]()} | made
        with threadpool_limits(1):
            found = case._asdict() | rate(case.learner, made[case.stream], args.repeats)
        rows.append(found)
        lines.append(rate_line(found))
        print("  ".join(lines[-1]), file=sys.stderr, flush=True)
    print_table(RATE_HEADER, lines)
    return rows


def rate_line(found: dict[str, Any]) -> list[str]:
    """One case beside its goal, as RATE_HEADER names the columns."""
    goal, got = found["goal"], found["rows_per_second"]
    reached = "-" if goal is None else "yes" if got >= goal else "NO"
    return [
        found["stream"],
        found["learner"],
        f"{got:,.0f}",
        "-" if goal is None else f"{goal:,.0f}",
        reached,
        f"{found['rows_per_processor_second']:,.0f}",
        f"{found['step_share']:.1%}" if "step_share" in found else "-",
        f"{found['auc']:.3f}" if "auc" in found else "-",
    ]


def _all_memory(args: argparse.Namespace) -> list[dict[str, Any]]:
    first = min(MEMORY_FIRST, args.memory_rows // 2)
    rows = []
    for name in args.learners:
        asked = (args.memory_rows, first, min(MEMORY_BLOCK, first))
        found = call_within(MEMORY_LIMIT_SECONDS, memory, name, *asked)
        rows.append({"learner": name} | (found or {"rows": 0}))
    lines = [
        [r["learner"], f"{r['first_mib']:.1f}", f"{r['last_mib']:.1f}", f"{r['growth_mib']:+.1f}",
         f"{MEMORY_GOAL_MIB:.0f}", "yes" if r["growth_mib"] < MEMORY_GOAL_MIB else "NO",
         f"{r['seconds']:.0f}"]
        if r["rows"] else [r["learner"], *["did not finish"] * 1, *["-"] * 5]
        for r in rows
    ]  # fmt: skip
    header = [f"after {first:,} rows MiB", f"after {args.memory_rows:,}", "growth", "goal, under"]
    print_table(["memory", *header, "reached", "s"], lines)
    return rows


def _feed(
    model: Any, stream: Stream, start: int, stop: int, most: float = np.inf
) -> tuple[float, float, int]:
    """Learn rows from start on for at most so long: seconds, processor seconds, rows."""
    seconds, processor, done = 0.0, 0.0, start
    for first in range(start, stop, BATCH):
        part = _part(stream, first, min(first + BATCH, stop))
        begin, used = time.perf_counter(), time.process_time()
        model.partial_fit(part.X, part.y, classes=[0, 1])
        seconds += time.perf_counter() - begin
        processor += time.process_time() - used
        done += len(part.y)
        if seconds > most:
            break
    return seconds, processor, done - start


def _part(stream: Stream, start: int, stop: int) -> Stream:
    return Stream(stream.X[start:stop], stream.y[start:stop])


if __name__ == "__main__":
    sys.exit(main())
