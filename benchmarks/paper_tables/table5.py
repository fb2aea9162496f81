"""Table 5: how many rows carry each model, on the real sets of Table 3 (section 6.2).

The fits are those of Table 4 (same options). The paper counts the kernel functions with a
non-zero coefficient; its RankSVM counts fall short of the training rows where the loss is flat.
"""

from collections.abc import Sequence

import numpy as np

from benchmarks import record
from benchmarks.paper_tables import paper
from benchmarks.paper_tables.study import parameters, print_table
from benchmarks.paper_tables.table4 import study


def main(argv: Sequence[str]) -> int:
    """Run, print beside the paper, write results/table5.json."""
    ran = study(argv, __doc__)
    if ran is None:
        return 0
    args, results = ran
    sets = {
        name: {
            method: {
                "mean": float(np.mean(cell["size"])),
                "paper": paper.support_vectors(name).get(method),
                "size": cell["size"],
            }
            for method, cell in methods.items()
        }
        for name, methods in results.items()
    }
    lines = [
        [name] + [f"{cell['mean']:,.0f} ({_printed(cell['paper'])})" for cell in methods.values()]
        for name, methods in sets.items()
    ]
    print_table(["ours (paper)", *args.methods], lines)
    path = record.write("table5", {"parameters": parameters(args), "sets": sets}, args.json)
    print("written:", path)
    return 0


def _printed(count: int | None) -> str:
    return "-" if count is None else f"{count:,}"
