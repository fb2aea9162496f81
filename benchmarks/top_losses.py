"""Losses that look at the top of the list, beside the plain one: `python -m benchmarks.top_losses`.

Every set of the RankRC paper's Table 3 that the data folder holds. Stratified random splits, three
quarters for training; the training rows alone set the scaling and choose everything else: lam from
2^2, 2^0, .., 2^-16 and the parameter of the loss, by average precision over 5 stratified folds, the
same folds and lams for every method. Rare landmarks, Gaussian kernel of the mean width, tol 1e-4.

- plain: the smoothed hinge, lam alone is chosen. What the others are compared with.
- pnorm_push, partial_auc, top: one loss each, its parameter chosen with lam.
- top-heavy: the loss chosen as well, among all of those three.
- chosen: among these and the plain one.

On the test rows: average precision (AP), precision at k with k the number of rare test rows, AUC.
Differences are tested by the t-test corrected for the rows that splits share (`paired_test`),
two-sided at 5 percent. Goal: better in AP or in precision at k on at least 5 sets, worse in either
on none.
"""

import argparse
import json
import sys
import time
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import markdown, record
from benchmarks.paired_test import Paired, paired
from benchmarks.paper_tables import real_sets
from benchmarks.paper_tables.protocol import Standardiser, data_folder
from benchmarks.paper_tables.study import print_table, run_all
from rareclass.metrics import average_precision, precision_at_k, roc_auc

LAMS = 2.0 ** np.arange(2, -17, -2)
FOLDS, SPLITS, TEST_SHARE, TOL = 5, 10, 0.25, 1e-4
SPLIT = (1.0 - TEST_SHARE, TEST_SHARE)
GOAL = 5
METRICS = ("ap", "precision_at_k", "auc")
NAMES = {"ap": "AP", "precision_at_k": "precision at k", "auc": "AUC"}

Candidate = tuple[str, dict[str, Any]]
CANDIDATES: dict[str, list[Candidate]] = {
    "plain": [("smoothed_hinge", {})],
    "pnorm_push": [("pnorm_push", {"power": p}) for p in (2.0, 4.0)],
    "partial_auc": [("partial_auc", {"beta": b}) for b in (0.05, 0.1, 0.2)],
    "top": [("top", {"depth": d}) for d in (0.1, 1.0)],
}
TOP_HEAVY = ("pnorm_push", "partial_auc", "top")
# Method -> those among which it takes, split by split, the one of the highest inner AP.
CHOICES: dict[str, tuple[str, ...]] = {"top-heavy": TOP_HEAVY, "chosen": ("plain", *TOP_HEAVY)}


class Split(NamedTuple):
    """One split of one set, for one method."""

    folder: Path
    set_name: str
    number: int
    method: str


def run_split(split: Split) -> dict[str, Any]:
    """Test figures of a method, what it chose, and the seconds that took."""
    from rareclass import RankRCCV

    X, y = real_sets.load(split.set_name, split.folder)
    shuffle = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=split.number)
    train, test = next(shuffle.split(X, y))
    scale = Standardiser.of(X[train])
    model = RankRCCV(
        lams=LAMS, cv=FOLDS, losses=CANDIDATES[split.method], scoring="average_precision",
        random_state=split.number, tol=TOL, pos_label=1, n_jobs=1, verbose=False,
    )  # fmt: skip
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # they are counted
        model.fit(scale(X[train]), y[train])
    return {
        **_figures(y[test], model.score_samples(scale(X[test]))),
        "loss": _text((model.best_loss_, model.best_loss_params_ or {})),
        "log2_lam": float(np.log2(model.best_lam_)),
        "inner_ap": model.best_score_,
        "stopped_short": int(model.cv_results_["n_stopped_short"].sum()),
        "seconds": time.perf_counter() - start,
    }


def with_choices(measured: dict[str, dict[str, list[Any]]]) -> dict[str, dict[str, list[Any]]]:
    """The methods of a set, and those that choose among them by inner AP; the first of equals."""
    methods = {name: measured[name] for name in CANDIDATES if name in measured}
    for name, among in CHOICES.items():
        if any(one not in measured for one in among):
            continue
        inner = np.array([measured[one]["inner_ap"] for one in among])
        best = [among[k] for k in inner.argmax(axis=0)]
        methods[name] = {
            key: [measured[one][key][number] for number, one in enumerate(best)]
            for key in measured[among[0]]
        }
    return methods


def _figures(y: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    return {
        "ap": average_precision(y, scores),
        "precision_at_k": precision_at_k(y, scores, int(y.sum())),
        "auc": roc_auc(y, scores),
    }


def _text(candidate: Candidate) -> str:
    name, params = candidate
    return " ".join([name, *(f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"
                             for key, value in params.items())])  # fmt: skip


def comparisons(cell: dict[str, Any]) -> dict[str, dict[str, Paired | None]]:
    """Method -> metric -> comparison with the plain loss, for one set."""
    methods = with_choices(cell["methods"])
    plain = methods.pop("plain")
    return {
        name: {m: paired(np.subtract(one[m], plain[m]), *SPLIT) for m in METRICS}
        for name, one in methods.items()
    }


def verdicts(sets: dict[str, Any]) -> dict[str, tuple[list[str], list[str]]]:
    """Method -> sets where it is better in AP or precision at k, and where worse in either."""
    found: dict[str, tuple[list[str], list[str]]] = {name: ([], []) for name in compared(sets)}
    for name, cell in sets.items():
        here = comparisons(cell)
        for method, (better, worse) in found.items():
            by_metric = here[method]
            verdicts = [by_metric[m].verdict() for m in ("ap", "precision_at_k")]
            if "above" in verdicts:
                better.append(name)
            if "below" in verdicts:
                worse.append(name)
    return found


def compared(sets: dict[str, Any]) -> list[str]:
    """The methods beside the plain one that every set has figures of."""
    each = [with_choices(cell["methods"]) for cell in sets.values()]
    return [name for name in each[0] if name != "plain" and all(name in one for one in each)]


def lines(sets: dict[str, Any], metric: str) -> list[list[str]]:
    """The plain loss, and every other method's difference from it, * where significant."""
    found, methods = [], compared(sets)
    for name, cell in sets.items():
        row = [name, f"{100 * np.mean(cell['methods']['plain'][metric]):.1f}"]
        here = comparisons(cell)
        for method in methods:
            one = here[method][metric]
            star = "" if one.verdict() == "level" else "*"
            row.append(f"{100 * one.difference:+.1f}{star}")
        found.append(row)
    return found


def header(sets: dict[str, Any], metric: str) -> list[str]:
    """The columns of `lines`."""
    return [NAMES[metric], "plain", *compared(sets)]


def goal_lines(sets: dict[str, Any]) -> list[list[str]]:
    """Method by method: sets where it is better, where worse, and whether that is the goal."""
    return [
        [
            method,
            f"{len(better)}: {', '.join(better)}" if better else "0",
            f"{len(worse)}: {', '.join(worse)}" if worse else "0",
            "yes" if len(better) >= GOAL and not worse else "**no**",
        ]
        for method, (better, worse) in verdicts(sets).items()
    ]


GOAL_HEADER = ["method", "significantly better, sets", "worse, sets", "goal reached"]


def top_losses_page(result: dict[str, Any]) -> str:
    """The section of the results page."""
    sets, how = result["sets"], result["parameters"]
    tried = [one for several in how["candidates"].values() for one in several]
    text = (
        f"Test figures in percent over {how['splits']} stratified splits, a quarter of the rows "
        "for testing; differences from the plain smoothed hinge, * where significant (two-sided "
        "at 5 percent, corrected for overlapping splits). The loss, its parameter and lam are "
        f"chosen by average precision over {how['folds']} folds of the training rows, from "
        f"{', '.join(tried)} and {len(how['log2_lam'])} lams.\n\n"
    )
    parts = [markdown.table(header(sets, m), lines(sets, m)) for m in METRICS]
    goal = markdown.table(GOAL_HEADER, goal_lines(sets))
    return text + "\n\n".join([goal, *parts])


def measure(name: str, method: str, folder: Path, splits: int, jobs: int) -> dict[str, list[Any]]:
    """Figures by split of one method on one set."""
    tasks = [Split(folder, name, number, method) for number in range(splits)]
    outcomes = run_all(f"{name}, {method}", run_split, tasks, jobs)
    return {key: [one[key] for one in outcomes] for key in outcomes[0]}


def main(argv: list[str] | None = None) -> int:
    """Measure, print, write results/top_losses.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.top_losses", description=__doc__)
    parser.add_argument("--sets", nargs="+", choices=list(real_sets.SETS), metavar="SET",
                        default=list(real_sets.SETS),
                        help="names as in Table 3, lower case (default: all)")  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=list(CANDIDATES), metavar="METHOD",
                        default=list(CANDIDATES),
                        help=f"among {', '.join(CANDIDATES)} (default: all)")  # fmt: skip
    parser.add_argument("--again", action="store_true",
                        help="measure what the file has already, too")  # fmt: skip
    parser.add_argument("--splits", type=int, default=SPLITS, help=f"a set (default: {SPLITS})")
    parser.add_argument("--jobs", type=int, default=1, help="splits at a time (default: 1)")
    parser.add_argument("--json", metavar="FILE", help="default: results/top_losses.json")
    args = parser.parse_args(argv)
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return 0
    present = [name for name in args.sets if real_sets.is_there(name, folder)]
    if len(present) < len(args.sets):
        missing = [name for name in args.sets if name not in present]
        print("Skipped, not in the data folder:", ", ".join(missing))
    file = Path(args.json) if args.json else record.RESULTS / "top_losses.json"
    how = {
        "splits": args.splits,
        "folds": FOLDS,
        "log2_lam": np.log2(LAMS).tolist(),
        "tol": TOL,
        "candidates": {m: [_text(c) for c in some] for m, some in CANDIDATES.items()},
    }
    sets = _measured_before(file, how)
    for name, method in product(present, args.methods):
        if method in sets.get(name, {}).get("methods", {}) and not args.again:
            continue
        start = time.perf_counter()
        found = measure(name, method, folder, args.splits, args.jobs)
        cell = sets.setdefault(name, {})
        cell.setdefault("methods", {})[method] = found
        cell["date"] = record.environment()["date"]
        sets = {known: sets[known] for known in real_sets.SETS if known in sets}
        record.write("top_losses", {"parameters": how, "sets": sets}, file)
        seconds = time.perf_counter() - start
        print(f"{name}, {method}: {seconds:.0f} s", file=sys.stderr, flush=True)
    if not sets or any("plain" not in cell["methods"] for cell in sets.values()):
        print("No figures of the plain loss to compare with.")
        return 0
    for metric in METRICS:
        print_table(header(sets, metric), lines(sets, metric))
        print()
    print_table(GOAL_HEADER, goal_lines(sets))
    print("written:", file)
    return 0


def _measured_before(file: Path, how: dict[str, Any]) -> dict[str, Any]:
    """The sets in the file, less what was measured in another way."""
    old = json.loads(file.read_text()) if file.is_file() else {}
    before = old.get("parameters", {})
    if any(before.get(key) != value for key, value in how.items() if key != "candidates"):
        return {}
    sets = old["sets"]
    for cell in sets.values():
        cell["methods"] = {
            method: found
            for method, found in cell["methods"].items()
            if before["candidates"].get(method) == how["candidates"].get(method)
        }
    return sets


if __name__ == "__main__":
    sys.exit(main())
