"""Table 4: test AUC on the real sets of Table 3, for all methods (section 6.2).

1. Split: stratified and random, three quarters for training; every method gets the same splits.
2. Scale: by the training part alone.
3. Choose lam, k for KNN: the largest mean AUC of 10-fold cross-validation on the training part.
4. Fit on the training part, score the test part.

The paper has 20 splits. A method whose split takes longer than ``--slow`` seconds on a set gets
``--few`` splits of it, and no more after one that takes longer than ``--limit``. The kernel RankSVM
has every training row as a landmark: it takes part up to `RANKSVM_ROWS` of them.

Each split is stored as soon as it is done and is not run again, so that an interrupted run goes on.

Two questions are answered by the page, which has Table 5 as well. Is RankRC significantly below the
paper's own mean (two-sided, 99 percent, combined standard errors)? And how does it compare with
each method on the same splits (`paired_test`, 5 percent, corrected for the rows that they share)?
"""

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from sklearn.metrics import average_precision_score
from sklearn.model_selection import StratifiedShuffleSplit

from benchmarks.ledger import Ledger
from benchmarks.paper_tables import paper, real_sets
from benchmarks.paper_tables.methods import METHODS, choose_by_folds
from benchmarks.paper_tables.protocol import Standardiser, auc, needed_folder
from benchmarks.paper_tables.study import JOBS, options, parameters
from benchmarks.paper_tables.time_limit import each_within
from rareclass.machine import track

TEST_SHARE = 0.25
RANKSVM_ROWS = 3000


class Work(NamedTuple):
    """One method on one set, and the splits of it that are still to be run."""

    set_name: str
    method: str
    numbers: tuple[int, ...]

    @property
    def key(self) -> str:
        """Name in the ledger."""
        return f"{self.set_name} / {self.method}"


def run_split(set_name: str, method: str, number: int, folder: Path) -> dict[str, Any]:
    """Test AUC, chosen parameter, size of the model and processor seconds of one split."""
    X, y = real_sets.load(set_name, folder)
    shuffle = StratifiedShuffleSplit(1, test_size=TEST_SHARE, random_state=number)
    train, test = next(shuffle.split(X, y))
    scale = Standardiser.of(X[train])
    start = time.process_time()
    chosen = choose_by_folds(method, scale(X[train]), y[train], seed=number)
    seconds = time.process_time() - start
    scores = chosen.scores(scale(X[test]))
    return {
        "auc": float(auc(y[test], scores)[0]),
        "ap": 100.0 * float(average_precision_score(y[test], np.ravel(scores))),
        "param": chosen.param,
        "size": chosen.size,
        "stopped": chosen.stopped,
        "seconds": seconds,
    }


def run_work(work: Work, ledger: Ledger, lock: Any, args: Any, folder: Path) -> None:
    """Run and store the splits one after the other, until one is stopped or few are enough."""
    tasks = [(work.set_name, work.method, number, folder) for number in work.numbers]
    outcomes = each_within(args.limit, run_split, tasks)
    for number, outcome in zip(work.numbers, outcomes, strict=False):
        found = {"status": "stopped", "limit": args.limit} if outcome is None else outcome
        with lock:
            about = {"set": work.set_name, "method": work.method}
            ledger.add(work.key, number, about, {"status": "ok", **found})
            if outcome is None or not _goes_on(ledger, work.key, number + 1, args):
                return


def _goes_on(ledger: Ledger, key: str, number: int, args: Any) -> bool:
    """Say whether split `number` is wanted, given the seconds of the splits before it."""
    runs = ledger.of(key)
    if any(run["status"] == "stopped" and run["limit"] >= args.limit for run in runs):
        return False
    seconds = [run["seconds"] for run in runs if run["status"] == "ok"]
    slow = bool(seconds) and sum(seconds) / len(seconds) > args.slow
    return number < (args.few if slow else args.splits)


def wanted(ledger: Ledger, names: Sequence[str], args: Any, folder: Path) -> Iterator[Work]:
    """Methods and sets with splits that are not stored yet, small sets first."""
    shapes = {name: real_sets.load(name, folder)[0].shape for name in names}
    for name in sorted(names, key=lambda one: shapes[one][0] * shapes[one][0] * shapes[one][1]):
        for method in args.methods:
            if method == "RankSVM" and shapes[name][0] * (1.0 - TEST_SHARE) > RANKSVM_ROWS:
                continue
            work = Work(name, method, ())
            numbers = tuple(
                number
                for number in range(args.splits)
                if not ledger.has(work.key, number, args.limit)
                and _goes_on(ledger, work.key, number, args)
            )
            if numbers:
                yield work._replace(numbers=numbers)


def main(argv: Sequence[str], table: str) -> Path:
    """Run what is not stored yet, write results/table4.json."""
    args = options(
        __doc__, list(METHODS), argv,
        jobs=JOBS,
        splits=(20, "random splits per set (default: 20, the paper's)"),
        sets=(paper.set_names(), "names as in Table 3, lower case (default: all)",
              paper.set_names()),
        slow=(60.0, "seconds a split from where a set gets few (default: 60)"),
        few=(3, "splits where one is slow (default: 3)"),
        limit=(1800.0, "seconds after which a split is stopped (default: 1800)"),
    )  # fmt: skip
    folder = needed_folder()
    present = real_sets.present(args.sets, folder)
    ledger, lock = Ledger("table4", args.json, parameters(args)), threading.Lock()
    todo = list(wanted(ledger, present, args, folder))
    run = Parallel(n_jobs=args.jobs, prefer="threads", return_as="generator_unordered")
    with track("Table 4", total=len(todo)) as advance:
        for _ in run(delayed(run_work)(work, ledger, lock, args, folder) for work in todo):
            advance()
    return ledger.path
