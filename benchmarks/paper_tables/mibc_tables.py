"""Tables 2 to 5 of Grave and El Ghaoui (2014): the majority by its moments, beside liblinear.

mibc2 is the test AUC on dense sets, mibc4 the same on text; a fit that is done is not done again.
The times of Tables 3 and 5 are those of `benchmarks.mibc_real_speed`, at what these fits chose.

Without --full: 3 splits. With it the paper's 20, or 10 of text.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import record
from benchmarks.paired_test import Paired
from benchmarks.paper_tables import mibc_figures as figures
from benchmarks.paper_tables import mibc_sets, paper
from benchmarks.paper_tables.fits import Fits, Run, code_of
from benchmarks.paper_tables.mibc_figures import ByMethod
from benchmarks.paper_tables.mibc_methods import COST, UNDER
from benchmarks.paper_tables.mibc_protocol import FIELDS, METHODS, perform
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.paper_tables.study import JOBS, figure, options

STUDIES = {"mibc2": "dense", "mibc4": "text"}
NAMES = tuple(STUDIES)
PAPER_SPLITS = {"dense": 20, "text": 10}
SHORT_SPLITS = 3


def main(argv: Sequence[str], table: str) -> Path | None:
    """Do the fits that are missing."""
    study = STUDIES[table]
    args = _options(argv, study)
    name = f"mibc_{study}"
    fits = kept(name, Path(args.json) if args.json else record.RESULTS / f"{name}.json")
    return fits.finish(_runs(args, needed_folder()), perform, args, ours="MIBC")


def kept(name: str, file: Path) -> Fits:
    """The fits of a study that are done."""
    return Fits(name, file, FIELDS, code_of("moments"))


def auc_table(found: dict[str, ByMethod]) -> tuple[list[str], list[list[str]]]:
    """Header and rows: test AUC in percent, and p of MIBC against the two others."""
    names, forms = figures.methods_of(found), figures.ours(found)
    lines = []
    for problem, methods in found.items():
        fit = next(iter(next(iter(methods.values())).values()))
        cells = [_auc(methods, name) for name in names]
        tests = [_p(figures.against(methods, name, o)) for name in forms for o in (COST, UNDER)]
        splits = max(len(fits) for fits in methods.values())
        lines.append(
            [problem, f"{fit['positives'][0]}/{fit['rows']:,}", *cells, *tests, str(splits)]
        )
    what = {COST: "cost", UNDER: "under"}
    tests = [f"p, {name} : {what[o]}" for name in forms for o in (COST, UNDER)]
    return ["test AUC", "pos./rows", *names, *tests, "splits"], lines


def printed(table: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of the paper's table."""
    rows = paper.moment_figures(table)
    if table in ("mibc2", "mibc4"):
        methods = list(next(iter(rows.values())))
        return (
            ["paper, AUC", *methods],
            [[name, *(figure(tuple(cells[m])) for m in methods)] for name, cells in rows.items()],
        )
    lines = [
        [name, f"{ms['MIBC']:,}", f"{ms[COST]:,}", f"{ms[COST] / ms['MIBC']:.1f}"]
        for name, ms in rows.items()
    ]
    return ["paper, ms", "MIBC", COST, "speed-up"], lines


def _auc(methods: ByMethod, name: str) -> str:
    if name not in methods:
        return "-"
    mark = "†" if name.startswith("MIBC") and figures.is_best(methods, name) else ""
    return figure(figures.mean(methods[name])) + mark


def _p(test: Paired | None) -> str:
    if test is None or test.p is None:
        return "-"
    return f"{'+' if test.difference >= 0.0 else '-'} {test.p:.1g}"


def _options(argv: Sequence[str], study: str) -> Any:
    sets = list(mibc_sets.TEXTS) if study == "text" else mibc_sets.dense_names()
    full = PAPER_SPLITS[study]
    args = options(
        __doc__ or "", list(METHODS[study]), argv, known=METHODS[study],
        jobs=JOBS,
        splits=(0, f"random splits (default: {SHORT_SPLITS}, or {full} with --full)"),
        sets=(sets, f"among {', '.join(sets)} (default: all)", sets),
        groups=(mibc_sets.GROUPS, "groups of each set of texts (default: 6)"),
        full=(False, "as many splits as the paper has"),
        again=(False, "do all fits anew"),
    )  # fmt: skip
    args.splits = args.splits or (full if args.full else SHORT_SPLITS)
    return args


def _runs(args: Any, folder: Path) -> list[Run]:
    """Problem by problem and split by split: what is compared is run side by side."""
    missing = [name for name in args.sets if not mibc_sets.is_there(name, folder)]
    if missing:
        print("Skipped, not in the data folder:", ", ".join(missing), file=sys.stderr)
    return [
        Run(folder, {"problem": problem, "split": number, "method": method})
        for name in args.sets
        if name not in missing
        for problem in mibc_sets.problems(name, folder, args.groups)
        for number in range(args.splits)
        for method in args.methods
    ]
