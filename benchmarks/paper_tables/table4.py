"""Table 4: test AUC on the real sets of Table 3 (section 6.2).

Stratified random splits, three quarters for training; the training part alone sets the scaling,
and lam or k by 10-fold cross-validation. The paper has 20 splits. Goal: RankRC significantly
below the paper's mean (two-sided, 99 percent, combined standard errors) on no set.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks import record
from benchmarks.paper_tables import paper, real_sets
from benchmarks.paper_tables.methods import choose_by_folds
from benchmarks.paper_tables.protocol import (
    Standardiser,
    auc,
    data_folder,
    mean_and_error,
    z_score,
)
from benchmarks.paper_tables.study import JOBS, figure, options, parameters, print_table, run_all

TEST_SHARE = 0.25
Z_99 = 2.5758  # two-sided, 99 percent


class Split(NamedTuple):
    """One split of one set, for one method."""

    folder: Path
    set_name: str
    method: str
    number: int


def run_split(split: Split) -> dict[str, float]:
    """Test AUC, chosen parameter, support vectors and seconds of one split."""
    X, y = real_sets.load(split.set_name, split.folder)
    shuffle = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=split.number)
    train, test = next(shuffle.split(X, y))
    scale = Standardiser.of(X[train])
    start = time.perf_counter()
    chosen = choose_by_folds(split.method, scale(X[train]), y[train], seed=split.number)
    seconds = time.perf_counter() - start
    return {
        "auc": float(auc(y[test], chosen.scores(scale(X[test])))[0]),
        "param": chosen.param,
        "size": chosen.size,
        "stopped": chosen.stopped,
        "seconds": seconds,
    }


def study(argv: Sequence[str], description: str) -> tuple[Any, dict[str, Any]] | None:
    """Options and results {set: {method: {...}}}; None, said plainly, without any data."""
    args = options(
        description, ["RankRC"], argv,
        jobs=JOBS,
        splits=(5, "random splits per set (default: 5; the paper has 20)"),
        sets=(paper.set_names(), "names as in Table 3, lower case (default: all)"),
    )  # fmt: skip
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return None
    unknown = sorted(set(args.sets) - set(paper.set_names()))
    if unknown:
        raise SystemExit(f"no set {', '.join(unknown)}; there are {', '.join(paper.set_names())}")
    present = [name for name in args.sets if real_sets.is_there(name, folder)]
    missing = [name for name in args.sets if name not in present]
    if missing:
        print("Skipped, not in the data folder:", ", ".join(missing))
    if not present:
        return None
    tasks = [
        Split(folder, name, method, number)
        for name in present
        for method in args.methods
        for number in range(args.splits)
    ]
    outcomes = iter(run_all("Real sets", run_split, tasks, args.jobs))
    results = {
        name: {
            m: _summary(name, m, [next(outcomes) for _ in range(args.splits)]) for m in args.methods
        }
        for name in present
    }
    args.sets = present
    return args, results


def main(argv: Sequence[str]) -> int:
    """Run, print beside the paper, write results/table4.json."""
    ran = study(argv, __doc__)
    if ran is None:
        return 0
    args, results = ran
    lines, below = [], []
    for name, methods in results.items():
        for method, cell in methods.items():
            if cell["significantly_below"]:
                below.append(f"{name} ({method})")
            lines.append(
                [
                    f"{name} {method}",
                    figure((cell["mean"], cell["error"])),
                    figure(cell["paper"]),
                    f"{cell['z']:+.1f}" if cell["z"] is not None else "-",
                    {True: "YES", False: "no", None: "-"}[cell["significantly_below"]],
                    f"{sum(cell['seconds']) / len(cell['seconds']):.1f}",
                    str(sum(cell["stopped"])),
                ]
            )
    header = ["test AUC", "ours", "paper", "z", "significantly below", "s a split", "capped fits"]
    print_table(header, lines)
    if args.splits > 1:
        print("Significantly below the paper's mean:", ", ".join(below) or "none")
    else:
        print("One split has no standard error: no verdict.")
    path = record.write("table4", {"parameters": parameters(args), "sets": results}, args.json)
    print("written:", path)
    return 0


def _summary(name: str, method: str, splits: list[dict[str, float]]) -> dict[str, Any]:
    values = {key: [split[key] for split in splits] for key in splits[0]}
    mean, error = mean_and_error(values["auc"])
    printed = paper.real_auc(name)[method]
    z = None if error is None else z_score((mean, error), printed)
    return {
        "mean": mean,
        "error": error,
        "paper": printed,
        "z": z,
        "significantly_below": None if z is None else bool(z < -Z_99),
        **values,
    }
