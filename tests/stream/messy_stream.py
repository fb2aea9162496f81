"""A stream with everything in it that streams have: late labels, bad rows, new words, drift."""

import csv
import json

import numpy as np

from rareclass.stored import pack
from rareclass.stream.log import read_log, read_scores
from rareclass.stream.loop import StreamLoop
from rareclass.stream.options import StreamOptions, parse_parameters
from rareclass.stream.reading import Interruption
from rareclass.stream.state import KINDS, checkpoints_in, claimed, load_newest

COLUMNS = ["id", "amount", "items", "country", "fraud"]


def messy_records(n_rows, n_sure, seed=0):
    """Return records; about a third get their label later, some never, some are bad.

    No text stands in a column of numbers among the first `n_sure`, which tell the kinds.
    """
    generator = np.random.default_rng(seed)
    late = {}
    records = []
    for row in range(n_rows):
        rare = generator.random() < 0.08
        amount = generator.normal(50 + row / 50 + 25 * rare, 10 + row / 500)
        lands = 2 + row * 6 // n_rows
        land = "XX" if rare and generator.random() < 0.5 else f"L{generator.integers(lands)}"
        cells = [f"r{row}", f"{amount:.3f}", str(generator.integers(1, 9)), land, str(int(rare))]
        if generator.random() < 0.03:
            cells[1 + int(generator.integers(3))] = ""
        draw = generator.random()
        if draw < 0.35:
            label, cells[4] = cells[4], ""
            due = row + 1 + int(generator.geometric(0.02))
            only = [cells[0], "", "", "", label]
            if draw < 0.05:  # the label comes before its row, some twice
                records += [only] * (1 + (draw < 0.01))
            elif draw < 0.30:
                whole = [*cells[:4], label]
                late.setdefault(due, []).append(only if draw < 0.2 else whole)
            elif draw < 0.31:
                late.setdefault(due, []).append(list(cells))  # the same id without a label again
        elif draw < 0.36:
            cells = _spoilt(cells, int(generator.integers(4 if row < n_sure else 5)))
        records.append(cells)
        records += late.pop(row, [])
    return records


def write_csv(path, records):
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *records])
    return path


def outcome(folder):
    loaded = load_newest(folder)
    return {
        "checkpoint": loaded.path.name,
        "state": loaded.state,
        "log": read_log(folder).drop_columns(["rows_per_second", "time"]).to_pydict(),
        "scores": read_scores(folder).to_pydict(),
        "rejected": (folder / "rejected.jsonl").read_text(),
    }


def assert_same(found, expected):
    one, other = pack(found, KINDS), pack(expected, KINDS)
    assert json.dumps(one.tree) == json.dumps(other.tree)
    assert one.arrays.keys() == other.arrays.keys()
    for name, array in one.arrays.items():
        same = other.arrays[name]
        assert (array.dtype, array.shape) == (same.dtype, same.shape), name
        assert array.tobytes() == same.tobytes(), name


def options_for(source, learner="oam", **more):
    given = {
        "id_column": "id", "window": 200, "top": 20, "hold": 20, "every": 125, "report_every": 50,
        "parameters": parse_parameters(learner, []),
    }  # fmt: skip
    return StreamOptions(str(source), "fraud", learner=learner, **(given | more))


def run(options, folder, stop_after=None, leave_after=None):
    interruption, events = Interruption(), []
    with claimed(folder):
        loop = StreamLoop(options, folder, interruption)
        try:
            for event in loop.run():
                events.append(event)
                if stop_after is not None and event.kind == "batch" and event.rows >= stop_after:
                    interruption.signal = 2
                if len(events) == leave_after:
                    break
        finally:
            loop.close()
    return events


def _spoilt(cells, kind):
    if kind == 0:
        return cells[:3]
    if kind == 1:
        return [f"never-{cells[0]}", "", "", "", "1"]
    if kind == 2:
        return [cells[0], "inf", *cells[2:]]
    if kind == 3:
        return [*cells[:4], "maybe"]
    return [cells[0], "about 40", *cells[2:]]


def newest_rows(folder):
    return int(checkpoints_in(folder)[0].stem[-15:])
