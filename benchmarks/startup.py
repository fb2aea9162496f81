"""Seconds until rareclass is usable, in fresh processes: `python -m benchmarks.startup`.

Goals: ``import rareclass`` under 1 s, ``rareclass --help`` under 0.5 s. One unmeasured run of
each goes first, so that byte code is compiled and files are in the page cache; the interpreter's
own start is measured beside them.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from benchmarks import record


def _commands() -> dict[str, tuple[list[str], float | None]]:
    """Name -> (command, goal in seconds)."""
    script = Path(sys.executable).with_name("rareclass")
    return {
        "python -c pass": ([sys.executable, "-c", "pass"], None),
        "import rareclass": ([sys.executable, "-c", "import rareclass"], 1.0),
        "from rareclass import RankRC": (
            [sys.executable, "-c", "from rareclass import RankRC"],
            None,
        ),
        "rareclass --help": ([str(script), "--help"], 0.5),
    }


def _measure(command: list[str], repeats: int) -> list[float]:
    """Wall seconds of each of `repeats` fresh processes, after one warm-up."""
    seconds = []
    for attempt in range(repeats + 1):
        start = time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        if attempt:
            seconds.append(time.perf_counter() - start)
    return seconds


def main() -> int:
    """Measure, print, write results/startup.json."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.startup", description=__doc__)
    parser.add_argument("--repeats", type=int, default=9, help="processes per command")
    parser.add_argument("--json", metavar="FILE", help="default: benchmarks/results/startup.json")
    args = parser.parse_args()
    rows: list[dict[str, Any]] = []
    for name, (command, goal) in _commands().items():
        try:
            seconds = _measure(command, args.repeats)
        except (OSError, subprocess.CalledProcessError) as error:
            print(f"{name:30} could not run: {error}")
            rows.append({"command": name, "error": type(error).__name__})
            continue
        median = statistics.median(seconds)
        verdict = "" if goal is None else f"goal < {goal} s: {'yes' if median < goal else 'NO'}"
        print(f"{name:30} {median:6.3f} s   {verdict}")
        rows.append({"command": name, "median_seconds": median, "seconds": seconds, "goal": goal})
    print("written:", record.write("startup", {"rows": rows}, args.json))
    return 0


if __name__ == "__main__":
    sys.exit(main())
