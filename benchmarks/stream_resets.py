"""Whether steps are to be reset where a stream drifts: `python -m benchmarks.stream_resets`.

The streams of `benchmarks.stream_mixture`, of fraud_stream the first 200,000 rows, as they are and
with the drifts of `benchmarks.stream_forests`. Everything is as `rareclass stream` has it: its
encoder, its window of 10,000 rows, its column drift, its falls and its alarm, looked at when a
window ends. A learner only has drift reported, or has its steps reset when the alarm rings. That
resetting is the default was chosen on CHOSEN_ON; the other four sets are the judge.
"""

import argparse
import sys
from itertools import product
from typing import Any

import numpy as np

from benchmarks import record, stream_mixture, stream_river
from benchmarks.paper_tables.protocol import data_folder
from benchmarks.paper_tables.study import print_table
from benchmarks.stream_forests import DRIFTS, MEASURES, drifted
from benchmarks.stream_mixture import FRAUD, Stream, measured
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.online import CBR, OnlineLogistic, OnlineMixture
from rareclass.online.ranker import OnlineRanker
from rareclass.stream.drift import BestWindows, ColumnCounts, DriftAlarm, Window
from rareclass.tables.batch import Batch

CHOSEN_ON = (*stream_mixture.CHOSEN_ON, FRAUD)
FRAUD_ROWS, WINDOW, TOP, HALF_LIFE = 200_000, 10_000, 100, 100_000
# What the verb begins with, and what its single learners are; each with its usual tails.
WAYS: dict[str, tuple[OnlineRanker, str]] = {
    "mixture": (OnlineMixture(random_state=0), "linear"),
    "CBR": (CBR(**stream_river.OF_STREAMS, random_state=0), "asinh"),
    "logistic regression": (OnlineLogistic(random_state=0), "asinh"),
}
HEADER = [
    "drift",
    "learner",
    "on",
    *(f"{name}: reported, reset" for name in MEASURES.values()),
    "resets a stream",
]


def through(stream: Stream, way: str, resets: bool) -> tuple[np.ndarray, int]:
    """The scores of a stream, each given before its row is learned, and how often alarm rang."""
    names = [f"c{j}" for j in range(stream.X.shape[1])]
    learner, tails = WAYS[way]
    encoder = OnlineEncoder(Schema("y", dict.fromkeys(names, "number")), 32, HALF_LIFE, tails)
    learner.start(len(names), [False, True])
    window, best, alarm = Window(WINDOW, TOP), BestWindows(), DriftAlarm()
    drift, scores = ColumnCounts(WINDOW, HALF_LIFE), np.empty(len(stream.X))
    for start in range(0, len(scores), WINDOW):
        rows = slice(start, min(start + WINDOW, len(scores)))
        numbers = np.arange(rows.start, rows.stop)
        cells = {name: np.ascontiguousarray(stream.X[rows, j]) for j, name in enumerate(names)}
        batch = Batch(cells, numbers, "", [], len(numbers), {})
        encoded = encoder.encode(batch)
        drift.add(batch, encoded, encoder)
        scores[rows] = learner.test_then_train(encoded.X, stream.rare[rows])
        if start:
            best.look(window)
        window.add(scores[rows], stream.rare[rows])
        if len(numbers) < WINDOW:
            break
        drift.end_segment(encoder)
        moved, falls = drift.moves(encoder), best.falls(window)
        rings = alarm.rings(rows.stop, moved, falls, len(names))
        if rings and resets:
            learner.reset_steps()
    return scores, alarm.count


def measure(name: str, drift: str) -> list[dict[str, Any]]:
    """All learners through one stream, with steps reset and without."""
    stream = drifted(stream_mixture.read(name, FRAUD_ROWS if name == FRAUD else None), drift)
    facts = {"set": name, "drift": drift, "rows": len(stream.X), "rare": int(stream.rare.sum())}
    cells = []
    for way, resets in product(WAYS, (False, True)):
        scores, count = through(stream, way, resets)
        found = measured(stream, lambda scores=scores: scores)
        del found["rows_per_s"]  # nothing is timed here
        cells.append({**facts, "way": way, "resets": count if resets else 0, **found})
        cells[-1]["on_drift"] = "reset" if resets else "report"
    return cells


def lines(cells: list[dict[str, Any]]) -> list[list[str]]:
    """Means over the sets chosen on and over the others, of drift reported and of steps reset."""
    rows = []
    for drift, way, chosen in product(DRIFTS, WAYS, (True, False)):
        of_both = [
            [
                cell
                for cell in cells
                if (cell["drift"], cell["way"], cell["on_drift"]) == (drift, way, on_drift)
                and (cell["set"] in CHOSEN_ON) == chosen
            ]
            for on_drift in ("report", "reset")
        ]
        if not of_both[0]:
            continue
        shown = [
            ", ".join(f"{np.mean([cell[m] for cell in found]):.3f}" for found in of_both)
            for m in MEASURES
        ]
        count = np.mean([cell["resets"] for cell in of_both[1]])
        on = f"the {len(of_both[0])} {'chosen on' if chosen else 'others'}"
        rows.append([drift, way, on, *shown, f"{count:.1f}"])
    return rows


def main(argv: list[str]) -> int:
    """Measure, print the table, store every cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stream_resets", description=__doc__)
    parser.add_argument("--sets", type=lambda t: t.split(","), default=list(stream_mixture.SETS))
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args(argv)
    if data_folder() is None:
        print("Skipped: set RARECLASS_DATA to the folder of the data sets.")
        return 0
    cells = []
    for name, drift in product(options.sets, DRIFTS):
        cells += measure(name, drift)
    print_table(HEADER, lines(cells))
    print(f"wrote {record.write('stream_resets', {'cells': cells}, options.json)}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
