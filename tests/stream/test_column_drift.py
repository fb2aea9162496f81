"""Columns that moved: against counts of the whole stream, and quiet where nothing moves."""

from typing import Any

import numpy as np
import pytest

from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.metrics.column_drift import ColumnShift, population_stability_index
from rareclass.stream.column_drift import (
    EDGES,
    ColumnCounts,
    _binned,
)
from rareclass.tables.batch import Batch
from stream.messy_stream import assert_same

SCHEMA = Schema("y", {"amount": "number", "code": "number", "land": "category"})
SIZE = 1_000


def rows(n: int, seed: int, **changed: Any) -> dict[str, np.ndarray]:
    generator = np.random.default_rng(seed)
    amount = generator.lognormal(0, 0.5, n)
    amount[generator.random(n) < 0.05] = np.nan
    land = generator.choice(np.array(["DE", "FR", None], object), n)
    columns = {"amount": amount, "code": generator.integers(0, 2, n) * 1.0, "land": land}
    return columns | changed


def feed(
    drift: ColumnCounts, encoder: OnlineEncoder, columns: dict[str, np.ndarray], step: int
) -> None:
    """The rows of one segment, `step` at a time."""
    n = len(columns["amount"])
    for start in range(0, n, step):
        part = {name: cells[start : start + step] for name, cells in columns.items()}
        lines = np.arange(len(part["amount"]))
        batch = Batch(part, lines, "", [], len(lines), {})
        drift.add(batch, encoder.encode(batch), encoder)
    if n == SIZE:
        drift.end_segment(encoder)


def begun(n_segments: int, step: int = 250) -> tuple[ColumnCounts, OnlineEncoder]:
    drift, encoder = ColumnCounts(SIZE, half_life=5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(n_segments):
        feed(drift, encoder, rows(SIZE, segment), step)
    return drift, encoder


def test_a_stream_that_stays_is_not_remarked() -> None:
    drift, encoder = ColumnCounts(SIZE, half_life=5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(40):
        feed(drift, encoder, rows(SIZE, segment), 500)
        assert drift.moves(encoder) == []


def test_what_moved_is_named_with_the_oracles_numbers() -> None:
    drift, encoder = begun(8)
    before = encoder.to_state()["statistics"]
    moved = rows(SIZE, 99)
    moved["amount"] = moved["amount"] * 2.0
    moved["land"] = np.where(np.arange(SIZE) % 5 == 0, "IT", moved["land"])
    feed(drift, encoder, moved, 333)
    found = {each.column: each for each in drift.moves(encoder)}
    assert set(found) == {"amount", "land"}
    assert found["land"].outside == pytest.approx(0.2)
    assert "code" not in found
    # The past: segments 1 to 7, faded; bins made when the first segment ended.
    again, edges = begun(1)[1].to_state()["statistics"], None
    mean, deviation = again[0, 1], np.sqrt(again[0, 3])
    edges = mean + deviation * EDGES
    past = sum(
        2.0 ** (-SIZE * (7 - k) / 5_000) * slow_bins(rows(SIZE, k)["amount"], edges)
        for k in range(1, 8)
    )
    expected = population_stability_index(slow_bins(moved["amount"], edges), np.asarray(past))
    assert found["amount"].stability_index == pytest.approx(expected, rel=1e-9)
    assert before[0, 1] == pytest.approx(mean, rel=0.1)


def slow_bins(cells: np.ndarray, edges: np.ndarray) -> np.ndarray:
    counts = np.zeros(len(edges) + 2)
    for cell in cells:
        if cell != cell:
            counts[-1] += 1
        else:
            counts[sum(cell > edge for edge in edges)] += 1
    return counts


def test_bins_are_those_of_a_plain_loop() -> None:
    cells = np.array([np.nan, -11.0, 0.0, 10.0, 10.1, 0.126, 3.0, np.nan, 1.0])
    np.testing.assert_array_equal(_binned(cells, EDGES), slow_bins(cells, EDGES))


def test_a_column_that_never_varied_is_outside_when_it_does() -> None:
    drift, encoder = ColumnCounts(SIZE, 5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(4):
        feed(drift, encoder, rows(SIZE, segment, code=np.full(SIZE, 7.0)), 500)
    assert drift.moves(encoder) == []
    feed(drift, encoder, rows(999, 9, code=np.repeat([7.0, 8.0], [800, 199])), 500)
    (move,) = drift.moves(encoder)
    assert move.column == "code"
    assert move.outside == pytest.approx(199 / 1999)


def test_bins_are_made_anew_where_they_no_longer_fit() -> None:
    drift, encoder = begun(4)
    seen = []
    for segment in range(4, 40):
        columns = rows(SIZE, segment)
        feed(drift, encoder, columns | {"amount": columns["amount"] + 50.0}, 500)
        seen.append("amount" in [each.column for each in drift.moves(encoder)])
    assert all(seen[:4])
    assert not any(seen[20:])
    columns = rows(SIZE, 99)
    feed(drift, encoder, columns | {"amount": columns["amount"] + 60.0}, 500)
    assert [each.column for each in drift.moves(encoder)] == ["amount"]


def test_neither_batches_nor_a_restart_show() -> None:
    whole, encoder = begun(4, step=1000)
    cut, other = begun(2, step=7)
    cut, other = ColumnCounts.from_state(cut.to_state()), OnlineEncoder.from_state(other.to_state())
    for segment in (2, 3):
        feed(cut, other, rows(SIZE, segment), 64)
    assert_same(cut.to_state(), whole.to_state())
    np.testing.assert_array_equal(cut.usual(other), whole.usual(encoder))
    shares = dict(zip(encoder.feature_names, whole.usual(encoder).tolist(), strict=True))
    assert shares["amount"] == 0.0
    assert shares["land=DE"] == pytest.approx(1 / 3, abs=0.05)


def test_nothing_is_said_before_there_is_a_past() -> None:
    drift, encoder = begun(1)
    assert drift.moves(encoder) == []
    feed(drift, encoder, rows(SIZE, 5, land=np.full(SIZE, "IT", object)), 500)
    moves = drift.moves(encoder)
    assert all(isinstance(each, ColumnShift) for each in moves)
    feed(drift, encoder, rows(999, 6, land=np.full(999, "IT", object)), 500)
    assert "land" in [each.column for each in drift.moves(encoder)]
