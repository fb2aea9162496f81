"""Time and memory of RankRC against rows, at several memory budgets.

The simulated study's generator in 40 dimensions, lam = 2^-8, kernel included:

- ``fixed``: 1,000 rare rows at every size, so that time should grow as the rows do.
- ``share``: 0.1 percent rare, so that rows and rare rows grow together and time as their product.
- ``landmarks``: 0.1 percent rare with landmarks=("rare", 1000).
- ``many_rare``: 50,000 rare rows, with landmarks=("rare", 2000).
- ``overlapping``: 1,000 rare rows in 5 dimensions, where the classes overlap.

What is left out unless ``--rows`` or ``--memory`` asks for it: a path beyond 1M rows or in bounded
memory, 1 GiB and the last three series at the sizes that say least, ``share`` beyond 2M.
"""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from benchmarks import data_sets, growth, simulated_fits
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table
from rareclass.machine import parse_bytes

ROWS = (125_000, 250_000, 500_000, 1_000_000, 2_000_000, 4_000_000)
WHAT = {"fit": "rankrc", "path": "rankrc_path", "folds": "rankrc_cv"}
MILLION = 1_000_000
EVERY = (0, 4 * MILLION)
SMALL = (0, MILLION)
ONE = (MILLION, MILLION)
RARE = 1000
SHARE = 0.001
MIB = 2**20


class Series(NamedTuple):
    """How the data and the model go with the rows."""

    features: int
    rare: int | None  # None: SHARE of the rows
    landmarks: int | None  # None: all rare rows
    grid: dict[str, dict[str, tuple[int, int]]]  # what: memory: rows from, to


SERIES = {
    "fixed": Series(
        40,
        RARE,
        None,
        {
            "fit": {"all": EVERY, "1GiB": ONE, "256MiB": EVERY},
            "path": {"all": SMALL, "256MiB": ONE},
            "folds": {"1GiB": ONE},
        },
    ),
    "share": Series(40, None, None, {"fit": {"1GiB": (500_000, 2 * MILLION)}}),
    "landmarks": Series(40, None, RARE, {"fit": {"256MiB": (4 * MILLION, 4 * MILLION)}}),
    "many_rare": Series(40, 50_000, 2 * RARE, {"fit": {"2GiB": ONE}}),
    "overlapping": Series(
        5, RARE, None, {"fit": {"all": ONE, "256MiB": ONE}, "path": {"all": ONE, "256MiB": ONE}}
    ),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which part of the grid."""
    parser.add_argument("--rows", type=int, nargs="+", help="sizes (default: 125k to 4M)")
    parser.add_argument("--memory", nargs="+", help="budgets, such as all 1GiB 256MiB")
    parser.add_argument("--what", nargs="+", choices=list(WHAT), default=list(WHAT))
    parser.add_argument("--series", nargs="+", choices=list(SERIES), default=list(SERIES))


def groups(args: argparse.Namespace) -> list[Group]:
    """A group for each data set: budgets and tasks take turns on it."""
    found = []
    for rows in args.rows or ROWS:
        for name in args.series:
            series = SERIES[name]
            data = data_sets.simulated_name(rows, series.features, _rare(series, rows))
            found.append(
                Group(
                    title=f"{name}, {rows:,} rows",
                    cells=list(_cells(args, name, rows, data)),
                    preparations=[data_sets.preparation(data, args.scratch)],
                )
            )
    return found


def _cells(args: argparse.Namespace, name: str, rows: int, data: str) -> Iterator[Cell]:
    series = SERIES[name]
    rare = _rare(series, rows)
    landmarks = min(rare, series.landmarks or rare)
    for what in args.what:
        planned = series.grid.get(what, {})
        for memory in planned if args.memory is None else args.memory:
            first, last = planned.get(memory, EVERY)
            if not (args.rows or first <= rows <= last):
                continue
            budget = simulated_fits.budget(memory, rows, landmarks)
            options: dict[str, Any] = {
                "lam": simulated_fits.LAM,
                "tol": simulated_fits.TOL,
                "memory": budget,
            }
            if series.landmarks:
                options["landmarks"] = ["rare", series.landmarks]
            yield simulated_fits.fit_cell(
                f"{name}, {rows:,} x {series.features}, {what}, memory {memory}",
                data,
                WHAT[what],
                args.scratch,
                options,
                score=False,
                about={
                    "series": name,
                    "what": what,
                    "memory": memory,
                    "budget": parse_bytes(budget),
                },
                skip=simulated_fits.no_room(memory, rows, series.features, landmarks),
            )


def _rare(series: Series, rows: int) -> int:
    return series.rare or max(1, round(rows * SHARE))


def render(runs: list[Run]) -> str:
    """Every cell, then the exponents."""
    lines = summaries(runs)
    body = [_line(run) for run in lines]
    header = [
        "series", "what", "memory", "rows", "rare", "seconds", "fastest", "runs", "passes",
        "MiB beyond the input", "of that beyond the budget",
    ]  # fmt: skip
    return (
        'Seconds are the median of the runs. The memory budget "all" is room for the whole '
        "kernel. Memory is what the process held at its peak above the loaded rows.\n\n"
        + table(header, body)
        + "\n\nExponent p of seconds = c x rows^p:\n\n"
        + table(["series", "what", "memory", "from rows", "to", "p"], _exponents(lines))
    )


def _line(run: Run) -> list[str]:
    name = [run["series"], run["what"], run["memory"]]
    if run["status"] != "ok":
        rows = run["key"].split(", ", 1)[1].split(" x ")[0]
        return [*name, rows, "", f"{run['status']}: {run.get('message', '')}", *[""] * 5]
    peak = run["peak_beyond_input"]
    beyond = "" if run["memory"] == "all" else f"{(peak - run['budget']) / MIB:,.0f}"
    return [
        *name,
        f"{run['rows']:,}",
        f"{run['rare']:,}",
        f"{run['seconds']:.2f}",
        f"{run['min_seconds']:.2f}",
        str(run["n_runs"]),
        f"{run['details']['passes']:.1f}",
        f"{peak / MIB:,.0f}",
        beyond,
    ]


def _exponents(lines: list[Run]) -> list[list[str]]:
    found = []
    finished = [run for run in lines if run["status"] == "ok"]
    kinds = dict.fromkeys((run["series"], run["what"], run["memory"]) for run in finished)
    for kind in kinds:
        own = [run for run in finished if (run["series"], run["what"], run["memory"]) == kind]
        sizes = [run["rows"] for run in own]
        power = growth.exponent(sizes, [run["seconds"] for run in own])
        if power is not None:
            found.append([*kind, f"{min(sizes):,}", f"{max(sizes):,}", f"{power:.2f}"])
    return found
