"""The command of a benchmark that repeats what it times, with files in a folder that goes again."""

import argparse
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks import record


def command(
    name: str,
    about: str | None,
    repeats: tuple[int, str],
    measure: Callable[[Path, int], list[dict[str, Any]]],
) -> int:
    """Measure in an empty folder, as often as asked for, and write results/`name`.json.

    `repeats` is how often by default, and of what.
    """
    often, what = repeats
    parser = argparse.ArgumentParser(prog=f"python -m benchmarks.{name}", description=about)
    parser.add_argument("--repeats", type=int, default=often, help=what)
    parser.add_argument("--json", metavar="FILE", help=f"default: benchmarks/results/{name}.json")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        rows = measure(Path(folder), args.repeats)
    print("written:", record.write(name, {"rows": rows}, args.json))
    return 0
