"""Speed and memory as one page: `python -m benchmarks.performance_page` writes docs/performance.md.

Reads what `python -m benchmarks.run`, `benchmarks.mibc_speed` and `benchmarks.rach_speed` left in
benchmarks/results and measures nothing. A benchmark without a file is left out.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks import goals, mibc_page, peer_table, rach_page, record
from benchmarks.decisions import plan as decisions
from benchmarks.results_page import table
from benchmarks.run import BENCHMARKS, DISTURBED
from benchmarks.tabular import page as tabular_page

PAGE = Path(__file__).parents[1] / "docs" / "performance.md"
TITLES = {
    "scale": "Growth with rows",
    "peers": "Beside other libraries",
    "limits": "Beside the machine's limits",
    "disk": "From Parquet",
    "distributed": "On workers",
    "serving": "Behind HTTP",
}
BOOSTERS = "boosters"
# Other files of `benchmarks.run`, and benchmarks that are no part of it.
OTHERS = {
    BOOSTERS: (
        "Boosters at a practitioner's settings",
        "run peers --data 1000000x40 kdd --json benchmarks/results/boosters.json",
        lambda result: peer_table.render(result["runs"]),
    ),
    **tabular_page.SECTIONS,
    "decisions": (
        "From scores to decisions",
        "run decisions",
        lambda result: decisions.render(result["runs"]),
    ),
    "mibc_speed": mibc_page.SPEED,
    "rach_speed": rach_page.SPEED,
}
INTRODUCTION = """# Performance

Made by `python -m benchmarks.performance_page` from the JSON files in `benchmarks/results`, which
hold every single run, the package versions and the date. Each fit has a process of its own, and
methods take turns on the same standardised float32 rows with the same number of threads; seconds
are of the fit alone, the kernel included, after a tiny fit that loads what is loaded late. Machines
drift: compare figures of one table, not of two.
"""


def page(results: dict[str, dict[str, Any]]) -> str:
    """The whole page from the results by name."""
    parts = [INTRODUCTION]
    runs = {name: result["runs"] for name, result in results.items() if name in TITLES}
    boosters = results.get(BOOSTERS, {}).get("runs", [])
    reached = goals.lines({**runs, BOOSTERS: boosters})
    if reached:
        header = ["what", "goal", "measured", "reached"]
        parts.append(f"## Goals\n\n{table(header, reached)}\n")
    for name in runs:
        result = results[name]
        parts.append(f"## {TITLES[name]}\n\n{made(name, result)}\n\n{body(name, result)}\n")
    for name in [name for name in OTHERS if name in results]:
        title, command, render = OTHERS[name]
        result = results[name]
        parts.append(
            f"## {title}\n\n`python -m benchmarks.{command}`, {result['date']}, {result['cores']} "
            f"cores.\n\n{render(result)}\n"
        )
    return "\n".join(parts)


def made(name: str, result: dict[str, Any]) -> str:
    """Command, date, cores and the packages that matter."""
    packages = result["packages"]
    names = ("numpy", "scikit-learn", "numba", "lightgbm", "xgboost-cpu", "imbalanced-learn")
    versions = ", ".join(f"{n} {packages[n]}" for n in names if packages.get(n))
    threads = sorted({run["threads"] for run in result["runs"] if "threads" in run})
    used = ", ".join(map(str, threads))
    others = [run.get("cores_of_others") or 0.0 for run in result["runs"]]
    disturbed = sum(one > DISTURBED for one in others)
    return (
        f"`python -m benchmarks.run {name}`, {result['date']}, {result['cores']} cores, "
        f"threads: {used}. {versions}. Other programs kept more than {DISTURBED} cores busy in "
        f"{disturbed} of {len(others)} runs."
    )


def body(name: str, result: dict[str, Any]) -> str:
    """What the benchmark's own module makes of its runs."""
    return BENCHMARKS[name].render(result["runs"])


def main(argv: Sequence[str] | None = None) -> int:
    """Write docs/performance.md, or another file from other results."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.performance_page", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--results", type=Path, default=record.RESULTS, help="folder of JSON files")
    parser.add_argument("--out", type=Path, default=PAGE, help="default: docs/performance.md")
    args = parser.parse_args(argv)
    results = {}
    for name in (*TITLES, *OTHERS):
        path = args.results / f"{name}.json"
        if path.is_file():
            results[name] = json.loads(path.read_text())
        else:
            print(f"left out: {name}, which has no results")
    if not results:
        print("nothing written: run `python -m benchmarks.run` first")
        return 1
    record.replace_file(args.out, page(results).encode())
    print(f"wrote {args.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
