"""Average precision against seconds: `python -m benchmarks.anytime`.

`RareClassifier` with each effort, AutoGluon (best quality) with one time budget after the other,
CatBoost with more and more trees, and LightGBM, on the first split of 12 sets of
`benchmarks.tabular`; one thread each. Seconds are those of fit and scores by the wall clock, in a
process that has learned a small table before. AutoGluon has an environment of its own
(`make automl-env`): its seconds are those of the fit alone. Fits are stored as they come and not
done again.
"""

import argparse
import sys
import time
import warnings
from collections.abc import Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import markdown, other_work, record
from benchmarks.ledger import Ledger, Run
from benchmarks.paired_test import Paired, paired_peers
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.tabular import sets
from benchmarks.tabular.automl import python_of
from benchmarks.tabular.learners import LEARNERS, Learner
from benchmarks.tabular.measure import fit_with
from rareclass.ensemble.plan import EFFORTS

SETS = (
    "abalone7", "mammograph", "coil", "euthyroid", "bank_marketing", "cod_rna",
    "wine4", "satellite", "spambase", "give_me_some_credit", "shuttle", "kdd",
)  # fmt: skip
AUTOGLUON_BUDGETS = (30.0, 60.0)  # with 10 it can end without a model
CATBOOST_TREES = (100, 300, 1000)
THREADS = 1
HEADER = ["fit", "sets", "average precision", "AUC", "median seconds", "most"]


LIBRARIES = ("RareClassifier", "AutoGluon", "CatBoost", "LightGBM")
PEERS = (
    "LightGBM",
    "LightGBM, 400 slow trees",
    *(f"CatBoost, {trees} trees" for trees in CATBOOST_TREES),
)


def learner_of(method: str) -> tuple[Learner, dict[str, Any]]:
    """The method of `benchmarks.tabular`, with its settings, of "CatBoost, 100 trees" and such."""
    library, _, given = method.partition(", ")
    if library == "LightGBM":
        return LEARNERS["lightgbm_slow" if given else "lightgbm"], {}
    if library == "RareClassifier":
        return LEARNERS["rareclass"], {"effort": given}
    number = int(given.partition(" ")[0])
    if library == "AutoGluon":
        return LEARNERS["autogluon"], {"time_budget": number}
    return LEARNERS["catboost"], {"iterations": number}


def measure(set_name: str, method: str, folder: Path) -> Run:
    """Average precision and AUC on the test rows, seconds, and disturbance."""
    rows = sets.load(set_name, folder)
    train, test = sets.split(rows, 0)
    (X, y), (new, rare) = rows.part(train), rows.part(test)
    learner, settings = learner_of(method)
    before, start = other_work.now(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            fitted = fit_with(settings, learner, X, y, 0)
            scores = fitted.scores(new)
        except RuntimeError as error:  # of AutoGluon, whose time was over before it had a model
            return {"status": "failed", "error": str(error)}
    seconds = fitted.details.get("seconds", time.perf_counter() - start)
    return {
        "status": "ok",
        "average_precision": float(average_precision_score(rare, scores)),
        "auc": float(roc_auc_score(rare, scores)),
        "seconds": seconds,
        "cores_of_others": other_work.cores_of_others(before, other_work.now()),
    }


def by_method(runs: Sequence[Run]) -> dict[str, dict[str, Run]]:
    """Method: set: finished run."""
    found: dict[str, dict[str, Run]] = {run["method"]: {} for run in runs}
    for run in runs:
        if run["status"] == "ok":
            found[run["method"]][run["set"]] = run
    return found


def whole_sets(of: dict[str, dict[str, Run]]) -> list[str]:
    """The sets that every method has a model of."""
    return [name for name in SETS if all(name in own for own in of.values())]


def leads(runs: Sequence[Run], ours: str) -> dict[str, Paired]:
    """A fit of RareClassifier minus each peer in points of average precision, over whole sets."""
    of = by_method(runs)
    points = {
        method: np.array([100.0 * own[name]["average_precision"] for name in whole_sets(of)])
        for method, own in of.items()
    }
    peers = {name: own for name, own in points.items() if not name.startswith("RareClassifier")}
    return paired_peers({name: points[ours] - own for name, own in peers.items()})


def lines(runs: Sequence[Run]) -> list[list[str]]:
    """A line a method: means over the sets that every method has a model of."""
    of = by_method(runs)
    whole, found = whole_sets(of), []
    for method in of if whole else ():
        own = [of[method][name] for name in whole]
        means = [f"{100 * fmean(r[key] for r in own):.2f}" for key in ("average_precision", "auc")]
        seconds = [run["seconds"] for run in own]
        figures = [f"{median(seconds):.1f}", f"{max(seconds):.1f}"]
        found.append([method, str(len(whole)), *means, *figures])
    return found


def anytime_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    of = by_method(result["runs"])
    by_set = [
        [
            s,
            *(
                f"{100 * own[s]['average_precision']:.1f}" if s in own else "-"
                for own in of.values()
            ),
        ]
        for s in SETS
    ]
    return (
        "What effort and seconds buy: one split of each set, one thread, means in percent, "
        "seconds of fit and scores by the wall clock (of AutoGluon, of the fit alone). A dash "
        "stands where a library ended without a model; such sets are left out of the means.\n\n"
        + markdown.table(HEADER, lines(result["runs"]))
        + "\n\nAverage precision, set by set:\n\n"
        + markdown.table(["set", *of], by_set)
    )


def main(argv: list[str] | None = None) -> int:
    """Run what is not stored yet, print, write results/anytime.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anytime", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="SET", default=list(SETS))
    parser.add_argument("--libraries", nargs="+", choices=LIBRARIES, help="default: all")
    parser.add_argument("--again", action="store_true", help="do all fits anew")
    parser.add_argument("--json", metavar="FILE", help="default: results/anytime.json")
    args = parser.parse_args(argv)
    folder = needed_folder()
    methods = [*PEERS, *(f"RareClassifier, {effort}" for effort in EFFORTS)]
    if python_of("autogluon").exists():
        methods += [f"AutoGluon, {seconds:g} s" for seconds in AUTOGLUON_BUDGETS]
    else:
        print("AutoGluon is left out: its environment is missing (`make automl-env`).")
    if args.libraries:
        methods = [method for method in methods if method.partition(", ")[0] in args.libraries]
    ledger = Ledger("anytime", args.json, {"threads": THREADS})
    there = [name for name in args.sets if sets.is_there(name, folder)]
    pending = [
        (name, method)
        for method in methods
        for name in there
        if args.again or not ledger.has(f"{name} / {method}", 0)
    ]
    if pending:
        for each in ("RareClassifier, quick", *PEERS):
            measure("abalone7", each, folder)
    for name, method in pending:
        key = f"{name} / {method}"
        run = ledger.add(key, 0, {"set": name, "method": method}, measure(name, method, folder))
        figures = ", ".join(f"{run[k]:.4g}" for k in ("seconds", "average_precision") if k in run)
        print(f"{key}: {run['status']} {figures}", file=sys.stderr, flush=True)
    print(markdown.table(HEADER, lines(ledger.runs)))
    print("written:", args.json or record.RESULTS / "anytime.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
