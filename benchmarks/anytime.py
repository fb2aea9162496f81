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
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

import numpy as np
from sklearn.metrics import average_precision_score, roc_auc_score

from benchmarks import markdown, other_work, record
from benchmarks.ledger import Ledger, Run
from benchmarks.paired_test import Paired, paired_peers
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.tabular import sets
from benchmarks.tabular.automl import INSTALL, PYTHON, OtherInterpreter
from benchmarks.tabular.preparation import NativeCategories, TextCategories
from rareclass.ensemble.plan import EFFORTS

SETS = (
    "abalone7", "mammograph", "coil", "euthyroid", "bank_marketing", "cod_rna",
    "wine4", "satellite", "spambase", "give_me_some_credit", "shuttle", "kdd",
)  # fmt: skip
AUTOGLUON_BUDGETS = (30.0, 60.0)  # with 10 it can end without a model
CATBOOST_TREES = (100, 300, 1000)
THREADS = 1
HEADER = ["fit", "sets", "average precision", "AUC", "median seconds", "most"]


PEERS = (
    "LightGBM",
    "LightGBM, 400 slow trees",
    *(f"CatBoost, {trees} trees" for trees in CATBOOST_TREES),
)


class Judged(NamedTuple):
    """Scores of new rows, higher is rarer, and the seconds they took."""

    scores: np.ndarray
    seconds: float


def rare_classifier(given: str, X: Any, y: np.ndarray, new: Any) -> Judged:
    """Fit and scores of `RareClassifier` with an effort such as "quick"."""
    from rareclass import RareClassifier

    start = time.perf_counter()
    model = RareClassifier(given, random_state=0, n_jobs=THREADS, verbose=False)
    scores = model.fit(X, y).score_samples(new)
    return Judged(scores, time.perf_counter() - start)


def autogluon(given: str, X: Any, y: np.ndarray, new: Any) -> Judged:
    """Fit and scores of AutoGluon with a budget such as "10 s"."""
    model = OtherInterpreter("autogluon", float(given.removesuffix(" s")), 0)
    scores = model.fit(X, y).predict_proba(new)[:, 1]
    return Judged(scores, model.seconds_)


def catboost(given: str, X: Any, y: np.ndarray, new: Any) -> Judged:
    """Fit and scores of CatBoost with so many trees, such as "100 trees", all else by default."""
    from catboost import CatBoostClassifier

    start = time.perf_counter()
    prepared = TextCategories()
    X = prepared.fit_transform(X)
    model = CatBoostClassifier(
        iterations=int(given.removesuffix(" trees")),
        thread_count=THREADS,
        verbose=False,
        allow_writing_files=False,
        cat_features=[name for name in X if X[name].dtype == object],
    )
    scores = model.fit(X, y).predict(prepared.transform(new), prediction_type="RawFormulaVal")
    return Judged(scores, time.perf_counter() - start)


def lightgbm(given: str, X: Any, y: np.ndarray, new: Any) -> Judged:
    """Fit and scores of LightGBM with its defaults ("") or with "400 slow trees"."""
    from lightgbm import LGBMClassifier

    start = time.perf_counter()
    slow = {"n_estimators": 400, "learning_rate": 0.03, "num_leaves": 15} if given else {}
    prepared = NativeCategories()
    trees = LGBMClassifier(n_jobs=THREADS, verbose=-1, **slow)
    scores = trees.fit(prepared.fit_transform(X), y).predict(
        prepared.transform(new), raw_score=True
    )
    return Judged(scores, time.perf_counter() - start)


LIBRARIES: dict[str, Callable[[str, Any, np.ndarray, Any], Judged]] = {
    "RareClassifier": rare_classifier,
    "AutoGluon": autogluon,
    "CatBoost": catboost,
    "LightGBM": lightgbm,
}


def measure(set_name: str, method: str, folder: Path) -> Run:
    """Average precision and AUC on the test rows, seconds, and disturbance."""
    rows = sets.load(set_name, folder)
    train, test = sets.split(rows, 0)
    (X, y), (new, rare) = rows.part(train), rows.part(test)
    library, _, given = method.partition(", ")
    before = other_work.now()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            judged = LIBRARIES[library](given, X, y, new)
        except RuntimeError as error:  # of AutoGluon, whose time was over before it had a model
            return {"status": "failed", "error": str(error)}
    return {
        "status": "ok",
        "average_precision": float(average_precision_score(rare, judged.scores)),
        "auc": float(roc_auc_score(rare, judged.scores)),
        "seconds": judged.seconds,
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
    if PYTHON.exists():
        methods += [f"AutoGluon, {seconds:g} s" for seconds in AUTOGLUON_BUDGETS]
    else:
        print(f"AutoGluon is left out: its environment is missing (`{INSTALL}`).")
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
