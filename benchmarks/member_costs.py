"""Seconds of a core for a unit of each member's cost: `python -m benchmarks.member_costs`.

`rareclass.ensemble.race` predicts times with these before a member has run on the machine.
Processor seconds of one thread, three folds, after a first run that compiles.
"""

import sys
import time

import numpy as np
from sklearn.datasets import make_classification

from benchmarks.markdown import table
from rareclass.ensemble.members.member import EncodedFolds, Member
from rareclass.ensemble.members.registry import PORTFOLIOS, make_members

SIZES = ((1_500, 12), (6_000, 30), (20_000, 20))
N_FOLDS = 3


def unit_seconds(member: Member, n_rows: int, n_features: int) -> tuple[float, float]:
    """Seconds for a table, and for a unit of the member's cost."""
    X, y = make_classification(
        n_rows, n_features, n_informative=8, weights=[0.96], flip_y=0.02, random_state=0
    )
    fold = np.arange(n_rows) % N_FOLDS
    rows = EncodedFolds(X, y.astype(bool), None, fold, 0, 1)
    start = time.process_time()
    member.cross_fit(rows)
    seconds = time.process_time() - start
    return seconds, seconds / (N_FOLDS * member.cost(rows.size))


def main() -> int:
    """Measure and print."""
    rows = []
    for name in PORTFOLIOS["auto"]:
        (member,) = make_members([name])
        if member.view == "sparse":
            continue
        unit_seconds(member, *SIZES[0])
        cells = [unit_seconds(member, *size) for size in SIZES]
        rows.append([name, *(f"{seconds:.2f} ({unit:.1e})" for seconds, unit in cells)])
    head = ["member", *(f"{n:,} x {d}" for n, d in SIZES)]
    print(table(head, rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
