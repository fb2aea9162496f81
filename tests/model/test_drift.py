"""How unlike training rows are, beside counts made one by one."""

import math
import re
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product
from math import comb, prod

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from command_line import QUICK, run
from draws import draws
from faults import refused
from made_models import made_model
from rareclass.encoding.encoders import TableEncoder
from rareclass.encoding.table_statistics import TableStatistics, UnlikeCells
from rareclass.encoding.typed_table import read_table
from rareclass.errors import ErrorKind, InputError
from rareclass.metrics import column_drift
from rareclass.metrics.intervals import WeightedRate
from rareclass.model.columns import NumberBins, PresentOrEmpty, TrainedColumn, trained_columns
from rareclass.model.drift import (
    AlertRate,
    ColumnDrift,
    ColumnTracker,
    Drift,
    InputSummary,
    drift_of,
    refuse_drift,
    worst_first,
)
from rareclass.model.evaluate import monitor_file
from rareclass.model.facts import ScoredRows
from rareclass.model.model import alert_rate
from rareclass.model.model_file import check_model, load_model
from rareclass.tables.columns import Column
from rareclass.tables.reading import CellReading

SHARES = st.none() | st.sampled_from([0.0, 0.005, 0.2, 1.0])
MOVED = st.builds(
    ColumnDrift,
    st.just("a"),
    st.just("number"),
    missing_before=SHARES,
    missing_now=SHARES,
    outside=st.sampled_from([0.0, 0.005, 0.3]),
    stability_index=st.none() | st.sampled_from([0.01, 0.15, 0.2, 0.4, 0.6]),
    is_unlike=st.booleans(),
    is_absent=st.booleans(),
)


def judged(n_alerts, n_rows, copies=1):
    scores = (np.arange(n_rows) < n_alerts).astype(float)
    weight = None if copies == 1 else np.full(n_rows, float(copies))
    held = ScoredRows(np.zeros(n_rows, np.int16), scores, weight)
    return made_model(None, None, held_out=held).with_thresholds(0.5)


@draws(40)
@given(st.lists(MOVED, min_size=2, max_size=8))
def test_columns_that_moved_most_come_first(columns):
    verdicts = ["absent", "moved far", "moved", "steady", ""]
    for one, other in pairwise(worst_first(columns)):
        places = verdicts.index(one.verdict), verdicts.index(other.verdict)
        assert places[0] <= places[1]
        if places[0] == places[1]:
            here, next_one = ((each.stability_index or 0.0, each.outside) for each in (one, other))
            assert here >= next_one


@given(MOVED)
def test_words_tell_the_shares_that_changed(column):
    now, before = (each or 0.0 for each in (column.missing_now, column.missing_before))
    assert ("empty" in column.words) == (not column.is_absent and abs(now - before) >= 0.01)
    if "empty" in column.words:
        assert f"{now:.0%} empty, {before:.0%} in training" in column.words
    unlike = f"{column.outside:.0%} unlike training"
    assert (unlike in column.words) == (not column.is_absent and column.outside >= 0.01)


@given(
    st.lists(st.integers(1, 9), min_size=2, max_size=4).filter(lambda both: sum(both) > 2),
    st.floats(0.01, 0.99),
    st.sampled_from([0.2, 0.05, 0.01, 0.001]),
)
def test_the_index_by_chance_is_exceeded_as_rarely_as_is_said(both, share, level):
    """All draws of the new rows from those of both samples, one by one."""
    n, every = min(max(round(share * sum(both)), 1), sum(both) - 1), np.array(both)
    draws = [np.array(k) for k in product(*(range(m + 1) for m in both)) if sum(k) == n]
    ways = np.array([prod(map(comb, both, k.tolist())) for k in draws], float) / comb(sum(both), n)
    index = np.array([column_drift.population_stability_index(k, every - k) for k in draws])
    chance = column_drift.IndexByChance.of(draws[0], every - draws[0], level)
    assert ways[index > chance.index].sum() <= 1.2 * level
    exact = min(x for x in [0.0, *index] if ways[index > x].sum() <= 0.999 * level)
    spread = 1.0 / n + 1.0 / (sum(both) - n)
    reached = 6.0 * 2.5 / 512 * stats.chi2.isf(level, len(both) - 1) * spread  # six steps
    assert chance.index <= max(exact, (len(both) - 1) * spread) + reached
    for one in (0.9 * chance.index, 1.1 * chance.index):
        assert chance.is_exceeded_by(one) == (one > chance.index)


@pytest.mark.parametrize("n_bins", [2, 11])
@pytest.mark.parametrize("n", [9_900, 10_100])
def test_of_very_many_rows_the_index_by_chance_is_that_of_chi_squared(n, n_bins):
    """On both sides of the number of rows from which on it is taken for granted."""
    rows = np.full(n_bins, n / n_bins)
    found = column_drift.IndexByChance.of(rows, rows, 0.001).index
    assert found == pytest.approx(stats.chi2.isf(0.001, n_bins - 1) * 2 / n, rel=0.04)


def in_groups(random, n_groups, size, alike):
    group, n = np.repeat(np.arange(n_groups), size), n_groups * size
    shared = math.sqrt(alike) * random.normal(size=n_groups)[group]
    return shared + math.sqrt(1.0 - alike) * random.normal(size=n), group


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 5)), min_size=2, max_size=40))
def test_rows_alike_are_by_the_eigenvalues_of_the_shares(rows):
    """Group by group, and with the generalized eigenvalues of both covariances."""
    places, group = np.array(rows).T
    found = column_drift.rows_alike_in_bins(places, group)
    bins, names, n = np.unique(places), np.unique(group), len(rows)
    k, share = (np.bincount(group) ** 2).sum() / n, np.array([(places == b).mean() for b in bins])
    if len(bins) == 1:
        assert found == pytest.approx(k)
        return
    alone, spread = np.diag(share) - np.outer(share, share), 0.0
    for each in names:
        own = places[group == each]
        apart = np.array([(own == b).sum() for b in bins]) - len(own) * share
        spread = spread + len(names) * np.outer(apart, apart) / n
    spread = (spread + 2.0 * k * alone) / (len(names) + 2.0)
    effects = np.linalg.eigvals(np.linalg.pinv(alone) @ spread).real
    free = effects.sum() ** 2 / (effects**2).sum()
    limits = stats.chi2.isf(0.001, [free, len(bins) - 1])
    assert found == pytest.approx(
        max((effects**2).sum() / effects.sum() * limits[0] / limits[1], 1)
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("size", "alike"), [(10, 0.5), (10, 1.0), (50, 0.2), (50, 0.9)])
def test_rows_of_groups_exceed_the_index_by_chance_as_rarely_as_is_said(size, alike):
    random, exceeded, edges = np.random.default_rng(0), {True: 0, False: 0}, stats.norm.ppf
    for is_known in [True, False] * 60:
        (old, group), (new, _) = (
            in_groups(random, n // size, size, alike)
            for n in (3000, 10 * size if size > 10 else 300)
        )
        before, now = (np.searchsorted(edges(np.arange(1, 10) / 10), each) for each in (old, new))
        times = column_drift.rows_alike_in_bins(before, group) if is_known else 1.0
        counts = [np.bincount(each, minlength=10) / times for each in (now, before)]
        chance = column_drift.IndexByChance.of(*counts, 0.02)
        exceeded[is_known] += chance.is_exceeded_by(
            column_drift.population_stability_index(*counts)
        )
    assert exceeded[True] <= 5  # 1.2 are expected
    assert exceeded[False] >= 10


def test_a_file_of_other_groups_has_not_moved_and_a_shift_is_found(tmp_path):
    random = np.random.default_rng(0)

    def table(n_groups, shift=0.0):
        x, group = in_groups(random, n_groups, 10, 0.8)
        y = (x + random.normal(size=len(x)) > 2.4).astype(int)
        town = random.choice(["a", "b", "c", "d"], n_groups)[group]
        ward = [f"{n_groups}-{shift}-{each}" if each % 3 else "all" for each in group]
        filled = np.where(group % 20 == 7, np.nan, random.normal(size=len(x)))
        columns = {"x": x + shift, "town": town, "ward": ward, "filled": filled}
        return pl.DataFrame({**columns, "patient": group, "y": y}, nan_to_null=True)

    table(300).write_csv(tmp_path / "old.csv")
    words = ("-t", "y", *QUICK, "--groups", "patient", "-o", tmp_path / "m")
    run("fit", tmp_path / "old.csv", *words)
    model, new = load_model(tmp_path / "m"), tmp_path / "new.csv"
    grouped = model.facts.training.grouped
    assert (grouped["town"].alike, grouped["x"].alike > 2.0) == (pytest.approx(10.0), True)
    for shift in [0.0] * 12 + [1.5]:
        table(40, shift).write_csv(new)
        drift = monitor_file(model, new).drift
        assert [each.name for each in drift.moved] == (["x"] if shift else [])
        assert drift.is_far == (shift > 0.0)
    table(40).with_columns(town=None).write_csv(new)
    assert [each.name for each in monitor_file(model, new).drift.moved] == ["town"]


@pytest.mark.parametrize("part", ["thresholds", "group", "columns"])
def test_parts_that_do_not_fit_are_a_damaged_model(part, tmp_path):
    """Thresholds as text and bins of other columns, found by fuzzing; groups of other rows."""
    table = pl.DataFrame({"x": np.arange(60.0) % 7, "g": np.arange(60) // 2})
    table.with_columns(y=(table["x"] > 5).cast(pl.Int8)).write_csv(tmp_path / "t.csv")
    words = ("-t", "y", *QUICK, "--groups", "g", "--category", "x", "-o", tmp_path / "m")
    run("fit", tmp_path / "t.csv", *words)
    model = load_model(tmp_path / "m")
    if part == "thresholds":
        model = replace(model, thresholds=model.thresholds.astype(str))
    elif part == "group":
        model = replace(model, held_out=model.held_out._replace(group=np.zeros(3)))
    else:
        training = model.facts.training
        grouped = {"x": replace(training.grouped["x"], counts=(1.0, 2.0))}
        facts = replace(model.facts, training=replace(training, grouped=grouped))
        with refused(ErrorKind.DAMAGED_FILE):
            _ = replace(model, facts=facts).trained
        return
    with pytest.raises(ValueError, match=r"threshold|group"):
        check_model(model)


def test_alert_rate_has_intervals_within_the_exact_ones():
    rate = alert_rate(judged(20, 1000), 8, 100)
    for own, hits, trials in ((rate.found, 8, 100), (rate.expected, 20, 1000)):
        exact = stats.binomtest(hits, trials).proportion_ci(0.95, "exact")
        assert exact.low < own.low < own.value == hits / trials < own.high < exact.high
    assert rate.differs
    assert rate.is_far
    assert alert_rate(made_model(None, None), 8, 100) is None
    # Equal weights tell no more than none.
    plain, weighted = (alert_rate(judged(20, 1000, k), 2, 100) for k in (1, 7))
    np.testing.assert_allclose(weighted.expected, plain.expected, rtol=1e-12)
    assert not weighted.differs
    by_little = alert_rate(judged(2000, 100_000), 3000, 100_000)
    assert by_little.differs
    assert not by_little.is_far


def seen_with(outside, unseen):
    """Cells of two columns of which nothing but their names is known."""
    seen = InputSummary(n_rows=200, n_columns=4)
    marked = UnlikeCells({"b": np.arange(200) < unseen}, {"a": np.arange(200) < outside})
    seen.add_unlike(marked, 0)
    known = [TrainedColumn(name, "number", PresentOrEmpty(), None, None) for name in "ab"]
    seen.columns = ColumnTracker(known)
    seen.columns.add(pl.DataFrame({"a": [0.0] * 200, "b": ["word"] * 200}))
    return seen


def test_the_worst_column_comes_first_and_shares_are_of_rows():
    told = seen_with(10, 30).as_plain_data()
    expected = {"b": {"cells": 30, "share": 0.15}, "a": {"cells": 10, "share": 0.05}}
    assert list(told["columns"].items()) == list(expected.items())
    assert told["cells_unlike_training"] == 40 / 800
    assert (told["n_rows_unlike_training"], len(told["rows_unlike_training"])) == (30, 30)
    both, one = {"row": 10, "columns": ["b", "a"]}, {"row": 11, "columns": ["b"]}
    assert told["rows_unlike_training"][9:11] == [both, one]
    codes = InputSummary(n_rows=200)  # codes that training lacked, some out of range as numbers
    codes.add_unlike(UnlikeCells({"a": np.arange(200) < 25}, {"a": np.arange(200) < 10}), 0)
    assert codes.unlike == {"a": 25}
    assert InputSummary(n_rows=5, n_columns=2).as_plain_data()["columns"] == {}


def test_strict_refuses_above_a_tenth_of_a_column_and_a_rate_far_off():
    refuse_drift(drift_of(seen_with(20, 20), None), "new.csv")
    with refused(ErrorKind.REFUSED, column="b"):
        refuse_drift(drift_of(seen_with(20, 21), None), "new.csv")
    for n_far in (1, 2, 3):
        far = [ColumnDrift(name, "number", is_absent=True) for name in "abc"[:n_far]]
        with refused(ErrorKind.REFUSED, column="a") as caught:
            refuse_drift(Drift(None, tuple(far)), "new.csv")
        counted = re.findall(r"and (\d+) more", str(caught.value))
        assert counted == ([] if n_far == 1 else [str(n_far - 1)])
    of = [WeightedRate.counted(*each).interval() for each in ((40, 500), (20, 1000), (1, 50))]
    far, near = AlertRate(of[0], of[1]), AlertRate(of[0], of[2])
    with pytest.raises(InputError, match=r"8\.000% of the rows are above .* 2\.000%"):
        refuse_drift(Drift(far), "new.csv")
    refuse_drift(Drift(near), "new.csv")


def test_a_column_has_moved_from_the_index_on_that_the_reports_name():
    somewhat, far = column_drift.MOVED, column_drift.MOVED_FAR
    for index, verdict in ((somewhat - 1e-9, "steady"), (somewhat, "moved"), (far, "moved far")):
        assert ColumnDrift("a", "number", stability_index=index).verdict == verdict
        assert ColumnDrift("a", "number", stability_index=far - 1e-9).verdict == "moved"


def test_of_columns_that_are_not_learned_from_those_of_one_value_are_watched():
    used = Column("x", "number", "", "number", n_distinct=9)
    columns = [
        used,
        Column("same", "constant", "", "string", n_distinct=1, always="a"),
        Column("empty", "constant", "", "number", n_missing=100),
        Column("long", "constant", "", "string", n_distinct=1),  # nobody knows which value
        Column("beside", "beside", "", "string", n_distinct=1, always="a"),
        Column("id", "id-like", "", "string", n_distinct=100),
    ]
    for learned_from in ([used], columns[:2]):
        found = trained_columns(columns, learned_from, 100, None)
        assert [each.name for each in found] == ["x", "same", "empty"]
    (alone,) = trained_columns(columns, [used], None, None)
    assert alone.name == "x"


def test_what_is_there_is_compared_and_of_what_is_not_only_what_was_learned_from():
    bins, reading = NumberBins(np.array([0.5]), 0.0, 1.0), CellReading("string")
    same, gone_too = (
        TrainedColumn(name, "constant", PresentOrEmpty(), None, 0.0, reading)
        for name in ("same", "gone, too")
    )
    known = [TrainedColumn(name, "number", bins, None, 0.0) for name in ("x", "gone")]
    tracker = ColumnTracker([*known, same, gone_too])
    tracker.add(pl.DataFrame({"x": [0.0, 0.2, 0.9, 7.0, 1.0, None, None, None]}))
    tracker.add_unused(pl.DataFrame({"same": ["a", "a", None, "a"]}))
    x, gone, constant = tracker.drifts({})
    assert [each.name for each in (x, gone, constant)] == ["x", "gone", "same"]
    assert (gone.is_absent, x.is_absent, constant.is_absent) == (True, False, False)
    assert (x.outside, x.missing_now) == (1 / 8, 3 / 8)
    assert (constant.outside, constant.missing_now) == (0.0, 1 / 4)
    assert tracker.emptied() == {"x": 3, "same": 1}


@pytest.mark.parametrize("of_majority", [1.0, 5.0])
@pytest.mark.parametrize("kind", ["category", "number"])
def test_new_values_that_are_to_be_expected_are_no_reason_to_refuse(kind, of_majority):
    """Words, and codes learned by their value; a drawn majority row stands for several."""
    rng, n, share = np.random.default_rng(0), 1200, 1.0 / np.arange(1, 601)
    code = rng.permutation(600)[rng.choice(600, 2 * n, p=share / share.sum())] * 1.0
    rare, fold = rng.random(n) < np.where(code[:n] % 3 == 0, 0.6, 0.01), np.arange(n) % 3
    weight, statistics = np.where(rare, 1.0, of_majority), TableStatistics()

    def frame(codes):
        words = pl.Series([f"w{each}" for each in codes], dtype=pl.Categorical)
        return pl.DataFrame({"c": codes if kind == "number" else words})

    statistics.fit_encode(read_table(frame(code[:n])), rare, weight, fold)
    counts, n_rows = Counter(code[:n]), round(weight.sum())
    column = Column("c", kind, "", "string", n_distinct=len(counts))
    (known,) = trained_columns([column], [column], n_rows, statistics)
    alone = weight[[counts[each] == 1 for each in code[:n]]].sum()
    assert (known.n_alone if kind == "number" else known.counts[-2]) == pytest.approx(alone)
    assert known.counts.sum() == pytest.approx(n_rows)
    for codes, is_far in ((code[n:], False), (code[n:] + 0.5, True)):
        tracker = ColumnTracker([known])
        tracker.add(frame(codes))
        (drift,) = tracker.drifts({"c": statistics.outside(read_table(frame(codes)))["c"] / n})
        assert drift.outside == sum(each not in counts for each in codes) / n > 0.1
        assert drift.is_far is is_far


def test_numbers_learned_value_by_value_are_unseen_within_the_range_and_outside_beyond():
    rng, columns = np.random.default_rng(0), [Column("c", "number", "", "number")]
    code = 2 * rng.integers(0, 40, 4000)
    y = rng.random(4000) < np.where(code % 6 == 0, 0.5, 0.02)
    encoder = TableEncoder(columns)
    encoder.fit_transform(pl.DataFrame({"c": code}), y)
    unlike = encoder.find_unlike(pl.DataFrame({"c": [4, 5, 7, 8, 79, 90, 90, 90, None]}))
    assert [each["c"].sum() for each in unlike] == [6, 4]
    assert encoder.statistics_.outside(encoder.read(pl.DataFrame({"c": [5, 7, 90]}))) == {"c": 3}
    # Truth values of a stream are numbers and not empty.
    counts = NumberBins(np.array([0.5])).counts(pl.Series(["true", "false", "yes", "0.2", None]))
    assert counts.tolist() == [2.0, 2.0, 0.0, 1.0]
