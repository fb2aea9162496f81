"""Figure 5: ranking loss on training and test rows along lam, on simulated data (section 6.1).

The mean hinge over all pairs of a rare and a majority row, for RankSVM, RANK-RND and RankRC on
one trial of four cells of Table 2. The paper does not say which four it drew; these go from high
overlap to low.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.paper_tables.methods import METHODS, RANKING
from benchmarks.paper_tables.protocol import LAMS
from benchmarks.paper_tables.study import JOBS, options, parameters, run_all
from benchmarks.paper_tables.table2 import draw

CELLS = ((0.9, 0.1), (0.75, 0.1), (0.6, 0.1), (0.6, 0.4))


def mean_pair_hinge(y: np.ndarray, scores: np.ndarray) -> float:
    """Mean of max(0, 1 - (f_i - f_j)) over all rare i and majority j, without any pair.

    A majority row j meets the rare rows with f_i < 1 + f_j: they are a prefix of the sorted rare
    scores, so one search gives their number and one prefix sum their total.
    """
    rare = np.sort(scores[y == 1])
    reach = 1.0 + scores[y == 0]
    met = np.searchsorted(rare, reach, side="left")
    prefix = np.concatenate(([0.0], np.cumsum(rare)))
    return float(np.mean(met * reach - prefix[met]) / len(rare))


def run_cell(task: tuple[tuple[float, float], tuple[str, ...]]) -> dict[str, Any]:
    """Method -> loss on the training and test rows at every lam."""
    (overlap, rare_share), methods = task
    data = draw(overlap, rare_share, number=0)
    losses = {}
    for name in methods:
        path = METHODS[name](*data.train, LAMS, 0)
        losses[name] = {
            part: [mean_pair_hinge(y, column) for column in path.scores(X, range(len(LAMS))).T]
            for part, (X, y) in (("train", data.train), ("test", data.test))
        }
    return losses


def main(argv: Sequence[str], table: str) -> Path:
    """Run, write results/fig5.json."""
    args = options(__doc__, RANKING, argv, jobs=JOBS)
    outcomes = run_all(
        "Figure 5", run_cell, [(cell, tuple(args.methods)) for cell in CELLS], args.jobs
    )
    cells = [
        {"overlap": overlap, "rare_share": share, "losses": losses}
        for (overlap, share), losses in zip(CELLS, outcomes, strict=True)
    ]
    body = {"parameters": parameters(args), "log2_lam": np.log2(LAMS), "cells": cells}
    return record.write("fig5", body, args.json)
