"""Drift: measures of a window, their falls, columns that moved, and when the alarm rings."""

from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.encoding.schema import Schema
from rareclass.encoding.streams import OnlineEncoder
from rareclass.errors import ErrorKind
from rareclass.metrics import average_precision, interval, precision_at_k, roc_auc
from rareclass.metrics.column_drift import ColumnShift, population_stability_index
from rareclass.metrics.intervals import difference_interval
from rareclass.stored import pack, unpack
from rareclass.stream import drift as drift_module
from rareclass.stream import reading
from rareclass.stream.drift import (
    EDGES,
    BestWindows,
    ColumnCounts,
    DriftAlarm,
    Fall,
    Window,
    _binned,
)
from rareclass.stream.log import read_log
from rareclass.stream.state import KINDS, load_newest, settled
from rareclass.tables.text_reader import Batch
from stream.messy_stream import assert_same, options_for, outcome, run


def stored(value):
    return unpack(pack(value, KINDS), KINDS)


ROWS = st.lists(st.tuples(st.integers(-3, 3), st.booleans()), max_size=40)


@given(
    rows=ROWS, size=st.integers(2, 12), top=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 40), max_size=5),
)  # fmt: skip
def test_measures_are_those_of_the_last_rows(rows, size, top, cuts):
    window, at_once = Window(size, top), Window(size, top)
    at_once.add([score for score, _ in rows], [rare for _, rare in rows])
    edges = sorted({0, len(rows), *(cut for cut in cuts if cut < len(rows))})
    for start, end in pairwise(edges):
        window.add([score for score, _ in rows[start:end]], [rare for _, rare in rows[start:end]])
        window = stored(window)
    assert_same(window.rows(), at_once.rows())
    scores = np.array([score for score, _ in rows[-size:]], float)
    rare = np.array([rare for _, rare in rows[-size:]], bool)
    assert len(window.rows()[0]) == len(scores)
    expected = [None] * 3
    if rare.any() and not rare.all():
        at_top = precision_at_k(rare, scores, top) if len(rare) >= top else None
        expected = [roc_auc(rare, scores), average_precision(rare, scores), at_top]
    assert list(window.measures()) == [
        each if each is None else pytest.approx(each, abs=1e-12) for each in expected
    ]


WINDOW = 1_000


def window_of(apart, seed, share=0.05):
    generator = np.random.default_rng(seed)
    rare = generator.random(WINDOW) < share
    return generator.normal(size=WINDOW) + apart * rare, rare


def seen(aparts, seed=0):
    """Windows end to end, the last of them not looked at yet: as a report finds them."""
    best, window = BestWindows(), Window(WINDOW, top=50)
    for k, apart in enumerate(aparts):
        if k:
            best.look(window)
        window.add(*window_of(apart, seed + k))
    return best, window


def test_a_fall_is_told_with_its_interval():
    best, window = seen([1.5, 2.5, 1.5, 0.3])
    falls = {fall.measure: fall for fall in best.falls(window)}
    assert stored(best).falls(stored(window)) == [*falls.values()]
    assert set(falls) == {"auc", "precision_at_k"}
    fall = falls["auc"]
    assert fall.best_rows == 2 * WINDOW
    scores, rare = window.rows()
    assert fall.value == roc_auc(rare, scores)
    before = window_of(2.5, 1)
    level = 1 - 0.01 / 3
    ours = difference_interval(
        interval("roc_auc", before[1], before[0], level=level),
        interval("roc_auc", rare, scores, level=level),
        0.0,
    )
    assert (fall.low, fall.high) == pytest.approx((ours.low, ours.high))
    assert 0.0 < fall.low < fall.best - fall.value < fall.high


@pytest.mark.sampled(1)
@pytest.mark.parametrize("apart", [1.0, 3.0, 5.0])
def test_chance_is_hardly_ever_a_fall(apart):
    """Also where the top holds nearly all rare rows, whose number varies."""
    n_told = 0
    best, window = BestWindows(), Window(WINDOW, top=50)
    for k in range(120):
        if k:
            best.look(window)
        window.add(*window_of(apart, 1000 + k))
        n_told += bool(best.falls(window))
    assert n_told <= 2


def test_fewer_rare_rows_that_rank_as_well_are_no_fall():
    best, window, told = BestWindows(), Window(WINDOW, top=50), []
    for n_rare, apart in ((60, 4.0), (15, 4.0), (60, 4.0), (60, 0.5)):
        rare = np.arange(WINDOW) < n_rare
        window.add(np.random.default_rng(0).normal(size=WINDOW) + apart * rare, rare)
        told.append([fall.measure for fall in best.falls(window)])
        best.look(window)
    assert told == [[], [], [], ["auc", "precision_at_k"]]


def test_windows_of_one_class_and_windows_that_are_not_full_are_passed_over():
    best, window = BestWindows(), Window(WINDOW, top=50)
    window.add(np.zeros(WINDOW), np.zeros(WINDOW, bool))
    best.look(window)
    assert best.falls(window) == []
    window.add(*window_of(3.0, 0))
    best.look(window)
    best.look(window)
    assert best._n_windows == 1
    window.add(np.zeros(WINDOW), np.zeros(WINDOW, bool))
    assert best.falls(window) == []


SCHEMA = Schema("y", {"amount": "number", "code": "number", "land": "category"})
SIZE = 1_000


def rows(n, seed, **changed):
    generator = np.random.default_rng(seed)
    amount = generator.lognormal(0, 0.5, n)
    amount[generator.random(n) < 0.05] = np.nan
    land = generator.choice(np.array(["DE", "FR", None], object), n)
    columns = {"amount": amount, "code": generator.integers(0, 2, n) * 1.0, "land": land}
    return columns | changed


def feed(drift, encoder, columns, step):
    n = len(columns["amount"])
    for start in range(0, n, step):
        part = {name: cells[start : start + step] for name, cells in columns.items()}
        lines = np.arange(len(part["amount"]))
        frame = pl.DataFrame({**part, "land": pl.Series(part["land"].tolist(), dtype=pl.String)})
        batch = Batch(frame, lines, "", [], len(lines), {})
        drift.add(batch, encoder.encode(batch), encoder)
    if n == SIZE:
        drift.end_segment(encoder)


def begun(n_segments, step=250):
    drift, encoder = ColumnCounts(SIZE, half_life=5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(n_segments):
        feed(drift, encoder, rows(SIZE, segment), step)
    return drift, encoder


def test_a_stream_that_stays_is_not_remarked():
    drift, encoder = ColumnCounts(SIZE, half_life=5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(40):
        feed(drift, encoder, rows(SIZE, segment), 500)
        assert drift.moves(encoder) == []


def test_what_moved_is_named_with_the_oracles_numbers():
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
    cells = np.array([np.nan, -11.0, 0.0, 10.0, 10.1, 0.126, 3.0, np.nan, 1.0])
    np.testing.assert_array_equal(_binned(cells, EDGES), slow_bins(cells, EDGES))


def slow_bins(cells, edges):
    counts = np.zeros(len(edges) + 2)
    for cell in cells:
        if cell != cell:
            counts[-1] += 1
        else:
            counts[sum(cell > edge for edge in edges)] += 1
    return counts


def test_a_column_that_never_varied_is_outside_when_it_does():
    drift, encoder = ColumnCounts(SIZE, 5_000), OnlineEncoder(SCHEMA, half_life=5_000)
    for segment in range(4):
        feed(drift, encoder, rows(SIZE, segment, code=np.full(SIZE, 7.0)), 500)
    assert drift.moves(encoder) == []
    feed(drift, encoder, rows(999, 9, code=np.repeat([7.0, 8.0], [800, 199])), 500)
    (move,) = drift.moves(encoder)
    assert move.column == "code"
    assert move.outside == pytest.approx(199 / 1999)


def test_bins_are_made_anew_where_they_no_longer_fit():
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


def test_neither_batches_nor_a_restart_show_in_columns():
    whole, encoder = begun(4, step=1000)
    cut, other = begun(2, step=7)
    cut, other = stored((cut, other))
    for segment in (2, 3):
        feed(cut, other, rows(SIZE, segment), 64)
    assert_same(cut, whole)
    np.testing.assert_array_equal(cut.usual(other), whole.usual(encoder))
    shares = dict(zip(encoder.feature_names, whole.usual(encoder).tolist(), strict=True))
    assert shares["amount"] == 0.0
    assert shares["land=DE"] == pytest.approx(1 / 3, abs=0.05)


def test_nothing_is_said_before_there_is_a_past():
    drift, encoder = begun(1)
    assert drift.moves(encoder) == []
    feed(drift, encoder, rows(SIZE, 5, land=np.full(SIZE, "IT", object)), 500)
    moves = drift.moves(encoder)
    assert all(isinstance(each, ColumnShift) for each in moves)
    feed(drift, encoder, rows(999, 6, land=np.full(999, "IT", object)), 500)
    assert "land" in [each.column for each in drift.moves(encoder)]


FALL = Fall("auc", 0.7, 0.9, 1000, 0.1, 0.3)


def moves(names):
    return [ColumnShift(name, 0.5, 0.0) for name in names]


def test_it_rings_when_enough_columns_begin_to_move_or_a_measure_falls():
    alarm, rang = DriftAlarm(), []
    looks = [
        ("", []), ("a", []), ("abc", []), ("abc", []), ("ab", [FALL]), ("ab", [FALL]),
        ("", []), ("abc", []), ("abcde", [FALL]),
    ]  # fmt: skip
    for n, (names, falls) in enumerate(looks):
        if alarm.rings(n, moves(names), falls, 10):
            rang.append(n)
        alarm = stored(alarm)
    assert rang == [2, 4, 7, 8]
    assert (alarm.count, alarm.last) == (4, 8)


def resetting(source, learner="cbr", **more):
    given = {"hold": 100_000, "every": 450, "report_every": 150, "on_drift": "reset"}
    return options_for(source, learner, **(given | more))


@pytest.fixture
def few_rows(few_first_rows, monkeypatch):
    monkeypatch.setattr(drift_module, "LEAST_SEGMENT", 200)
    monkeypatch.setattr(drift_module, "FEWEST_ROWS", 100)


@pytest.mark.sampled(0)
@pytest.mark.usefixtures("few_rows")
def test_steps_are_reset_where_drift_begins_however_the_stream_is_cut(
    long_source, tmp_path, monkeypatch
):
    run(resetting(long_source, on_drift="report"), tmp_path / "reported")
    run(resetting(long_source), tmp_path / "whole")
    whole = outcome(tmp_path / "whole")
    log = read_log(tmp_path / "whole")
    assert log["resets"].to_pylist()[-1] >= 2
    assert set(log["last_reset"].to_pylist()) > {None, 400}
    # Where the source ends is chance: no reset there.
    assert whole["state"].alarm.last % 200 == 0
    names = ("whole", "reported")
    learned, only_reported = (outcome(tmp_path / each)["state"].learner.state for each in names)
    assert learned["covariance"].trace() > only_reported["covariance"].trace()
    monkeypatch.setattr(reading, "MOST_ROWS", 37)
    for stop_after in (399, 400, 401, 700, None):
        run(resetting(long_source), tmp_path / "stopped", stop_after)
    assert_same(outcome(tmp_path / "stopped"), whole)


@pytest.mark.usefixtures("few_rows")
def test_what_a_folder_does_on_drift_is_settled_when_it_begins(long_source, tmp_path):
    run(resetting(long_source, "logistic"), tmp_path / "reset")
    run(resetting(long_source, "logistic", on_drift="report"), tmp_path / "report")
    for name in ("reset", "report"):
        assert settled("auto", "auto", tmp_path / name) == ("logistic", name)
        loaded = load_newest(tmp_path / name)
        assert (loaded.state.alarm is not None) == (name == "reset")
    for was, now in (("report", "reset"), ("reset", "report")):
        with refused(ErrorKind.COMBINATION, says=f"{was}', but now it is on_drift='{now}"):
            run(resetting(long_source, "logistic", on_drift=now), tmp_path / was)
    with refused(ErrorKind.COMBINATION, says="oam"):
        settled("oam", "reset", tmp_path / "new")
