"""From fits to the figures beside the paper's: means, spread, order of the learners.

On sets whose classes are the paper's: is CBR with either policy at or above the paper's AUC minus
two standard errors, and above each other learner where the paper has it above?
"""

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np

from benchmarks.paper_tables import paper
from benchmarks.paper_tables.cbr_sets import SETS
from benchmarks.paper_tables.fits import Fit

PAPER_RUNS = {"benchmark": 10, "text": 5}
# Table of AUC, table of accuracy.
TABLES = {"benchmark": ("cbr3", "cbr4"), "text": ("cbr5", "cbr6")}
# The paper prints three decimals: its means are not known better than this.
_ROUNDING = 0.0005
# Sets under another name in the paper.
_STAND_INS = {"tdt2": "reuters"}


class Cell(NamedTuple):
    """One learner on one set.

    Attributes
    ----------
    mean, spread : float
        Over the folds of all runs: mean and standard deviation.
    runs : int
    fit_ms : float
        One pass over the training rows of a fold, mean.
    paper : (float, float) or None
        The paper's mean and standard deviation.
    """

    mean: float
    spread: float
    runs: int
    fit_ms: float
    paper: tuple[float, float] | None


Cells = dict[str, dict[str, Cell]]


def cells(fits: Iterable[Fit], study: str, measure: str) -> Cells:
    """Set -> learner -> figures of "auc" or "accuracy"; first the paper's learners, then others."""
    printed = paper.online_figures(TABLES[study][measure == "accuracy"])
    grouped: dict[tuple[str, str], list[Fit]] = {}
    for fit in fits:
        grouped.setdefault((fit["set"], fit["method"]), []).append(fit)
    sets = [name for name in SETS if any(key[0] == name for key in grouped)]
    order = dict.fromkeys([*next(iter(printed.values())), *(method for _, method in grouped)])
    return {
        name: {
            learner: _cell(grouped[name, learner], measure, printed, name, learner)
            for learner in order
            if (name, learner) in grouped
        }
        for name in sets
    }


def best(fits: list[Fit], scaling: str) -> list[Fit]:
    """Of each set the fits with the finest grid that the peers have, under one scaling."""
    fits = [fit for fit in fits if fit["scaling"] == scaling]
    finest: dict[str, int] = {}
    for fit in fits:
        if not fit["method"].startswith("CBR"):
            finest[fit["set"]] = min(fit["step"], finest.get(fit["set"], fit["step"]))
    return [fit for fit in fits if fit["step"] == finest.get(fit["set"])]


def least(cell: Cell, study: str) -> float | None:
    """The paper's mean minus two standard errors: what CBR is to reach."""
    if cell.paper is None:
        return None
    mean, spread = cell.paper
    return mean - max(2.0 * spread / np.sqrt(PAPER_RUNS[study]), _ROUNDING)


def reached(found: Cells, study: str) -> dict[tuple[str, str], bool]:
    """(set, CBR) -> whether it reaches the paper, on the sets that are compared."""
    return {
        (name, learner): bool(cell.mean >= bound)
        for name, learners in found.items()
        if SETS[name].compared
        for learner, cell in learners.items()
        if learner.startswith("CBR") and (bound := least(cell, study)) is not None
    }


def ordered(found: Cells, compared_only: bool) -> list[bool]:
    """Whether CBR is above the other, for each pair where the paper has it above."""
    return [
        ours.mean > other.mean
        for name, learners in found.items()
        if SETS[name].compared or not compared_only
        for us, ours in learners.items()
        for them, other in learners.items()
        if us.startswith("CBR") and not them.startswith("CBR") and _above_in_paper(ours, other)
    ]


def distance(found: Cells) -> float | None:
    """Mean absolute difference from the paper's means, on the sets that are compared."""
    apart = [
        abs(cell.mean - cell.paper[0])
        for name, learners in found.items()
        for cell in learners.values()
        if SETS[name].compared and cell.paper is not None
    ]
    return float(np.mean(apart)) if apart else None


def _above_in_paper(ours: Cell, other: Cell) -> bool:
    return ours.paper is not None and other.paper is not None and ours.paper[0] > other.paper[0]


def _cell(fits: list[Fit], measure: str, printed: Any, name: str, learner: str) -> Cell:
    values = np.concatenate([fit[measure] for fit in fits])
    times = np.concatenate([fit["fit_ms"] for fit in fits])
    return Cell(
        float(values.mean()),
        float(values.std(ddof=1)),
        len(fits),
        float(times.mean()),
        printed.get(_STAND_INS.get(name, name), {}).get(learner.removesuffix(" printed")),
    )
