"""Figure 6: intrusion detection, KDD Cup 99, as the training part grows (section 6.3).

5 to 75 percent of the training rows, the rest chooses lam; all of them with the lam that the same
method chose on the largest part below (no rows are left to choose on). Each method and part runs
in a process of its own, with a limit on its time for the whole path of lam: a method that does not
finish is left out at the larger parts too, as SVM-W is in the paper beyond 50 percent.

The paper trains on the whole of the KDD Cup data, 1,074,975 distinct rows; the data folder has the
10 percent file that KDD published, so that 100 percent here is a seventh of the paper's. The parts,
folds and random landmarks are drawn anew for each seed; runs are stored as they come.

Seconds are those of one fit from scratch at the chosen lam, and of the path with its choice.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import markdown
from benchmarks.ledger import Ledger, Run
from benchmarks.paper_tables import intrusion
from benchmarks.paper_tables.methods import METHODS, RANKING, Chosen, choose_on_validation
from benchmarks.paper_tables.protocol import auc, data_folder, mean_and_error
from benchmarks.paper_tables.study import figure, options, parameters
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


def main(argv: Sequence[str], table: str) -> Path | None:
    """Run what is not stored yet, write results/fig6.json."""
    args = options(
        __doc__, SHOWN, argv,
        percents=(["5", "10", "25", "50", "75", "100"], "parts of the training rows"),
        dtype=("float64", "float64 or float32"),
        seeds=(5, "draws of the parts, folds and random landmarks (default: 5)"),
        limit=(240.0, "seconds for one method on one part (default: 240)"),
    )  # fmt: skip
    folder = data_folder()
    if folder is None or not intrusion.is_there(folder):
        print("Skipped: the KDD Cup 99 files are not in the data folder (RARECLASS_DATA).")
        return None
    percents = sorted({float(text) for text in args.percents})
    if percents == [100.0]:
        percents = [75.0, 100.0]  # the choice of lam for all rows needs a smaller part
    ledger = Ledger("fig6", args.json, parameters(args))
    with track("Figure 6", total=args.seeds * len(args.methods) * len(percents)) as advance:
        for seed in range(args.seeds):
            for method in args.methods:
                _grow(folder, method, percents, seed, args, ledger, advance)
    return ledger.path


def _grow(
    folder: Path,
    method: str,
    percents: list[float],
    seed: int,
    args: Any,
    ledger: Ledger,
    advance: Any,
) -> None:
    """One method on growing parts, until it no longer finishes."""
    lam, finishes = None, True
    for percent in percents:
        key = f"{method} / {percent:g} %"
        if not ledger.has(key, seed, args.limit):
            outcome = None
            if finishes:
                at = lam if percent == 100.0 else None
                job = Job(folder, method, percent, seed, args.dtype, at)
                outcome = call_within(args.limit, run_job, job)
            status = (
                {"status": "stopped", "limit": args.limit}
                if outcome is None
                else {"status": "ok", **outcome}
            )
            ledger.add(key, seed, {"method": method, "percent": percent}, status)
        run = next(one for one in ledger.of(key) if one["repeat"] == seed)
        finishes = run["status"] == "ok"
        lam = 2.0 ** run["log2_lam"] if finishes else None
        advance(note=f"{method} {percent:g} %")


def _divide(rare: np.ndarray, percent: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Row numbers of the training part and of the rest, both with their share of rare rows."""
    everything = np.arange(len(rare))
    if percent == 100.0:
        return everything, everything[:0]
    shuffle = StratifiedShuffleSplit(1, train_size=percent / 100.0, random_state=seed)
    part, held = next(shuffle.split(everything, rare))
    return np.sort(part), np.sort(held)


HEADER = [
    "method",
    "part",
    "AUC",
    "AP",
    "log2 lam",
    "fit s",
    "choosing lam s",
    "landmarks",
    "seeds",
]


def lines(runs: Sequence[Run]) -> list[list[str]]:
    """One line a method and part: means over the seeds that finished, ± standard errors."""
    found = []
    for key in dict.fromkeys(run["key"] for run in runs):
        own = [run for run in runs if run["key"] == key]
        done = [run for run in own if run["status"] == "ok"]
        name = [own[0]["method"], f"{own[0]['percent']:g} %"]
        if not done:
            found.append([*name, "did not finish", *[""] * 5, str(len(own))])
            continue
        lams = sorted(run["log2_lam"] for run in done)
        choice = [run["choice_seconds"] for run in done if run["choice_seconds"] is not None]
        found.append(
            [
                *name,
                figure(mean_and_error([run["auc"] for run in done])),
                figure(mean_and_error([run["average_precision"] for run in done])),
                f"{lams[0]:.0f}" if lams[0] == lams[-1] else f"{lams[0]:.0f} to {lams[-1]:.0f}",
                f"{np.mean([run['fit_seconds'] for run in done]):.1f}",
                f"{np.mean(choice):.0f}" if choice else "-",
                f"{np.mean([run['landmarks'] for run in done]):,.0f}",
                str(len(done)) if len(done) == len(own) else f"{len(done)} of {len(own)}",
            ]
        )
    return found


def fig6_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    rows = max(run["train_rows"] for run in result["runs"] if run["status"] == "ok")
    return (
        "Attacks U2R and R2L against all other connections, duplicate rows dropped. The "
        f"training rows are the {rows:,} distinct ones of the 10 percent file that KDD published "
        "(the paper has 1,074,975); "
        "test rows are the 77,291 distinct ones of the later weeks. lam is chosen on the rows left "
        "out of the part. Means over seeds, each with its own part, folds and random landmarks, ± "
        f"standard error. A method gets {result['parameters']['limit']:.0f} s a part.\n\n"
        + markdown.table(HEADER, lines(result["runs"]))
    )
