"""From scores to decisions: probabilities, thresholds under a constraint, tests of rankings.

Each part is a process: ``calibration`` on real sets, ``constraints``, ``paired`` and ``folds`` by
simulation. `benchmarks/decisions` has a module for
each.
"""

import argparse
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from benchmarks.cells import Cell, Group
from benchmarks.ledger import Run

# Draws of a part unless told otherwise.
PARTS = {
    "calibration": 2,
    "constraints": 200,
    "paired": 200,
    "folds": 200,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Which parts, and how much of each."""
    parser.add_argument("--what", nargs="+", choices=list(PARTS), default=list(PARTS),
                        metavar="PART", help=f"of {', '.join(PARTS)} (default: all)")  # fmt: skip
    parser.add_argument("--draws", type=int, help="of every part: splits, or simulated samples")
    parser.add_argument("--seed", type=int, default=0)


def groups(args: argparse.Namespace) -> list[Group]:
    """One cell a part that there is."""
    there = [part for part in args.what if find_spec(f"benchmarks.decisions.{part}")]
    cells = [
        Cell(
            part,
            "benchmarks.decisions.plan:measured",
            {"part": part, "draws": args.draws or PARTS[part], "seed": args.seed},
            limit=3600.0,
        )
        for part in there
    ]
    return [Group("From scores to decisions", cells, repeats=1)]


def measured(part: str, draws: int, seed: int, threads: int, limit: float) -> dict[str, Any]:
    """What a part measures, as the ledger keeps it."""
    return {"result": import_module(f"benchmarks.decisions.{part}").measure(draws, seed)}


def render(runs: list[Run]) -> str:
    """The parts that were measured, in order."""
    done = {run["key"]: run["result"] for run in runs if run["status"] == "ok"}
    return "\n\n".join(
        f"### {part.replace('_', ' ').capitalize()}\n\n"
        f"`python -m benchmarks.run decisions --what {part}`\n\n"
        + import_module(f"benchmarks.decisions.{part}").render(done[part])
        for part in PARTS
        if part in done
    )
