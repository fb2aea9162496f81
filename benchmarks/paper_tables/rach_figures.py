"""From fits to figures: mean F1, who is first, and who is not significantly behind.

A cell is a problem with a share of labels. A method is at the top of a cell when its mean F1 is the
highest, or `paired_test` over the splits finds no significant difference from that (two-sided,
p < 0.05). The labels are 5 to 25 percent of the rows and all others are guessed, so that splits
share most of what they are measured on: the correction multiplies the variance of 10 splits by 31
to 191, and few methods are called behind. Over data sets the mean difference of each is one pair,
and the methods share Holm's correction.
"""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from benchmarks.paired_test import Paired, paired, paired_peers
from benchmarks.paper_tables.fits import Fit
from benchmarks.paper_tables.rach_methods import RACH

P = 0.05
# Method -> F1 of every split.
Cell = dict[str, list[float]]


class Key(NamedTuple):
    """A problem with a share of labels in percent."""

    problem: str
    share: int


class Standing(NamedTuple):
    """How a method does over the cells in which it was run.

    Attributes
    ----------
    first, top, cells : int
        Cells with the highest mean; with it or not significantly behind; all.
    mean : float
        F1 in percent over all cells.
    behind : Paired or None
        RACHCV minus the method in percent, over the data sets of the cells that both have.
    """

    first: int
    top: int
    cells: int
    mean: float
    behind: Paired | None


def by_cell(fits: Iterable[Fit]) -> dict[Key, Cell]:
    """Cells in the order of the fits."""
    found: dict[Key, Cell] = {}
    for fit in fits:
        cell = found.setdefault(Key(fit["problem"], fit["share"]), {})
        cell[fit["method"]] = fit["f1"]
    return found


def on_common_splits(fits: Iterable[Fit]) -> list[Fit]:
    """Fits of the problems and shares that every method has, cut to the splits that all have."""
    longest: dict[tuple[str, int, str], Fit] = {}
    for fit in fits:
        key = (fit["problem"], fit["share"], fit["method"])
        if key not in longest or longest[key]["splits"] < fit["splits"]:
            longest[key] = fit
    methods = {method for _, _, method in longest}
    counts: dict[Key, int] = {}
    for problem, share, _ in longest:
        counts[Key(problem, share)] = counts.get(Key(problem, share), 0) + 1
    own = [f for (*key, _), f in longest.items() if counts[Key(*key)] == len(methods)]
    splits = min((fit["splits"] for fit in own), default=0)
    return [fit | {"splits": splits, "f1": fit["f1"][:splits]} for fit in own]


def methods_of(cells: dict[Key, Cell]) -> list[str]:
    """The methods that were run, in the order of the fits."""
    return list(dict.fromkeys(name for cell in cells.values() for name in cell))


def mean(cell: Cell, name: str) -> float:
    """Mean F1 in percent."""
    return 100.0 * float(np.mean(cell[name]))


def first(cell: Cell) -> str:
    """The method with the highest mean; of equals the first."""
    return max(cell, key=lambda name: mean(cell, name))


def top(cell: Cell, share: int) -> list[str]:
    """The methods that are first or not significantly behind the first, at a share of labels."""
    gains = {name: np.subtract(values, cell[first(cell)]) for name, values in cell.items()}
    tests = {name: paired(each, share, 100 - share) for name, each in gains.items()}
    return [name for name, test in tests.items() if test is None or test.verdict(P) != "below"]


def over_sets(cells: dict[Key, Cell]) -> dict[str, Paired]:
    """RACHCV minus each method in percent, the mean of each data set being one pair."""
    gains: dict[str, dict[str, list[float]]] = {}
    for key, cell in cells.items():
        for name in cell if RACH in cell else ():
            of_set = gains.setdefault(name, {}).setdefault(key.problem.split()[0], [])
            of_set.append(mean(cell, RACH) - mean(cell, name))
    gains.pop(RACH, None)
    return paired_peers({
        name: [float(np.mean(each)) for each in of_sets.values()]
        for name, of_sets in gains.items()
    })  # fmt: skip


def standings(cells: dict[Key, Cell]) -> dict[str, Standing]:
    """Every method over the cells."""
    found = {}
    tops = [top(cell, key.share) for key, cell in cells.items()]
    means = [{name: mean(cell, name) for name in cell} for cell in cells.values()]
    behind = over_sets(cells)
    for name in methods_of(cells):
        own = [each for each in means if name in each]
        found[name] = Standing(
            sum(each[name] == max(each.values()) for each in own),
            sum(name in each for each in tops),
            len(own),
            float(np.mean([each[name] for each in own])),
            behind.get(name),
        )
    return found
