"""Figure 6: intrusion detection, KDD Cup 99, as the training part grows (section 6.3).

5 to 75 percent of the training rows, the rest chooses lam; all of them with the lam that the same
method chose on the largest part below (no rows are left to choose on). Each method and part runs
in a process of its own, with a limit on its time for the whole path of lam: a method that does not
finish is left out at the larger parts too, as SVM-W is in the paper beyond 50 percent.

Seconds are those of one fit from scratch at the chosen lam, and of the path with its choice.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import record
from benchmarks.paper_tables import intrusion
from benchmarks.paper_tables.methods import METHODS, RANKING, Chosen, choose_on_validation
from benchmarks.paper_tables.protocol import auc, data_folder
from benchmarks.paper_tables.study import options, parameters, print_table
from benchmarks.paper_tables.time_limit import call_within
from rareclass.machine import track

SHOWN = ("RankRC", "RANK-RND", "SVM", "SVM-RUS", "SVM-W")


class Job(NamedTuple):
    """One method on one part of the training rows. lam None: choose it on the other rows."""

    folder: Path
    method: str
    percent: float
    seed: int
    dtype: str
    lam: float | None


def run_job(job: Job) -> dict[str, Any]:
    """Test AUC and average precision, seconds, chosen lam and number of landmarks."""
    train, test = intrusion.load(job.folder)
    part, held = _divide(train.rare, job.percent, job.seed)
    X, (X_held, X_test) = intrusion.features(
        train.rows(part), [train.rows(held), test], job.seed, np.dtype(job.dtype).type
    )
    y = train.rare[part]
    if job.method in RANKING:
        few = np.concatenate([np.flatnonzero(y)[:20], np.flatnonzero(y == 0)[:500]])
        METHODS[job.method](X[few], y[few], [1.0], job.seed)  # loads compiled code, unmeasured
    along: dict[str, Any] = {}
    lam, stopped, choice_seconds = job.lam, 0, None
    if lam is None:
        start = time.perf_counter()
        chosen = choose_on_validation(job.method, (X, y), (X_held, train.rare[held]), job.seed)
        choice_seconds, lam, stopped = time.perf_counter() - start, chosen.param, chosen.stopped
        along = _along_lam(chosen, X_test, test.rare)
    start = time.perf_counter()
    path = METHODS[job.method](X, y, [lam], job.seed)
    fit_seconds = time.perf_counter() - start
    scores = Chosen(path, 0, path.stopped).scores(X_test)
    return {
        "auc": 100.0 * roc_auc_score(test.rare, scores),
        "average_precision": 100.0 * average_precision_score(test.rare, scores),
        "log2_lam": float(np.log2(lam)),
        "fit_seconds": fit_seconds,
        "choice_seconds": choice_seconds,
        "landmarks": path.sizes[0],
        "stopped": stopped + path.stopped,
        "train_rows": len(y),
        "rare_rows": int(y.sum()),
        **along,
    }


def _along_lam(chosen: Chosen, X_test: np.ndarray, y_test: np.ndarray) -> dict[str, Any]:
    """AUC at every lam, held-out rows and test rows: to see what the choice cost, not to choose."""
    params = chosen.path.params
    return {
        "log2_lams": np.log2(params).tolist(),
        "held_out_auc_by_lam": list(chosen.tried),
        "test_auc_by_lam": auc(y_test, chosen.path.scores(X_test, range(len(params)))).tolist(),
    }


def main(argv: Sequence[str]) -> int:
    """Run, print as it goes, write results/fig6.json."""
    args = options(
        __doc__, SHOWN, argv,
        percents=(["5", "10", "25", "50", "75", "100"], "parts of the training rows"),
        dtype=("float64", "float64 or float32"),
        seed=(0, "of the parts, folds and random landmarks"),
        limit=(1800.0, "seconds for one method on one part (default: 1800)"),
    )  # fmt: skip
    folder = data_folder()
    if folder is None or not intrusion.is_there(folder):
        print("Skipped: the KDD Cup 99 files are not in the data folder (RARECLASS_DATA).")
        return 0
    percents = sorted({float(text) for text in args.percents})
    if percents == [100.0]:
        percents = [75.0, 100.0]  # the choice of lam for all rows needs a smaller part
    rows = []
    with track("Figure 6", total=len(args.methods) * len(percents)) as advance:
        for method in args.methods:
            rows += _grow(folder, method, percents, args, advance)
    header = ["method, part", "AUC", "AP", "log2 lam", "fit s", "choice s", "landmarks", "GiB"]
    print_table(header, [_line(row) for row in rows])
    path = record.write("fig6", {"parameters": parameters(args), "rows": rows}, args.json)
    print("written:", path)
    return 0


def _grow(
    folder: Path, method: str, percents: list[float], args: Any, advance: Any
) -> list[dict[str, Any]]:
    """One method on growing parts, until it no longer finishes."""
    rows: list[dict[str, Any]] = []
    lam, finishes = None, True
    for percent in percents:
        outcome = None
        if finishes:
            at = lam if percent == 100.0 else None
            job = Job(folder, method, percent, args.seed, args.dtype, at)
            outcome = call_within(args.limit, run_job, job)
        finishes = outcome is not None
        if outcome is not None:
            lam = 2.0 ** outcome["log2_lam"]
        rows.append({"method": method, "percent": percent, "finished": finishes, **(outcome or {})})
        advance(note=f"{method} {percent:g} %")
    return rows


def _divide(rare: np.ndarray, percent: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training part and of the rest, both with their share of rare rows."""
    everything = np.arange(len(rare))
    if percent == 100.0:
        return everything, everything[:0]
    shuffle = StratifiedShuffleSplit(1, train_size=percent / 100.0, random_state=seed)
    part, held = next(shuffle.split(everything, rare))
    return np.sort(part), np.sort(held)


def _line(row: dict[str, Any]) -> list[str]:
    name = f"{row['method']} {row['percent']:g} %"
    if not row["finished"]:
        return [name, "did not finish", *[""] * 6]
    choice = row["choice_seconds"]
    return [
        name,
        f"{row['auc']:.1f}",
        f"{row['average_precision']:.1f}",
        f"{row['log2_lam']:.0f}",
        f"{row['fit_seconds']:.1f}",
        "-" if choice is None else f"{choice:.1f}",
        str(row["landmarks"]),
        f"{row['peak_gib']:.1f}",
    ]
