"""One pass of each learner of the CBR paper, side by side: `python -m benchmarks.cbr_speed`.

Figures 1 and 2 of Khalid, Ray and Chitsaz (2016): milliseconds of a fit on the training rows of a
fold, at the C or eta that cross-validation chose for it (``results/cbr_benchmark.json`` and
``cbr_text.json``). The learners take turns in one process with one thread, and the median of the
processor's time over all turns is shown: other programs may be at work beside. The paper says that
CBR is faster than OAM.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from benchmarks import record
from benchmarks.markdown import table
from benchmarks.paper_tables import cbr_methods, cbr_protocol, cbr_sets
from benchmarks.paper_tables.cbr_tables import SCALING
from benchmarks.paper_tables.protocol import needed_folder

RUN = 0
STUDIES = {
    "benchmark": (cbr_sets.BENCHMARK, cbr_methods.BENCHMARK, cbr_protocol.MOST_ROWS),
    "text": (cbr_sets.TEXT, cbr_methods.TEXT, cbr_protocol.MOST_TEXT_ROWS),
}


def chosen(study: str, name: str) -> dict[str, float]:
    """Learner -> its parameter in the first fold of the first run, of the finest grid."""
    fits = json.loads((record.RESULTS / f"cbr_{study}.json").read_text())["fits"]
    fits = [f for f in fits if f["set"] == name and f["run"] == RUN and f["scaling"] == SCALING]
    fits.sort(key=lambda fit: -fit["step"])
    return {fit["method"]: 2.0 ** fit["log2_param"][0] for fit in fits}


def measure(study: str, name: str, folder: Path, seconds: float) -> dict[str, Any]:
    """Median milliseconds of each learner on one set, in turns for about so long."""
    _, methods, most = STUDIES[study]
    parameters = chosen(study, name)
    rng = np.random.default_rng(RUN)
    rows = cbr_sets.drawn(cbr_sets.load(name, folder), most, rng)
    folds = StratifiedKFold(cbr_protocol.FOLDS, shuffle=True, random_state=RUN)
    train = rng.permutation(next(folds.split(rows.X, rows.y))[0])
    X, y = cbr_protocol.scaler(rows.X[train], SCALING)(rows.X[train]), rows.y[train]
    times: dict[str, list[float]] = {method: [] for method in methods if method in parameters}
    for method in times:
        methods[method](parameters[method], RUN).fit(X, y)  # compiled code is loaded
    end, turns = time.perf_counter() + seconds, 0
    while turns < 5 or (time.perf_counter() < end and turns < 200):
        for method in times:
            model = methods[method](parameters[method], RUN)
            start = time.process_time()
            model.fit(X, y)
            times[method].append(1000.0 * (time.process_time() - start))
        turns += 1
    found = {method: float(np.median(of)) for method, of in times.items()}
    return {
        "study": study, "set": name, "rows": len(y), "features": X.shape[1], "turns": turns,
        "ms": found,
    }  # fmt: skip


def table_of(cells: list[dict[str, Any]], study: str) -> tuple[list[str], list[list[str]]]:
    """Header and rows of one study: milliseconds."""
    cells = [cell for cell in cells if cell["study"] == study]
    methods = [m for m in STUDIES[study][1] if any(m in cell["ms"] for cell in cells)]
    lines = [
        [
            f"{cell['set']}, {cell['rows']:,} x {cell['features']:,}",
            *(f"{cell['ms'][m]:.1f}" if m in cell["ms"] else "-" for m in methods),
        ]
        for cell in cells
    ]
    return ["ms of a fit", *methods], lines


def ahead(cells: list[dict[str, Any]], study: str) -> list[str]:
    """On how many sets each CBR is faster than OAM, and where it is not."""
    lines = []
    for method in STUDIES[study][1]:
        ratios = {
            cell["set"]: cell["ms"]["OAM"] / cell["ms"][method]
            for cell in cells
            if cell["study"] == study and method in cell["ms"]
        }
        if method.startswith("CBR") and ratios:
            behind = ", ".join(f"{name} {r:.2f}" for name, r in ratios.items() if r <= 1.0)
            lines.append(
                f"{method} faster than OAM on {sum(r > 1.0 for r in ratios.values())} of "
                f"{len(ratios)} sets, {np.median(list(ratios.values())):.2f} times in the median"
                + (f"; slower: {behind}" if behind else "")
            )
    return lines


def main(argv: Sequence[str]) -> None:
    """Measure, print, store each set as it comes."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.cbr_speed", description=__doc__)
    parser.add_argument("--studies", nargs="+", choices=list(STUDIES), default=list(STUDIES))
    parser.add_argument("--sets", nargs="+", default=list(cbr_sets.SETS))
    parser.add_argument("--seconds", type=float, default=6.0, help="of turns on a set, about")
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    folder = needed_folder()
    cells: list[dict[str, Any]] = []
    with threadpool_limits(1):
        for study in options.studies:
            for name in STUDIES[study][0]:
                if name in options.sets and cbr_sets.is_there(name, folder):
                    cells.append(measure(study, name, folder, options.seconds))
                    record.write("cbr_speed", {"cells": cells}, options.json)
    for study in options.studies:
        print(table(*table_of(cells, study)))
        print("\n".join(ahead(cells, study)))


if __name__ == "__main__":
    main(sys.argv[1:])
