"""RareClassifier beside the methods that people use, on tables as they are published.

Boosted trees, forests, an SVM and logistic regression with their defaults, and tuned by random
search within the seconds that RareClassifier gets (``--budget``), each with the preparation of the
table that suits it; one thread for all. `benchmarks/tabular` has the sets, methods and settings.
A process measures one method on all splits of one set; a split that takes longer than ``--limit``
seconds ends it, and the splits after it are not tried.
"""

import argparse
from typing import Any

import rareclass
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Ledger
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular import page, processes
from benchmarks.tabular.learners import LEARNERS
from benchmarks.tabular.sets import HALVES, SETS, TableSet, is_there
from benchmarks.tabular.spaces import METHODS, TUNED

BUDGET = 60.0
LIMIT = 1200.0
START_SECONDS = 4.0
# Rough seconds of a fit with defaults: a constant, and for each million of rows x columns.
COST = {
    "rankrc": (1.0, 20.0),
    "lightgbm": (0.2, 0.6),
    "lightgbm_slow": (0.3, 1.5),
    "xgboost": (0.2, 0.8),
    "catboost": (1.0, 14.0),
    "histogram": (0.3, 2.5),
    "forest": (0.4, 4.0),
    "balanced_forest": (0.4, 0.8),
    "extra_trees": (0.3, 1.5),
    "easy_ensemble": (1.3, 8.0),
    "svm": (0.2, 20.0),
    "logistic": (0.1, 0.8),
}

render = page.render


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which sets and methods, and for how long."""
    parser.add_argument("--sets", nargs="+", choices=list(SETS), metavar="SET", default=list(SETS),
                        help=f"among {', '.join(SETS)} (default: all)")  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD", default=METHODS,
                        help=f"among {', '.join(METHODS)} (default: all)")  # fmt: skip
    parser.add_argument("--only-half", choices=list(HALVES), help="of the sets")
    parser.add_argument("--splits", type=int, help="of every set that is split at random")
    parser.add_argument("--budget", type=float, default=BUDGET,
                        help=f"seconds to choose settings in (default: {BUDGET:g})")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT,
                        help=f"seconds of a split (default: {LIMIT:g})")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")


def groups(args: argparse.Namespace) -> list[Group]:
    """A group for each set, a cell for each method."""
    folder = data_folder()
    if folder is None:
        print("left out: all, no data folder; name it with RARECLASS_DATA")
        return []
    wanted = [name for name in args.sets if not args.only_half or name in HALVES[args.only_half]]
    missing = [name for name in wanted if not is_there(name, folder)]
    if missing:
        print("left out, not in the data folder:", ", ".join(missing))
    methods = [name for name in args.methods if _exists(name)]
    if len(methods) < len(args.methods):
        print("left out, as this version has no RareClassifier: its methods")
    return [
        Group(
            title=name,
            cells=[_cell(args, name, method) for method in methods],
            repeats=args.splits if args.splits and not spec.has_own_test else spec.n_splits,
            repeat_below=1e9,
        )
        for name, spec in SETS.items()
        if name in wanted and name not in missing
    ]


def run_groups(found: list[Group], ledger: Ledger, args: argparse.Namespace) -> None:
    """Measure what the ledger does not have."""
    processes.run_all(found, ledger, args.jobs)


def label(method: str, budget: float) -> str:
    """A method as the ledger knows it: with its seconds, where these are its setting."""
    has_budget = method.endswith(TUNED) or LEARNERS[method].has_budget
    return f"{method}, {budget:g} s" if has_budget else method


def _cell(args: argparse.Namespace, name: str, method: str) -> Cell:
    own: dict[str, Any] = {"set_name": name, "method": method, "budget": args.budget}
    named = label(method, args.budget)
    return Cell(
        f"{name} / {named}",
        "benchmarks.tabular.measure:splits",
        own,
        estimate=_estimate(SETS[name], method, args.budget),
        limit=args.limit,
        about={"set": name, "method": method, "label": named},
    )


def _exists(method: str) -> bool:
    return not LEARNERS[method.removesuffix(TUNED)].has_budget or hasattr(
        rareclass, "RareClassifier"
    )


def _estimate(spec: TableSet, method: str, budget: float) -> float:
    """Expected seconds of a split."""
    learner = LEARNERS[method.removesuffix(TUNED)]
    if learner.has_budget:
        return budget
    constant, each = COST[method.removesuffix(TUNED)]
    rows = min(spec.n_train, learner.most_rows or spec.n_train)
    fit = constant + each * rows * spec.shape[1] / 1e6
    return fit + (budget if method.endswith(TUNED) else 0.0) + START_SECONDS / spec.n_splits
