"""RankRC beside other libraries on the same rows: seconds, scoring speed, AUC, average precision.

- simulated: 1,000,000 x 40 and x 5 with 1,000 rare rows.
- growth: 5 dimensions, 1 percent rare, from 10,000 to 150,000 rows, where LIBSVM still finishes; it
  is stopped after `--limit` seconds (the other libraries after 120).
- kdd, cod_rna, donors, unsw: real sets (`benchmarks.data_sets` says how they are prepared), and
  parts of them with 50,000 training rows for LIBSVM.

LightGBM and XGBoost have their defaults, their weights, the setting that keeps leaves from holding
a few rare rows, and a random search that may take as long as RankRCCV. The first table has each
library at the setting that is best on the held-out rows, which flatters the other libraries.

RankRC has its defaults, and at most 1,000 landmarks on real rows; lam chosen by RankRCCV is a line
of its own, so are width and lam chosen on a part of the rows, and, beside LIBSVM, the lam that its
C = 1 stands for. Settings of the others are in `benchmarks/peers.py`.
"""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from benchmarks import data_sets, growth, simulated_fits
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from benchmarks.peers import TITLES

LIMIT = 300.0
OTHERS_LIMIT = 120.0  # of what is neither RankRC nor LIBSVM
GROWTH_ROWS = (10_000, 20_000, 50_000, 100_000, 150_000)
GROWTH_SHARE = 0.01
GROWTH_HELD_OUT = 40_000  # LIBSVM scores a few thousand rows a second
PART_ROWS = 50_000
# A cell is run again within this time; the ratios that matter most are on simulated rows.
SIMULATED_SECONDS = 25.0
REAL_SECONDS = 10.0
LANDMARKS = ("rare", 1000)
LIGHTGBM = (
    "lightgbm",
    "lightgbm_weighted",
    "lightgbm_child_weight",
    "lightgbm_slow",
    "lightgbm_tuned",
)
XGBOOST = ("xgboost", "xgboost_weighted", "xgboost_child_weight", "xgboost_tuned")
TREES = (*LIGHTGBM, *XGBOOST)
FAST = (*TREES, "linear_svc", "nystroem_sgd", "balanced_forest")
COMBINED = ("rare_classifier", "rare_classifier_20")
BESIDE_LIBSVM = ("rankrc", "rankrc_matched", "rankrc_least", "rankrc_part", "lightgbm", "libsvm")
REAL = ("kdd", "cod_rna", "donors", "unsw")


class Task(NamedTuple):
    """A data set with the methods that are tried on it and RankRC's parameters."""

    data: str
    methods: tuple[str, ...]
    options: dict[str, Any]
    rows: int
    features: int
    after: str | None = None  # LIBSVM is not tried when it was stopped on this set


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which data and methods."""
    parser.add_argument("--data", nargs="+", metavar="TEXT", help="sets whose name has the text")
    parser.add_argument("--methods", nargs="+", choices=list(TITLES), default=list(TITLES))
    parser.add_argument(
        "--limit", type=float, default=LIMIT, help=f"seconds of a fit (default: {LIMIT:g})"
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="of the simulated sets")
    parser.add_argument(
        "--growth-rows", type=int, nargs="+", default=GROWTH_ROWS, help="sizes for LIBSVM"
    )


def groups(args: argparse.Namespace) -> list[Group]:
    """A group for each data set: the methods take turns on it."""
    found = []
    for task in tasks(args):
        if args.data and not any(text in task.data for text in args.data):
            continue
        if not data_sets.is_available(task.data):
            print(f"left out: {task.data}, which is not in the folder that RARECLASS_DATA names")
            continue
        found.append(
            Group(
                title=task.data,
                cells=[_cell(args, task, m) for m in task.methods if m in args.methods],
                repeat_below=SIMULATED_SECONDS if "x" in task.data else REAL_SECONDS,
                preparations=[data_sets.preparation(task.data, args.scratch)],
            )
        )
    return found


def tasks(args: argparse.Namespace) -> Iterator[Task]:
    """All data sets with their methods."""
    fixed = {"lam": simulated_fits.LAM, "tol": simulated_fits.TOL}
    rare = max(2, args.rows // 1000)
    for features in (40, 5):
        name = data_sets.simulated_name(args.rows, features, rare)
        options = fixed | {"memory": simulated_fits.budget("all", args.rows, rare)}
        yield Task(
            name,
            ("rankrc", "rankrc_path", "rankrc_wide", "rankrc_part", *COMBINED, *FAST),
            options,
            args.rows,
            features,
        )
    before = None
    for rows in sorted(args.growth_rows):
        name = data_sets.simulated_name(rows, 5, round(rows * GROWTH_SHARE), GROWTH_HELD_OUT)
        yield Task(name, BESIDE_LIBSVM, fixed, rows, 5, before)
        before = name
    sizes = {"kdd": (145_586, 43), "cod_rna": (156_098, 8), "donors": (433_528, 10),
             "unsw": (66_730, 196)}  # fmt: skip
    for name in REAL:
        own = {"landmarks": LANDMARKS}
        yield Task(name, ("rankrc", "rankrc_cv", "rankrc_part", *FAST), own, *sizes[name])
        part = f"{name}-{PART_ROWS}"
        yield Task(part, BESIDE_LIBSVM, own, PART_ROWS, sizes[name][1])


def _key(data: str, method: str) -> str:
    return f"{data} / {method}"


def _cell(args: argparse.Namespace, task: Task, method: str) -> Cell:
    return simulated_fits.fit_cell(
        _key(task.data, method),
        task.data,
        method,
        args.scratch,
        task.options,
        about={"data": task.data, "method": method, "planned_rows": task.rows},
        limit=min(args.limit, OTHERS_LIMIT) if method in FAST else args.limit,
        after=_key(task.after, method) if method == "libsvm" and task.after else None,
    )


def render(runs: list[Run]) -> str:
    """A table for each data set, then LIBSVM's growth."""
    lines = summaries(runs)
    sets = list(dict.fromkeys(run["data"] for run in lines))
    parts = _at_their_best(sets, lines)
    parts += [_table_of(name, [run for run in lines if run["data"] == name]) for name in sets]
    return "\n\n".join([*parts, *libsvm_growth_table(lines)])


COLUMNS = {
    "RankRCCV": ("rankrc_part",),
    "LightGBM": LIGHTGBM,
    "XGBoost": XGBOOST,
    "balanced forest": ("balanced_forest",),
}


def best(lines: list[Run], data: str, methods: Sequence[str]) -> Run | None:
    """The finished run of highest average precision among some methods on a set."""
    done = [
        run
        for run in lines
        if run["data"] == data and run["method"] in methods and run["status"] == "ok"
    ]
    return max(done, key=lambda run: run["average_precision"], default=None)


def _at_their_best(sets: Sequence[str], lines: list[Run]) -> list[str]:
    """AUC, average precision and seconds of each library at its best setting, if it was run."""
    rows = []
    for data in sets:
        found = {title: best(lines, data, methods) for title, methods in COLUMNS.items()}
        if found["RankRCCV"] is None or found["XGBoost"] is None:
            continue
        one = found["RankRCCV"]
        name = f"{data.split('-')[0]}, {one['rows']:,} x {one['features']}, {one['rare']:,} rare"
        rows.append([name, *(_cell_of(run) for run in found.values())])
    if not rows:
        return []
    about = (
        "**Each library at the setting with the best average precision on the held-out rows**: "
        "AUC, average precision, seconds of the fit (with the search for tuned ones). RankRCCV is "
        "one setting, chosen on the training rows"
    )
    return [about + "\n\n" + table(["set", *COLUMNS], rows)]


def _cell_of(run: Run | None) -> str:
    if run is None:
        return "-"
    title = TITLES[run["method"]].partition(", ")[2].removeprefix("hist").lstrip(", ")
    named = f" ({title})" if title and not run["method"].startswith("rankrc") else ""
    return f"{run['auc']:.3f}, {run['average_precision']:.3f}, {run['seconds']:.1f} s{named}"


def _table_of(name: str, lines: list[Run]) -> str:
    finished = {run["method"]: run for run in lines if run["status"] == "ok"}
    base = finished.get("rankrc")
    header = [
        "method", "fit s", "fastest", "x RankRC", "peak MiB", "rows scored/s", "AUC", "AP",
    ]  # fmt: skip
    title = name
    if finished:
        one = next(iter(finished.values()))
        title = (
            f"{name}: {one['rows']:,} x {one['features']}, {one['rare']:,} rare, "
            f"{one['score_rows']:,} held out"
        )
    return f"**{title}**\n\n" + table(header, [_line(run, base) for run in lines])


def _line(run: Run, base: Run | None) -> list[str]:
    title = TITLES[run["method"]]
    if run["status"] == "stopped":
        return [title, f"stopped at {run['limit']:.0f}", *[""] * 6]
    if run["status"] != "ok":
        return [title, run["status"], *[""] * 6]
    if run["method"] == "rankrc_cv":
        title += f": 2^{run['details']['log2_lam']:.0f}"
    ratio = f"{run['seconds'] / base['seconds']:.2f}" if base else ""
    return [
        title,
        f"{run['seconds']:.2f}",
        f"{run['min_seconds']:.2f}",
        ratio,
        f"{run['peak_beyond_input'] / 2**20:,.0f}",
        f"{run['score_rows'] / run['score_seconds']:,.0f}",
        f"{run['auc']:.4f}",
        f"{run['average_precision']:.4f}",
    ]


def libsvm_growth(lines: list[Run]) -> dict[int, dict[str, float]]:
    """Rows: seconds of LIBSVM and of RankRC, at the sizes of the growth series they finished."""
    found: dict[int, dict[str, float]] = {}
    for run in lines:
        of_growth = run["data"].endswith(f"-test{GROWTH_HELD_OUT}") and run["status"] == "ok"
        if of_growth and run["method"] in ("libsvm", "rankrc"):
            found.setdefault(run["planned_rows"], {})[run["method"]] = run["seconds"]
    return found


def libsvm_growth_table(lines: list[Run]) -> list[str]:
    """LIBSVM's seconds by rows, beside RankRC's; empty where LIBSVM was not run."""
    both = {rows: own for rows, own in libsvm_growth(lines).items() if len(own) == 2}
    if not both:
        return []
    power = growth.exponent(list(both), [own["libsvm"] for own in both.values()])
    body = [
        [f"{rows:,}", f"{own['libsvm']:.2f}", f"{own['rankrc']:.2f}",
         f"{own['libsvm'] / own['rankrc']:.0f}"]
        for rows, own in both.items()
    ]  # fmt: skip
    line = "" if power is None else f", which grow as rows^{power:.2f} where it finished"
    return [
        f"**LIBSVM's growth**: seconds of a fit{line}\n\n"
        + table(["rows x 5, 1 % rare", "LIBSVM", "RankRC", "ratio"], body)
    ]
