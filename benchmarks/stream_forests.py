"""The mixture beside River's trees and Vowpal Wabbit: `python -m benchmarks.stream_forests`.

The nine streams of `benchmarks.stream_mixture`, the first rows of each and the same rows for all
ways: as they are, and with a drift put in. A drift gives every column the cells of another one,
by one random permutation without a fixed point: in all rows from the middle on (abrupt), or in a
share of the rows that rises from 0 to 1 over the middle third (gradual). Each row is scored before
it is learned. Every way has its defaults and reads the same standardised columns. Vowpal Wabbit is
left out where it is not installed (`pip install vowpalwabbit`), and the table says so.

River's forests see a few hundred rows a second: every stream is stored when it is done, and a run
goes on where its file stops.
"""

import argparse
import json
import sys
from collections.abc import Callable
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import rankdata

from benchmarks import record, stream_mixture
from benchmarks.paper_tables.protocol import needed_folder
from benchmarks.paper_tables.study import print_table
from benchmarks.stream_mixture import MIXTURE, Stream, measured
from rareclass.online import OnlineMixture

DRIFTS = ("none", "abrupt", "gradual")
FORESTS = ("adaptive random forest", "streaming random patches", "aggregated Mondrian forest")
MEASURES = {"auc": "AUC", "ap": "average precision", "precision_at_100": "precision at 100"}
HEADER = [
    "drift",
    "way",
    "streams",
    *(f"{name}: rank, mean" for name in MEASURES.values()),
    "times slower",
]


def drifted(stream: Stream, drift: str) -> Stream:
    """The stream with its columns exchanged in the rows that a drift has reached."""
    n, d = stream.X.shape
    rng = np.random.default_rng(0)
    order = rng.permutation(d)
    other = np.empty(d, dtype=int)
    other[order] = np.roll(order, 1)  # one cycle: no column stays where it is
    reached = {
        "none": np.zeros(n),
        "abrupt": (np.arange(n) >= n // 2).astype(float),
        "gradual": np.clip(3.0 * np.arange(n) / n - 1.0, 0.0, 1.0),
    }[drift]
    moved = rng.random(n) < reached
    return stream._replace(X=np.where(moved[:, None], stream.X[:, other], stream.X))


def ways() -> dict[str, Callable[[Stream], np.ndarray]]:
    """Everything that is compared: the scores of a stream, each given before its row is learned."""
    found: dict[str, Callable[[Stream], np.ndarray]] = {MIXTURE: mixture}
    for name, model in river().items():
        found[name] = lambda stream, model=model: by_row(model(), stream)
    if find_spec("vowpalwabbit"):
        found["Vowpal Wabbit"] = vowpal_wabbit
    return found


def mixture(stream: Stream) -> np.ndarray:
    """The mixture with its defaults."""
    model = OnlineMixture(random_state=0).start(stream.X.shape[1], [False, True])
    scores: np.ndarray = model.test_then_train(stream.X, stream.rare)
    return scores


def river() -> dict[str, Callable[[], Any]]:
    """River's trees and forests with their defaults."""
    from river import ensemble, forest, tree

    return {
        "Hoeffding tree": tree.HoeffdingTreeClassifier,
        "adaptive Hoeffding tree": lambda: tree.HoeffdingAdaptiveTreeClassifier(seed=0),
        FORESTS[0]: lambda: forest.ARFClassifier(seed=0),
        FORESTS[1]: lambda: ensemble.SRPClassifier(seed=0),
        FORESTS[2]: lambda: forest.AMFClassifier(seed=0),
    }


def by_row(model: Any, stream: Stream) -> np.ndarray:
    """A River classifier's probability of the rare class, row by row."""
    scores = np.zeros(len(stream.X))
    pairs = zip(stream.X.tolist(), stream.rare.tolist(), strict=True)
    for t, (cells, label) in enumerate(pairs):
        row = dict(enumerate(cells))
        # A class that was never seen has no probability yet.
        scores[t] = model.predict_proba_one(row).get(True, 0.0)
        model.learn_one(row, label)
    return scores


def vowpal_wabbit(stream: Stream) -> np.ndarray:
    """Vowpal Wabbit's logistic regression with its defaults, row by row."""
    from vowpalwabbit import Workspace

    workspace = Workspace(loss_function="logistic", quiet=True)
    scores = np.empty(len(stream.X))
    pairs = zip(stream.X.tolist(), stream.rare.tolist(), strict=True)
    for t, (cells, label) in enumerate(pairs):
        text = "| " + " ".join(f"{name}:{cell:.6g}" for name, cell in enumerate(cells))
        scores[t] = workspace.predict(text)
        workspace.learn(f"{1 if label else -1} {text}")
    workspace.finish()
    return scores


def measure(name: str, drift: str, most: int) -> list[dict[str, Any]]:
    """All ways through one stream."""
    stream = drifted(stream_mixture.read(name, most), drift)
    facts = {"set": name, "drift": drift, "rows": len(stream.X), "rare": int(stream.rare.sum())}
    return [
        {**facts, "way": way, **measured(stream, lambda run=run: run(stream))}
        for way, run in ways().items()
    ]


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Mean rank and mean of each measure by drift and way, and the mixture's rows/s to a way's.

    Ranks are among the ways of one stream, 1 is best, ties share their mean. The rate is the
    geometric mean over the streams. A way that some stream of a drift lacks is left out of it.
    """
    rows = []
    for drift in dict.fromkeys(cell["drift"] for cell in cells):
        found = {(cell["set"], cell["way"]): cell for cell in cells if cell["drift"] == drift}
        sets, ways = (list(dict.fromkeys(key[k] for key in found)) for k in (0, 1))
        ways = [way for way in ways if all((name, way) in found for name in sets)]
        values = {
            measure: np.array([[found[name, way][measure] for way in ways] for name in sets])
            for measure in (*MEASURES, "rows_per_s")
        }
        rates = values.pop("rows_per_s")
        times = np.exp(np.log(rates[:, :1] / rates).mean(axis=0))
        ranks = [rankdata(-table, axis=1).mean(axis=0) for table in values.values()]
        for k, way in enumerate(ways):
            shown = [
                f"{rank[k]:.1f}, {table[:, k].mean():.3f}"
                for rank, table in zip(ranks, values.values(), strict=True)
            ]
            rows.append([drift, way, str(len(sets)), *shown, f"{times[k]:.3g}"])
    return rows


def main(argv: list[str]) -> int:
    """Measure what is not in the file yet, print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stream_forests", description=__doc__
    )
    parser.add_argument("--sets", type=lambda t: t.split(","), default=list(stream_mixture.SETS))
    parser.add_argument("--drifts", type=lambda t: t.split(","), default=list(DRIFTS))
    parser.add_argument("--rows", type=int, default=30_000, help="of each stream (30000)")
    parser.add_argument("--json", metavar="FILE", help="default: results/stream_forests.json")
    options = parser.parse_args(argv)
    needed_folder()
    file = Path(options.json or record.RESULTS / "stream_forests.json")
    cells: list[dict[str, Any]] = []
    if file.is_file():
        before = json.loads(file.read_text())
        if before["most_rows"] != options.rows:
            sys.exit(f"{file} has streams of {before['most_rows']} rows: name another file.")
        cells = before["cells"]
    rng = np.random.default_rng(0)
    mixture(Stream(rng.random((2000, 2)), rng.random(2000) < 0.1, np.zeros(2000)))  # compiles
    there = {(cell["set"], cell["drift"]) for cell in cells}
    for drift, name in product(options.drifts, options.sets):
        if (name, drift) not in there:
            cells += measure(name, drift, options.rows)
            record.write("stream_forests", {"most_rows": options.rows, "cells": cells}, file)
    print_table(HEADER, lines(cells))
    if not any(cell["way"] == "Vowpal Wabbit" for cell in cells):
        print("Vowpal Wabbit is not installed: left out.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
