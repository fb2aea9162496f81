"""What share of the machine's arithmetic and memory bandwidth a fit of RankRC reaches.

The rates of the machine (`benchmarks.rates`) and fits of simulated rows take turns; the least time
for the passes that each fit made (`benchmarks.roofline`) stands beside the time that it took.
"""

import argparse
from statistics import median

from benchmarks import data_sets, roofline, simulated_fits
from benchmarks.cells import Cell, Group
from benchmarks.ledger import Run, summaries
from benchmarks.markdown import table

FITS = (
    (40, "rankrc", "all"),
    (40, "rankrc", "256MiB"),
    (40, "rankrc_path", "all"),
    (5, "rankrc", "all"),
)
UNITS = {
    "sgemm_block": ("float32 product, 512 x d x 1000", "Gflop/s"),
    "sgemm": ("float32 product, 2048 square", "Gflop/s"),
    "dgemm": ("float64 product, 2048 square", "Gflop/s"),
    "sgemv_block": ("float32 product with a vector, in cache", "Gflop/s"),
    "exp": ("float32 exponentials, in cache", "G/s"),
    "read": ("reading memory", "GB/s"),
    "write": ("writing memory", "GB/s"),
    "first_touch": ("writing fresh memory", "GB/s"),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Size of the fits."""
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rare", type=int, default=1000)


def groups(args: argparse.Namespace) -> list[Group]:
    """One group: rates, fits, rates, fits."""
    sets = {d: data_sets.simulated_name(args.rows, d, args.rare) for d in (40, 5)}
    cells = [
        Cell(
            f"rates, d = {d}",
            "benchmarks.rates:measure",
            {"features": d},
            estimate=12.0,
            about={"features": d},
        )
        for d in sets
    ]
    for d, method, memory in FITS:
        budget = simulated_fits.budget(memory, args.rows, args.rare)
        options = {"lam": simulated_fits.LAM, "tol": simulated_fits.TOL, "memory": budget}
        cells.append(
            simulated_fits.fit_cell(
                f"{sets[d]}, {method}, memory {memory}",
                sets[d],
                method,
                args.scratch,
                options,
                score=False,
                about={"method": method, "memory": memory, "budget": options["memory"]},
                estimate=simulated_fits.seconds_of(method, args.rows, args.rare, memory == "all"),
                skip=simulated_fits.no_room(memory, args.rows, d, args.rare),
            )
        )
    preparations = [data_sets.preparation(name, args.scratch) for name in sets.values()]
    return [Group("rates and fits in turns", cells, preparations=preparations)]


def shares(runs: list[Run]) -> list[Run]:
    """Each fit with ``least`` (seconds by the roofline) and ``ratio`` (taken / least).

    The rates are the medians of the runs with the fit's number of features.
    """
    found = []
    for run in summaries(runs):
        if "method" not in run or run["status"] != "ok":
            continue
        rates = median_rates(runs, run["features"])
        if not rates:
            continue
        least = roofline.seconds(
            rates,
            run["rows"],
            run["features"],
            run["details"]["landmarks"],
            run["details"]["passes"],
            run["details"]["in_memory"],
            max(run["details"].get("passes_for_each_lam", [run["details"]["passes"]])),
        )
        found.append({**run, "least": least, "ratio": run["seconds"] / least})
    return found


def median_rates(runs: list[Run], features: int) -> dict[str, float]:
    """The median of each rate over the runs; empty when there is none."""
    own = [
        run
        for run in runs
        if "sgemm" in run and run["features"] == features and run["status"] == "ok"
    ]
    return {name: median(run[name] for run in own) for name in UNITS} if own else {}


def render(runs: list[Run]) -> str:
    """The rates, then the fits beside their limits."""
    parts = []
    for features in (40, 5):
        rates = median_rates(runs, features)
        if rates:
            body = [
                [text, f"{rates[name] / 1e9:.1f} {unit}"] for name, (text, unit) in UNITS.items()
            ]
            parts.append(f"Rates, d = {features}:\n\n" + table(["", "all threads"], body))
    body = [
        [
            run["key"],
            f"{run['details']['passes']:.1f}",
            f"{run['seconds']:.2f}",
            f"{run['least']:.2f}",
            f"{run['ratio']:.2f}",
        ]
        for run in shares(runs)
    ]
    header = ["fit", "passes", "seconds", "least for these passes", "ratio"]
    return "\n\n".join([*parts, table(header, body)])
