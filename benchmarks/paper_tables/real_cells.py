"""From the stored splits of Table 4 to its figures and to those of Table 5, and their page.

A cell is one method on one set: the finished splits, their mean and standard error, the paper's
figure, and RankRC's difference from the method on the splits that both have. The measure is the
paper's, AUC, or average precision, which the paper does not have and not all splits have here.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from benchmarks.ledger import Run
from benchmarks.markdown import table
from benchmarks.paired_test import Paired, paired, paired_peers
from benchmarks.paper_tables import paper
from benchmarks.paper_tables.methods import METHODS
from benchmarks.paper_tables.protocol import mean_and_error, z_score
from benchmarks.paper_tables.study import figure

OURS = "RankRC"
Z_99 = 2.5758  # two-sided, 99 percent
# One nearest neighbour is compared with the paper's KNN column, which looks like it.
PRINTED_AS = {"1-NN": "KNN"}
SPLIT = (0.75, 0.25)  # training and test rows


class Cell(NamedTuple):
    """One method on one set.

    Attributes
    ----------
    runs : dict of int to Run
        Split number -> what was measured.
    printed : (float, float) or None
        The paper's mean and standard error; None for a method that its table does not have.
    ahead : Paired or None
        RankRC minus this method, in percent of the measure, on the splits that both have.
    measure : str
        "auc" or "ap".
    """

    runs: dict[int, Run]
    printed: tuple[float, float] | None
    ahead: Paired | None
    measure: str

    @property
    def figure(self) -> tuple[float, float | None]:
        """Mean and standard error of the measure on the test rows, in percent."""
        return mean_and_error([run[self.measure] for run in self.runs.values()])

    @property
    def z(self) -> float | None:
        """Distance from the paper's mean in combined standard errors."""
        if self.printed is None or self.figure[1] is None:
            return None
        return z_score(self.figure, self.printed)

    def mean(self, key: str) -> float:
        """Mean of one measured figure over the splits."""
        return float(np.mean([run[key] for run in self.runs.values()]))


Cells = dict[str, dict[str, Cell]]


def cells_of(runs: Sequence[Run], measure: str = "auc") -> Cells:
    """Set -> method -> cell, sets in the order of Table 3, methods as they are registered."""
    found: dict[tuple[str, str], dict[int, Run]] = {}
    for run in sorted(runs, key=lambda one: one["repeat"]):
        if run["status"] == "ok" and measure in run:
            found.setdefault((run["set"], run["method"]), {})[run["repeat"]] = run
    cells: Cells = {}
    for name in paper.set_names():
        for method in METHODS:
            own = found.get((name, method))
            if own is not None:
                base = found.get((name, OURS), {}) if method != OURS else {}
                known = paper.real_auc(name) if measure == "auc" else {}
                printed = known.get(PRINTED_AS.get(method, method))
                ahead = _ahead(base, own, measure)
                cells.setdefault(name, {})[method] = Cell(own, printed, ahead, measure)
    return cells


def _ahead(base: dict[int, Run], own: dict[int, Run], measure: str) -> Paired | None:
    shared = sorted(base.keys() & own.keys())
    return paired([base[k][measure] - own[k][measure] for k in shared], *SPLIT)


def significantly_below_paper(cells: Cells) -> list[str]:
    """The sets where RankRC is significantly below its printed mean."""
    z_values = {name: row[OURS].z for name, row in cells.items() if OURS in row}
    return [name for name, z in z_values.items() if z is not None and z < -Z_99]


def counts(cells: Cells, method: str) -> dict[str, int]:
    """On how many sets RankRC is significantly above a method, level with it, or below."""
    verdicts = [
        row[method].ahead.verdict()
        for row in cells.values()
        if method in row and row[method].ahead is not None
    ]
    return {verdict: verdicts.count(verdict) for verdict in ("above", "level", "below")}


def over_sets(cells: Cells) -> dict[str, Paired]:
    """RankRC minus each method in percent, the mean difference of each set being one pair."""
    return paired_peers({
        method: [
            row[method].ahead.difference
            for row in cells.values()
            if method in row and row[method].ahead is not None
        ]
        for method in METHODS
        if method != OURS
    })  # fmt: skip


def shared_means(both: Cells, method: str) -> tuple[float, float]:
    """Mean over the sets, of a method and of RankRC, on the splits that both have."""
    means = []
    for row in both.values():
        shared, measure = row[method].runs.keys() & row[OURS].runs.keys(), row[method].measure
        means.append([np.mean([row[m].runs[k][measure] for k in shared]) for m in (method, OURS)])
    own, ours = np.mean(means, axis=0)
    return float(own), float(ours)


def printed_means(both: Cells, method: str) -> tuple[float, float] | None:
    """The paper's means over the same sets; None for a method that it does not have."""
    pairs = [
        (row[method].printed[0], row[OURS].printed[0])
        for row in both.values()
        if row[method].printed is not None and row[OURS].printed is not None
    ]
    return tuple(np.mean(pairs, axis=0)) if pairs else None


def _mark(cell: Cell) -> str:
    """The mean, with + where RankRC is significantly above it and - where it is below."""
    mark = {"above": " +", "below": " -", "level": ""}[
        cell.ahead.verdict() if cell.ahead else "level"
    ]
    few = "" if len(cell.runs) >= 20 else f" ({len(cell.runs)})"
    return figure(cell.figure) + mark + few


def lines(cells: Cells) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the table: one row of ours and one of the paper's a set."""
    methods = [name for name in METHODS if any(name in row for row in cells.values())]
    rows = []
    for name, row in cells.items():
        printed = paper.real_auc(name)
        rows.append([name, *(_mark(row[m]) if m in row else "-" for m in methods)])
        rows.append(["paper", *(figure(printed[m]) if m in printed else "-" for m in methods)])
    return ["test AUC", *methods], rows


def table4_page(result: dict[str, Any]) -> str:
    """The section of the results page for Tables 4 and 5."""
    cells = cells_of(result["runs"])
    absent = [name for name in paper.set_names() if name not in cells]
    return (
        "Test AUC in percent, mean ± standard error over random splits of three quarters for "
        "training; lam (k for KNN) chosen by the AUC of 10-fold cross-validation on the training "
        "part, for every method. + and -: RankRC is significantly above or below the method on the "
        "same splits (paired test at 5 percent, corrected for the rows that splits share). Over "
        "sets: Wilcoxon's signed-rank test, corrected by Holm for the number of methods. In "
        f"brackets: the number of splits where it is not 20. {_origin(result['runs'])} 1-NN "
        "is one nearest neighbour, beside the paper's KNN. Without any split: "
        f"{', '.join(absent) or 'none'}.\n\n"
        f"RankRC is significantly below the paper's own mean (99 percent) on: "
        f"{', '.join(significantly_below_paper(cells)) or 'no set'}.\n\n"
        + table(*versus(cells))
        + "\n\nAverage precision of the same fits in percent, on the splits that have it; lam was "
        "chosen by AUC for it, too:\n\n"
        + table(*precision_lines(cells_of(result["runs"], "ap")))
        + "\n\n"
        + table(*lines(cells))
        + "\n\nTable 5, from the same fits: mean number of kernel functions with a non-zero "
        "coefficient, ours (the paper's). Equal rows are one landmark here.\n\n"
        + table(*table5_lines(cells))
    )


def _origin(runs: Sequence[Run]) -> str:
    """The days on which the splits were run: a file may have been filled in parts."""
    days = sorted({run["date"][:10] for run in runs})
    return f"The splits were run in parts, on {' and '.join(days)}."


VERSUS = [
    "RankRC against",
    "sets",
    "mean AUC: method / RankRC",
    "the paper's",
    "RankRC above / level / below",
    "over sets",
    "median CPU s a split",
]


def versus(cells: Cells) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each method beside RankRC."""
    return VERSUS, [_versus(cells, method, test) for method, test in over_sets(cells).items()]


def sets_with_both(cells: Cells, method: str) -> Cells:
    """The sets that have splits of RankRC and of a method."""
    return {
        name: row
        for name, row in cells.items()
        if method in row and OURS in row and row[method].ahead is not None
    }


def precision_lines(cells: Cells) -> tuple[list[str], list[list[str]]]:
    """Header and rows: each method beside RankRC in average precision."""
    rows = []
    for method, test in over_sets(cells).items():
        if both := sets_with_both(cells, method):
            splits = [len(row[method].runs) for row in both.values()]
            tally = counts(cells, method)
            rows.append([
                method,
                str(len(both)),
                f"{min(splits)} to {max(splits)}",
                "{:.1f} / {:.1f}".format(*shared_means(both, method)),
                f"{tally['above']} / {tally['level']} / {tally['below']}",
                test.words(),
            ])  # fmt: skip
    return [*VERSUS[:2], "splits", "mean AP: method / RankRC", *VERSUS[4:6]], rows


def _versus(cells: Cells, method: str, test: Paired) -> list[str]:
    """A method beside RankRC over the sets that have splits of both."""
    both = sets_with_both(cells, method)
    tally, printed = counts(both, method), printed_means(both, method)
    return [
        method,
        str(len(both)),
        "{:.1f} / {:.1f}".format(*shared_means(both, method)),
        "-" if printed is None else "{:.1f} / {:.1f}".format(*printed),
        f"{tally['above']} / {tally['level']} / {tally['below']}",
        test.words(),
        f"{np.median([row[method].mean('seconds') for row in both.values()]):.1f}",
    ]


def table5_lines(cells: Cells) -> tuple[list[str], list[list[str]]]:
    """Header and rows of Table 5: mean size of the model, and the paper's in brackets."""
    kernel_machines = [m for m in METHODS if m not in ("KNN", "1-NN")]
    methods = [m for m in kernel_machines if any(m in row for row in cells.values())]
    rows = []
    for name, row in cells.items():
        printed = paper.support_vectors(name)
        rows.append([name, *(_size(row.get(m), printed.get(m)) for m in methods)])
    return ["set", *methods], rows


def _size(cell: Cell | None, printed: int | None) -> str:
    if cell is None:
        return "-"
    return f"{cell.mean('size'):,.0f}" + (f" ({printed:,})" if printed else "")
