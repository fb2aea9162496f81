"""A stream with everything in it that streams have: late labels, bad rows, new words, drift."""

import csv
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.stream.checkpoint import load_newest
from rareclass.stream.log import CLOCK_COLUMNS, read_log, read_scores

COLUMNS = ["id", "amount", "items", "country", "fraud"]


def messy_records(n_rows: int, n_sure: int, seed: int = 0) -> list[list[str]]:
    """Return records; about a third get their label later, some never, some are bad.

    No text stands in a column of numbers among the first `n_sure`, which tell the kinds.
    """
    generator = np.random.default_rng(seed)
    late: dict[int, list[list[str]]] = {}
    records: list[list[str]] = []
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
            if draw < 0.30:
                only = [cells[0], "", "", "", label]
                whole = [*cells[:4], label]
                late.setdefault(due, []).append(only if draw < 0.2 else whole)
            elif draw < 0.31:
                late.setdefault(due, []).append(list(cells))  # the same id without a label again
        elif draw < 0.36:
            cells = _spoilt(cells, int(generator.integers(4 if row < n_sure else 5)))
        records.append(cells)
        records += late.pop(row, [])
    return records


def write_csv(path: Path, records: list[list[str]]) -> Path:
    """Write records as they are, bad ones included."""
    with path.open("w", newline="") as file:
        csv.writer(file, lineterminator="\n").writerows([COLUMNS, *records])
    return path


def outcome(folder: Path) -> dict[str, Any]:
    """Return all that must not depend on how a stream was run."""
    loaded = load_newest(folder)
    assert loaded is not None
    return {
        "checkpoint": loaded.path.name,
        "state": loaded.state,
        "log": read_log(folder).drop_columns(list(CLOCK_COLUMNS)).to_pydict(),
        "scores": read_scores(folder).to_pydict(),
        "rejected": (folder / "rejected.jsonl").read_text(),
    }


def assert_same(found: Any, expected: Any, where: str = "") -> None:
    """Check nested dictionaries of arrays and plain values to the last bit."""
    if isinstance(expected, dict):
        assert found.keys() == expected.keys(), where
        for key in expected:
            assert_same(found[key], expected[key], f"{where}.{key}")
    elif isinstance(expected, np.ndarray):
        assert found.dtype == expected.dtype, where
        assert found.shape == expected.shape, where
        assert found.tobytes() == expected.tobytes(), where
    else:
        assert found == expected, where


def _spoilt(cells: list[str], kind: int) -> list[str]:
    if kind == 0:
        return cells[:3]
    if kind == 1:
        return [f"never-{cells[0]}", "", "", "", "1"]
    if kind == 2:
        return [cells[0], "inf", *cells[2:]]
    if kind == 3:
        return [*cells[:4], "maybe"]
    return [cells[0], "about 40", *cells[2:]]
