"""Exact AUC against scikit-learn's `roc_auc_score`: `python -m benchmarks.auc_speed`.

10 million rows, normal scores with the rare ones one standard deviation higher, 0.1, 10 and 50 %
of the rows rare, without and with weights; and, at 0.1 and 50 %, the scores rounded to one digit,
so that nearly every row is tied. All calls run in one process on one thread, in turns. Goal:
`roc_auc` takes at most a third of scikit-learn's time. `roc_auc_interval` has no peer there and is
timed beside them.
"""

import argparse
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.metrics import roc_auc_score

from benchmarks import record
from rareclass.metrics import roc_auc, roc_auc_interval

GOAL = 1.0 / 3.0
CASES = [(0.001, False), (0.001, True), (0.1, False), (0.5, False), (0.5, True)]
CALLS: dict[str, Callable[..., Any]] = {
    "roc_auc_score": roc_auc_score,
    "roc_auc": roc_auc,
    "roc_auc_interval": roc_auc_interval,
}


def sample(
    rows: int, rare_share: float, ties: bool, weighted: bool
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Labels 0 and 1, scores, and weights between 0.5 and 2 or None."""
    rng = np.random.default_rng(0)
    y = (rng.random(rows) < rare_share).astype(np.int64)
    y[:2] = 0, 1
    scores = rng.normal(size=rows) + y
    weight = rng.uniform(0.5, 2.0, rows) if weighted else None
    return y, np.round(scores, 1) if ties else scores, weight


def measure(
    y: np.ndarray, scores: np.ndarray, weight: np.ndarray | None, repeats: int
) -> dict[str, Any]:
    """Seconds of each call, least and median; ratios; how far the two AUCs are apart."""
    seconds: dict[str, list[float]] = {name: [] for name in CALLS}
    values: dict[str, Any] = {}
    for _ in range(repeats):
        for name, call in CALLS.items():
            start = time.perf_counter()
            values[name] = call(y, scores, sample_weight=weight)
            seconds[name].append(time.perf_counter() - start)
    least = {name: min(each) for name, each in seconds.items()}
    median = {name: float(np.median(each)) for name, each in seconds.items()}
    return {
        "seconds_min": least,
        "seconds_median": median,
        "ratio": least["roc_auc"] / least["roc_auc_score"],
        "ratio_of_medians": median["roc_auc"] / median["roc_auc_score"],
        "auc": values["roc_auc"],
        "auc_difference": abs(values["roc_auc"] - values["roc_auc_score"]),
    }


def line(row: dict[str, Any]) -> str:
    """One case in words."""
    what = f"{row['rare_share']:.1%} rare{', ties' if row['ties'] else ''}"
    what += ", weighted" if row["weighted"] else ""
    times = ", ".join(
        f"{name} {row['seconds_min'][name]:.2f} s (median {row['seconds_median'][name]:.2f})"
        for name in CALLS
    )
    reached = "yes" if row["ratio"] <= GOAL else "NO"
    return (
        f"{what}: {times}; ratio {row['ratio']:.3f}, of medians {row['ratio_of_medians']:.3f}, "
        f"goal <= {GOAL:.3f}: {reached}; AUCs {row['auc_difference']:.0e} apart"
    )


def main() -> int:
    """Measure, print, write results/auc_speed.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.auc_speed", description=__doc__)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", metavar="FILE", help="default: results/auc_speed.json")
    args = parser.parse_args()
    for weighted in (False, True):  # compiled code is loaded, not measured
        y, scores, weight = sample(600_000, 0.5, False, weighted)
        roc_auc(y, scores, weight)
    rows = []
    for rare_share, ties in CASES:
        for weighted in (False, True):
            case = {"rare_share": rare_share, "ties": ties, "weighted": weighted}
            row = case | measure(*sample(args.rows, **case), args.repeats)
            rows.append(row)
            print(line(row), flush=True)
    parameters = {"rows": args.rows, "repeats": args.repeats}
    body = {"parameters": parameters, "goal": GOAL, "rows": rows}
    print("written:", record.write("auc_speed", body, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
