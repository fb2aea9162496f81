"""The comparison of the RACH paper's section VI: F1 of a rare class from a few labels.

One majority class against one rare class, 5 to 25 percent of the rows of each labelled, the F1 of
the rare class on all other rows: RACH as the paper has it, RACHCV, and the methods that the paper
compares with. Each fit is kept as soon as it is done and is not done again; two processes may work
at it at a time, one at the others and one at RACHCV.

Without --full: 3 splits. With it 10.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import record
from benchmarks.paper_tables import rach_figures as figures
from benchmarks.paper_tables import rach_sets
from benchmarks.paper_tables.fits import Fit, Fits, Run, code_of
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.rach_figures import Cell, Key
from benchmarks.paper_tables.rach_methods import METHODS, RACH
from benchmarks.paper_tables.rach_protocol import FIELDS, SHARES, perform
from benchmarks.paper_tables.study import JOBS, options

NAME = "rach"
NAMES = (NAME,)
FULL_SPLITS, SHORT_SPLITS = 10, 3


def main(argv: Sequence[str], table: str = NAME) -> Path | None:
    """Do the fits that are missing."""
    args = _options(argv)
    fits = kept(Path(args.json) if args.json else record.RESULTS / f"{NAME}.json")
    return fits.finish(_runs(args, data_folder()), perform, args, ours=RACH)


def kept(file: Path) -> Fits:
    """The fits that are done."""
    return Fits(NAME, file, FIELDS, code_of("hyperball"))


def place(fit: Fit) -> tuple[int, int, int]:
    """Where a fit is in the order of the command."""
    problems = [problem for name in rach_sets.SETS for problem in rach_sets.problems(name)]
    return problems.index(fit["problem"]), fit["share"], list(METHODS).index(fit["method"])


def problem_table(fits: list[Fit]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: mean F1 over the shares, and at how many of them RACHCV is first."""
    cells = figures.by_cell(fits)
    names = figures.methods_of(cells)
    sizes = {fit["problem"]: f"{fit['rare']}/{fit['rows']:,}" for fit in fits}
    lines = []
    for problem, size in sizes.items():
        own = {key: cell for key, cell in cells.items() if key.problem == problem}
        lines.append([problem, size, *_means(own, names), _firsts(own)])
    return ["F1, mean over shares", "rare/rows", *names, f"{RACH} first"], lines


def share_table(cells: dict[Key, Cell]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: mean F1 over the problems at each share."""
    names = figures.methods_of(cells)
    lines = []
    for share in sorted({key.share for key in cells}):
        own = {key: cell for key, cell in cells.items() if key.share == share}
        lines.append([f"{share} %", *_means(own, names), _firsts(own)])
    return ["F1, mean over problems", *names, f"{RACH} first"], lines


def standing_table(cells: dict[Key, Cell]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: cells in which each method is at the top."""
    header = ["method", "first", "first or not behind", "mean F1", f"{RACH} minus it"]
    lines = []
    for name, one in figures.standings(cells).items():
        own = [name, str(one.first), f"{one.top} of {one.cells}"]
        gain = one.behind.words() if one.behind else "-"
        lines.append([*own, f"{one.mean:.1f}", gain])
    return header, lines


def _means(cells: dict[Key, Cell], names: list[str]) -> list[str]:
    found = []
    for name in names:
        values = [figures.mean(cell, name) for cell in cells.values() if name in cell]
        found.append(f"{np.mean(values):.1f}" if values else "-")
    return found


def _firsts(cells: dict[Key, Cell]) -> str:
    """In how many of the cells in which it was run RACHCV is first, alone or with others."""
    own = [cell for cell in cells.values() if RACH in cell]
    best = [max(figures.mean(cell, name) for name in cell) for cell in own]
    n_first = sum(figures.mean(cell, RACH) == top for cell, top in zip(own, best, strict=True))
    return f"{n_first} of {len(own)}" if own else "-"


def _options(argv: Sequence[str]) -> Any:
    args = options(
        __doc__ or "", list(METHODS), argv, known=METHODS,
        jobs=JOBS,
        splits=(0, f"random splits (default: {SHORT_SPLITS}, or {FULL_SPLITS} with --full)"),
        sets=(list(rach_sets.SETS), f"among {', '.join(rach_sets.SETS)} (default: all)",
              rach_sets.SETS),
        shares=([str(share) for share in SHARES], "labelled rows in percent (default: all five)"),
        full=(False, f"{FULL_SPLITS} splits"),
        again=(False, "do all fits anew"),
    )  # fmt: skip
    wrong = [share for share in args.shares if not (share.isdigit() and 0 < int(share) < 100)]
    if wrong:
        raise SystemExit(f"--shares takes whole percents from 1 to 99, not {', '.join(wrong)}")
    args.splits = args.splits or (FULL_SPLITS if args.full else SHORT_SPLITS)
    return args


def _runs(args: Any, folder: Path | None) -> list[Run]:
    """Problem by problem and share by share: what is compared is run side by side."""
    missing = [name for name in args.sets if not rach_sets.is_there(name, folder)]
    if missing:
        print("Skipped, not in the data folder:", ", ".join(missing), file=sys.stderr)
        print("Name the folder with the environment variable RARECLASS_DATA.", file=sys.stderr)
    return [
        Run(folder, dict(zip(FIELDS, (problem, int(share), method, args.splits), strict=True)))
        for name in args.sets
        if name not in missing
        for problem in rach_sets.problems(name)
        for share in args.shares
        for method in args.methods
    ]
