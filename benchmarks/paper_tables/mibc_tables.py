"""Tables 2 to 5 of Grave and El Ghaoui (2014): the majority by its moments, beside liblinear.

mibc2 is the test AUC on dense sets and mibc3 the time of one fitted problem; mibc4 and mibc5 are
the same on text. The two tables of a study come from the same fits; a fit that is done is not done
again. Times want --jobs 1 and a quiet machine.

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
from benchmarks.paper_tables.fits import Fit, Fits, code_of
from benchmarks.paper_tables.mibc_figures import ByMethod, Times
from benchmarks.paper_tables.mibc_methods import COST, SQUARED, UNDER
from benchmarks.paper_tables.mibc_protocol import FIELDS, METHODS, Run, perform
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import JOBS, figure, options, print_table, run_all

NAMES = ("mibc2", "mibc3", "mibc4", "mibc5")
STUDIES = {"mibc2": "dense", "mibc3": "dense", "mibc4": "text", "mibc5": "text"}
PAPER_SPLITS = {"dense": 20, "text": 10}
SHORT_SPLITS = 3


def main(argv: Sequence[str], table: str) -> int:
    """Do the fits that are missing, print the table and the paper's."""
    study = STUDIES[table]
    args = _options(argv, study)
    folder = data_folder()
    if folder is None:
        print("Skipped: no data folder. Name it with the environment variable RARECLASS_DATA.")
        return 0
    runs = _runs(args, folder, study)
    if not runs:
        return 0
    name = f"mibc_{study}"
    fits = kept(name, Path(args.json) if args.json else record.RESULTS / f"{name}.json")
    to_do = runs if args.again else fits.missing(runs)
    try:
        run_all(f"Fits for {table}", perform, to_do, args.jobs, keep=fits.add)
    except KeyboardInterrupt:
        print(f"\nStopped. {fits.file} holds what is done; the same command goes on from there.")
        return 130
    found = fits.found(runs)
    show(found, table)
    if fits.are_old([fit for fit in found if fit["method"].startswith("MIBC")]):
        print("Some fits are by an MIBC that has been changed since: --again does them anew.")
    print("written:", fits.file)
    return 0


def kept(name: str, file: Path) -> Fits:
    """The fits of a study that are done."""
    return Fits(name, file, FIELDS, code_of("moments"))


def show(fits: list[Fit], table: str) -> None:
    """Print one of the tables, the goals and the paper's table."""
    found = figures.by_problem(fits)
    if table in ("mibc2", "mibc4"):
        print_table(*auc_table(found))
        print("p by the corrected test; † significantly above cost-sensitive and undersampling")
        for line in figures.verdicts(found):
            print(line)
    else:
        for name in figures.timed(found):
            print_table(*time_table(found, name))
            print(speed_line(found, name), end="\n\n")
    print("\nThe paper, on its own data:")
    print_table(*printed(table))


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


def time_table(found: dict[str, ByMethod], name: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows: milliseconds of one fitted problem at MIBC's C, and the speed-up."""
    lines = []
    for problem, methods in found.items():
        if name not in methods:
            continue
        fit = next(iter(methods[name].values()))
        took = figures.times(methods, name)
        peers = [_ms(took.peers.get(other)) for other in (COST, SQUARED, UNDER)]
        lines.append(
            [
                problem,
                f"{fit['rows']:,} x {fit['features']:,}",
                _ms(took.fit),
                _ms(took.solve),
                *peers,
                _times(took, took.fit),
                _times(took, took.solve),
            ]
        )
    header = [
        f"ms, {name}", "rows", "with moments", "moments known", COST, SQUARED, UNDER,
        "speed-up", "moments known",
    ]  # fmt: skip
    return header, lines


def speed_line(found: dict[str, ByMethod], name: str) -> str:
    """The speed-ups in one line."""
    median = figures.speed_ups(found, name)
    if not median:
        return "No cost-sensitive fits beside it: no speed-up."
    return (
        f"{name}: median speed-up over the faster cost-sensitive machine at the same C "
        f"{median['fit']:.1f} with moments, {median['solve']:.1f} with moments known"
    )


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


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}" if value >= 10.0 else f"{value:.2f}"


def _times(took: Times, value: float) -> str:
    ratio = took.speed_up(value)
    return "-" if ratio is None else f"{ratio:.1f}"


def _options(argv: Sequence[str], study: str) -> Any:
    sets = list(mibc_sets.TEXTS) if study == "text" else mibc_sets.dense_names()
    full = PAPER_SPLITS[study]
    args = options(
        __doc__ or "", list(METHODS[study]), argv, known=METHODS[study],
        jobs=JOBS,
        splits=(0, f"random splits (default: {SHORT_SPLITS}, or {full} with --full)"),
        sets=(sets, f"among {', '.join(sets)} (default: all)"),
        groups=(mibc_sets.GROUPS, "groups of each set of texts (default: 6)"),
        full=(False, "as many splits as the paper has"),
        again=(False, "do all fits anew"),
    )  # fmt: skip
    unknown = [name for name in args.sets if name not in sets]
    if unknown:
        raise SystemExit(f"no set {', '.join(unknown)}; there are {', '.join(sets)}")
    args.splits = args.splits or (full if args.full else SHORT_SPLITS)
    return args


def _runs(args: Any, folder: Path, study: str) -> list[Run]:
    """Problem by problem and split by split: what is compared is run side by side."""
    missing = [name for name in args.sets if not mibc_sets.is_there(name, folder)]
    if missing:
        print("Skipped, not in the data folder:", ", ".join(missing), file=sys.stderr)
    return [
        Run(folder, study, problem, method, number)
        for name in args.sets
        if name not in missing
        for problem in mibc_sets.problems(name, folder, args.groups)
        for number in range(args.splits)
        for method in args.methods
    ]
