"""From scores to decisions: thresholds under a constraint, tests of rankings, by simulation.

``constraints`` and ``paired`` are a command each.
"""

import argparse
from collections.abc import Callable
from typing import Any

from benchmarks import record


def command(
    name: str,
    about: str | None,
    measure: Callable[[int, int], dict[str, Any]],
    render: Callable[[dict[str, Any]], str],
    draws: int,
) -> int:
    """Measure as many draws as asked for, print the page, write results/`name`.json."""
    parser = argparse.ArgumentParser(
        description=about, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--draws", type=int, default=draws, help=f"default: {draws}")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", metavar="FILE", help=f"default: benchmarks/results/{name}.json")
    args = parser.parse_args()
    result = measure(args.draws, args.seed)
    print(render(result))
    print("written:", record.write(name, result, args.json))
    return 0
