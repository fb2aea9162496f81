"""Table 5: how many rows carry each model, on the real sets of Table 3 (section 6.2).

The models are those of Table 4: this command reads its stored splits and fits nothing. The paper
counts the kernel functions with a non-zero coefficient; its RankSVM counts fall short of the
training rows where the loss is flat.
"""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from benchmarks import record
from benchmarks.paper_tables.real_cells import cells_of, table5_lines
from benchmarks.paper_tables.study import print_table


def main(argv: Sequence[str]) -> int:
    """Print the sizes beside the paper's."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.paper_tables table5", description=__doc__
    )
    parser.add_argument(
        "--json", type=Path, default=record.RESULTS / "table4.json", help="results of Table 4"
    )
    file = parser.parse_args(argv).json
    if not file.is_file():
        print(f"No {file}: run `python -m benchmarks.paper_tables table4` first.")
        return 1
    print_table(*table5_lines(cells_of(json.loads(file.read_text())["runs"])))
    return 0
