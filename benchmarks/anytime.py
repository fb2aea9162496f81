"""Average precision against seconds: `python -m benchmarks.anytime`.

`RareClassifier` with one time budget after the other, and LightGBM and CatBoost with their
defaults, on the first split of 12 sets of `benchmarks.tabular`; two threads each. Seconds are those
of the fit by the wall clock, in a process that has learned a small table before. Fits are stored as
they come and not done again.
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
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table
from benchmarks.tabular import sets
from benchmarks.tabular.preparation import NativeCategories, TextCategories

SETS = (
    "abalone7", "mammograph", "coil", "euthyroid", "bank_marketing", "cod_rna",
    "wine4", "satellite", "spambase", "give_me_some_credit", "shuttle", "kdd",
)  # fmt: skip
BUDGETS = (1.0, 2.0, 5.0, 10.0, 30.0, 60.0)
PEERS = ("LightGBM", "LightGBM, 400 slow trees", "CatBoost")
THREADS = 2
HEADER = ["fit", "sets", "average precision", "AUC", "median seconds", "most"]


def name_of(budget: float) -> str:
    """The fit of `RareClassifier` with a budget, as it is stored and shown."""
    return f"RareClassifier, {budget:g} s"


def scored(method: str, X: Any, y: np.ndarray, new: Any) -> np.ndarray:
    """Scores of new rows by a method that learned from X; higher is rarer."""
    if method.startswith("RareClassifier"):
        from rareclass import RareClassifier

        budget = float(method.split(", ")[1].removesuffix(" s"))
        model = RareClassifier(budget, random_state=0, n_jobs=THREADS, verbose=False)
        return model.fit(X, y).score_samples(new)
    if method == "CatBoost":
        from catboost import CatBoostClassifier

        prepared = TextCategories()
        X = prepared.fit_transform(X)
        words = [name for name in X if X[name].dtype == object]
        cat = CatBoostClassifier(
            thread_count=THREADS, verbose=False, allow_writing_files=False, cat_features=words
        )
        return cat.fit(X, y).predict(prepared.transform(new), prediction_type="RawFormulaVal")
    from lightgbm import LGBMClassifier

    slow = {"n_estimators": 400, "learning_rate": 0.03, "num_leaves": 15}
    prepared = NativeCategories()
    trees = LGBMClassifier(n_jobs=THREADS, verbose=-1, **(slow if "slow" in method else {}))
    trees.fit(prepared.fit_transform(X), y)
    return trees.predict(prepared.transform(new), raw_score=True)


def measure(set_name: str, method: str, folder: Path) -> Run:
    """Average precision and AUC on the test rows, seconds of fit and scores, and disturbance."""
    rows = sets.load(set_name, folder)
    train, test = sets.split(rows, 0)
    (X, y), (new, rare) = rows.part(train), rows.part(test)
    before, start = other_work.now(), time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        scores = scored(method, X, y, new)
    seconds = time.perf_counter() - start
    return {
        "status": "ok",
        "average_precision": float(average_precision_score(rare, scores)),
        "auc": float(roc_auc_score(rare, scores)),
        "seconds": seconds,
        "cores_of_others": other_work.cores_of_others(before, other_work.now()),
    }


def lines(runs: Sequence[Run]) -> list[list[str]]:
    """A line a method: means over the sets that every method was run on."""
    methods = list(dict.fromkeys(run["method"] for run in runs))
    of = {(run["set"], run["method"]): run for run in runs}
    whole = [s for s in SETS if all((s, method) in of for method in methods)]
    found = []
    for method in methods if whole else ():
        own = [of[name, method] for name in whole]
        means = [f"{100 * fmean(r[key] for r in own):.2f}" for key in ("average_precision", "auc")]
        seconds = [run["seconds"] for run in own]
        figures = [f"{median(seconds):.1f}", f"{max(seconds):.1f}"]
        found.append([method, str(len(whole)), *means, *figures])
    return found


def anytime_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    methods = list(dict.fromkeys(run["method"] for run in result["runs"]))
    of = {(run["set"], run["method"]): run for run in result["runs"]}
    by_set = [
        [
            s,
            *(
                f"{100 * of[s, m]['average_precision']:.1f}" if (s, m) in of else "-"
                for m in methods
            ),
        ]
        for s in SETS
    ]
    return (
        "What a budget of seconds buys: one split of each set, two threads, means in percent, "
        "seconds of fit and scores by the wall clock.\n\n"
        + markdown.table(HEADER, lines(result["runs"]))
        + "\n\nAverage precision, set by set:\n\n"
        + markdown.table(["set", *methods], by_set)
    )


def main(argv: list[str] | None = None) -> int:
    """Run what is not stored yet, print, write results/anytime.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.anytime", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=SETS, metavar="SET", default=list(SETS))
    parser.add_argument("--budgets", nargs="+", type=float, default=list(BUDGETS))
    parser.add_argument("--again", action="store_true", help="do all fits anew")
    parser.add_argument("--json", metavar="FILE", help="default: results/anytime.json")
    args = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return 0
    methods = [*(name_of(budget) for budget in args.budgets), *PEERS]
    ledger = Ledger("anytime", args.json, {"threads": THREADS})
    warm = False
    for set_name in (name for name in args.sets if sets.is_there(name, folder)):
        for method in methods:
            key = f"{set_name} / {method}"
            if ledger.has(key, 0) and not args.again:
                continue
            if not warm:
                for each in (name_of(20.0), *PEERS):
                    measure("abalone7", each, folder)
                warm = True
            run = ledger.add(
                key, 0, {"set": set_name, "method": method}, measure(set_name, method, folder)
            )
            print(
                f"{key}: {run['seconds']:.1f} s, {run['average_precision']:.4f}",
                file=sys.stderr,
                flush=True,
            )
    print_table(HEADER, lines(ledger.runs))
    print("written:", args.json or record.RESULTS / "anytime.json")
    return 0


if __name__ == "__main__":
    sys.exit(main())
