"""Alerts within a budget: against a plain loop, and never more than the budget whatever comes."""

import datetime as dt
from collections import Counter
from itertools import pairwise

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws, quick
from faults import refused
from rareclass.errors import ErrorKind
from rareclass.stored import pack, unpack
from rareclass.stream import alerts
from rareclass.stream.alerts import MovingThreshold
from rareclass.stream.options import AlertBudget
from rareclass.stream.reading import find_day_column
from rareclass.stream.state import KINDS
from rareclass.tables.dates import DAY_FORMATS
from rareclass.tables.reading import times_of
from rareclass.tables.text_reader import Batch


def plain(budget, scores, days):
    """What the class says it does, a row at a time, with every score kept."""
    recent = []
    later = []
    rows = Counter()
    alerts = Counter()
    decided = []
    for number, score in enumerate(scores):
        if days is None:
            assert budget.rows is not None
            period, size, least = number // budget.rows, float(budget.rows), 1.0
        else:
            day = period = days[number]
            after = [rows[each] for each in sorted(rows) if each > day][:7]
            others = [rows[each] for each in sorted(rows) if each < day][-7:] or after
            others = [rows[day - 7]] if day - 7 in rows else others
            size = max(sum(others) / len(others) if others else 10_000.0, budget.number)
            least = size / 10
        is_alert, threshold = False, np.nan
        if recent:
            left = max(size - rows[period], least)
            spare = budget.number - alerts[period]
            chance = min(spare / left, 2 * budget.number / size)
            m = len(recent)
            place = min(max(chance * (m + 1), 1.0), m)
            # The j-th highest score is exceeded with chance j / (m + 1).
            threshold = float(np.interp(place, np.arange(1, m + 1), sorted(recent, reverse=True)))
            is_alert = spare > 0 and score > threshold
        rows[period] += 1
        alerts[period] += is_alert
        decided.append((is_alert, threshold))
        later.append(score)
        if len(later) == max(100, len(recent) // 50):
            wanted = int(min(max(30 * size / budget.number, 1_000), 100_000))
            recent, later = [*recent, *later][-wanted:], []
    return decided


@draws(40)
@given(
    budget=st.sampled_from([(1, 10), (3, 50), (20, 400), (2, None), (15, None)]),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["normal", "ties", "rising", "spikes"]),
    cuts=st.lists(st.integers(0, 1200), max_size=4),
)
def test_as_one_row_at_a_time(budget, seed, kind, cuts):
    generator = np.random.default_rng(seed)
    scores, days = drawn(generator, kind, 1200)
    of = AlertBudget(*budget)
    threshold = MovingThreshold(of)
    found = []
    for start, end in pairwise(sorted({0, *cuts, 1200})):
        part = threshold.decide(scores[start:end], days[start:end])
        found += zip(part.is_alert.tolist(), part.thresholds.tolist(), strict=True)
        threshold = unpack(pack(threshold, KINDS), KINDS)
    expected = plain(of, scores.tolist(), None if of.rows else days.tolist())
    assert [alert for alert, _ in found] == [alert for alert, _ in expected]
    np.testing.assert_allclose(
        [value for _, value in found], [value for _, value in expected], rtol=1e-12, atol=1e-12
    )


def drawn(generator, kind, n):
    scores = generator.normal(size=n)
    if kind == "ties":
        scores = np.round(scores)
    elif kind == "rising":
        scores = scores + np.arange(n) / 50
    elif kind == "spikes":
        scores = np.where(generator.random(n) < 0.3, 1e300 * scores, scores)
    days = np.sort(generator.integers(0, 9, n)) + np.where(generator.random(n) < 0.1, -1, 0)
    return scores, days


@given(
    number=st.integers(1, 9),
    rows=st.none() | st.integers(10, 60),
    scores=st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=1, max_size=40),
    days=st.lists(st.integers(-3, 3), min_size=1, max_size=30),
    trend=st.sampled_from([0.0, 1.0, -1.0]),
)
def test_never_more_than_the_budget(number, rows, scores, days, trend):
    n = 600
    column = np.resize(scores, n) + trend * np.arange(n)
    of_day = np.resize(days, n)
    decided = MovingThreshold(AlertBudget(number, rows)).decide(column, of_day)
    periods = np.arange(n) // rows if rows else of_day
    counts = Counter(periods[decided.is_alert].tolist())
    assert max(counts.values(), default=0) <= number


@pytest.mark.parametrize("step", [1, -1])
def test_a_stream_that_goes_backwards_uses_its_budget_too(step):
    scores = np.random.default_rng(0).normal(size=8_000)
    days = step * (np.arange(8_000) // 800)
    alerts = MovingThreshold(AlertBudget(5, None)).decide(scores, days).is_alert
    assert (alerts.reshape(-1, 800).sum(axis=1)[1:] >= 4).all()


def test_the_number_expected_is_the_budget():
    scores = np.random.default_rng(0).gumbel(size=200_000)
    alerts = MovingThreshold(AlertBudget(50, 10_000)).decide(scores).is_alert
    counts = alerts.reshape(-1, 10_000).sum(axis=1)
    assert counts.max() == 50
    assert counts.mean() > 49.0
    # Not all at once: no half of a period has nearly all of them.
    halves = alerts[10_000:].reshape(-1, 2, 5_000).sum(axis=2).mean(axis=0)
    assert halves.min() > 23.0


def test_days_before_the_earliest_remembered_raise_none(monkeypatch):
    monkeypatch.setattr(alerts, "_MOST_DAYS", 3)
    threshold = MovingThreshold(AlertBudget(5, None))
    scores = np.arange(1000.0)
    assert threshold.decide(scores[:200], np.zeros(200, np.int64)).is_alert.sum() == 5
    for day in range(1, 5):
        assert threshold.decide(scores[:10] + 1000.0 * day, np.full(10, day)).is_alert.any()
    again = threshold.decide(scores + 1e6, np.zeros(1000, np.int64))
    assert not again.is_alert.any()
    assert len(threshold._periods) == 3


@pytest.mark.parametrize("text", ["", "50", "50/week", "0/day", "5/5", "9/3", ",/day", "-1/10"])
def test_budgets_that_are_none(text):
    with refused(ErrorKind.SETTING, says="alerts="):
        AlertBudget.parse(text)


NOT, LONG = [None, "", "NA", "soon", "true", "1e300"], "172800000"
# Cells of the third of January 1970, and others that are no time in their column.
GOOD_TIMES = [
    (["1970-01-03", " 1970-01-03T23:59 ", "1970-01-03 01:00+05:00"], [*NOT, LONG, "03.01.1970"]),
    (["03.01.1970", "3.1.1970 23:59", "19700103"], [*NOT, LONG, "01/03/1970"]),
    (["2.5", "2", " 2.0 "], [*NOT, "1970-01-03"]),
    ([dt.date(1970, 1, 3)], [None]),
    ([dt.datetime(1970, 1, 3, 12)] * 2, [None]),
    ([2.75, 2.0], [None, np.nan]),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("cells", "others"), GOOD_TIMES)
def test_times_are_read_as_most_of_the_first_are_and_others_are_none(cells, others):
    column = pl.Series("t", [*cells * 5, *others])
    batch = Batch(column.to_frame(), np.arange(len(column)), "a.csv", [], len(column), {})
    clock = find_day_column(batch, "t")
    assert clock.days_of(batch).to_list() == [2] * 5 * len(cells) + [None] * len(others)
    lists = Batch(pl.DataFrame({"t": [[1], [2]]}), np.arange(2), "a.csv", [], 2, {})
    assert clock.days_of(lists).to_list() == [None] * 2
    with refused(ErrorKind.CELL, column="t"):
        find_day_column(lists, "t")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", quick(3, ["%y-%m-%d", "%Y%m%d", *DAY_FORMATS]))
@pytest.mark.parametrize("step", [1, -1])
def test_a_stream_reads_times_as_fit_does(way, step):
    days = [dt.date(2003, 5, 12) + dt.timedelta(days=k) for k in (0, 0, 1, 2, 2, 3, 17, 25)]
    column = pl.Series("when", [day.strftime(way) for day in days[::step]])
    batch = Batch(column.to_frame(), np.arange(8), "a.csv", [], 8, {})
    times = times_of(column, np.arange(1, 9), "--time").astype("M8[D]").astype(int)
    assert find_day_column(batch, "when").days_of(batch).to_list() == times.tolist()
    if "%d" in way:
        assert times.tolist() == [(day - dt.date(1970, 1, 1)).days for day in days[::step]]
