"""What a report counts and the rows that it keeps, against plain computations."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

from made_models import made_model
from rareclass.encoding.bounded_numbers import summarise_numbers
from rareclass.metrics import interval
from rareclass.metrics.column_drift import population_stability_index
from rareclass.metrics.intervals import exact_interval
from rareclass.model.columns import tenths
from rareclass.model.drift import ColumnTracker
from rareclass.model.facts import TrainingFacts
from rareclass.report import reading
from rareclass.report.columns_and_rows import comparable, nearest
from rareclass.report.scores_section import ReliabilityDisplay, ScoreDistributionDisplay
from rareclass.report.subgroups import Subgroups
from rareclass.tables.columns import Column


def test_reliable_probabilities_are_found_so():
    generator = np.random.default_rng(0)
    given = 10 ** generator.uniform(-4, 0, 40_000)
    y = generator.random(40_000) < given
    told = ReliabilityDisplay.of(y, given)
    assert told.n_off <= 1
    assert sum(told.n_rows) == 40_000
    assert sum(told.n_rare) == y.sum()
    assert list(told.foretold) == sorted(told.foretold)
    for n, hits, found in zip(told.n_rows, told.n_rare, told.found, strict=True):
        assert_allclose(found, exact_interval(hits, n, 0.95))
    # Each says something, but for the lowest, which is what is left.
    assert all(n * p >= 2 or hits >= 2 for n, p, hits in list(
        zip(told.n_rows, told.foretold, told.n_rare, strict=True))[1:])  # fmt: skip
    assert ReliabilityDisplay.of(y, given**2).n_off > 5


def test_few_rows_that_are_left_join_their_neighbours():
    y = np.arange(35) >= 33
    told = ReliabilityDisplay.of(y, np.where(np.arange(35) < 5, 1e-6, 0.5))
    assert told.n_rows == (35.0,)
    assert told.foretold[0] == pytest.approx(30 * 0.5 / 35)


def test_copies_are_weights_in_reliability():
    generator = np.random.default_rng(1)
    given = generator.random(300) ** 3
    y = generator.random(300) < given
    weight = generator.integers(1, 4, 300)
    copies = np.repeat(np.arange(300), weight)
    a, b = ReliabilityDisplay.of(y, given, weight), ReliabilityDisplay.of(y[copies], given[copies])
    assert_allclose(a.foretold, b.foretold)
    assert_allclose(a.n_rare, b.n_rare)
    with pytest.raises(ValueError, match=r"probabilities\[1\]"):
        ReliabilityDisplay.of([0, 1], [0.5, 1.5])


def test_distributions_add_up():
    generator = np.random.default_rng(2)
    y, scores = generator.random(500) < 0.1, generator.standard_cauchy(500)
    told = ScoreDistributionDisplay.of(y, scores)
    assert_allclose([told.rare.sum(), told.rest.sum()], 1.0)
    assert ScoreDistributionDisplay.of([0, 1], [3.0, 3.0]).rare.sum() == 1.0


def column(kind, generator, n):
    if kind == "normal":
        return generator.normal(size=n)
    if kind == "mostly one value":
        return np.where(generator.random(n) < 0.6, 3.0, generator.normal(size=n) * 5)
    if kind == "few values":
        return generator.integers(0, 4, n).astype(float)
    return (generator.random(n) < 0.3).astype(float)


@pytest.mark.parametrize("kind", ["normal", "mostly one value", "few values", "flag"])
def test_rows_of_the_same_kind_have_not_moved(kind):
    generator = np.random.default_rng(3)
    before, now = (column(kind, generator, 4_000) for _ in range(2))
    known = summarise_numbers(before[:, None])
    edges, shares = tenths(known.knots, known.ranks)
    truth = np.bincount(np.searchsorted(edges, before, side="right"), minlength=len(shares))
    assert_allclose(shares, truth / 4_000, atol=0.01)
    counts = np.bincount(np.searchsorted(edges, now, side="right"), minlength=len(shares))
    assert population_stability_index(counts, 4_000 * shares) < 0.02
    moved = np.bincount(np.searchsorted(edges, now + 1.5, side="right"), minlength=len(shares))
    if kind == "normal":
        assert population_stability_index(moved, 4_000 * shares) > 0.25


def test_parts_are_measured_each_by_itself():
    generator = np.random.default_rng(5)
    n = 6_000
    names = generator.choice(["a", "b", "c"], n)
    y = generator.random(n) < 0.1
    scores = generator.normal(size=n) + np.where(y, np.where(names == "c", 0.5, 3.0), 0.0)
    told = Subgroups.of("shop", names, y, scores, 1.5)
    part = told.parts[0]
    assert [part.name, *(each.name for each in told.worse)] == ["c", "c"]
    here = names == "c"
    assert (part.n_rows, part.n_rare) == (here.sum(), (here & y).sum())
    assert part.alerts == (here & (scores > 1.5)).sum()
    assert_allclose(part.auc, interval("roc_auc", y[here], scores[here]))
    # Among many parts that do alike none is worse.
    alike = generator.normal(size=n) + 2.0 * y
    told = Subgroups.of("shop", np.arange(n) % 200, y, alike, 1.5, most=20)
    assert told.worse == ()
    assert told.n_tested <= told.n_parts == 200
    days = Subgroups.of("day", np.arange(n) // 100, y, scores, 1.5, most=10, in_order=True)
    assert len(days.parts) == 10
    assert days.n_parts == 60


def test_the_nearest_row_by_ranks_and_words():
    cells = {"country": ["a", "b", "a", None], "amount": [1.0, 2.0, 1000.0, None]}
    columns = comparable(pl.DataFrame(cells))
    assert columns["amount"].tolist() == [1 / 3, 2 / 3, 1.0, -1.0]
    assert nearest(columns, 0, np.array([0, 1, 2, 3])) == (2, ("amount",))
    assert nearest(columns, 0, np.array([0])) == (None, ())
    assert nearest(columns, 3, np.array([1, 2]))[1] == ("amount", "country")


@pytest.mark.parametrize("most_rare", [5_000, 20])
def test_the_rows_kept_are_the_highest_and_the_rare_ones(monkeypatch, most_rare):
    monkeypatch.setattr(reading, "MOST_TOP", 7)
    monkeypatch.setattr(reading, "MOST_RARE", most_rare)
    generator = np.random.default_rng(0)
    n = 500
    labels = generator.choice(["yes", "no", ""], n, p=[0.1, 0.8, 0.1])
    scores = np.round(generator.normal(size=n) + (labels == "yes"), 1)
    frame = pl.DataFrame({"place": np.arange(n)})
    texts = pl.Series(labels).replace("", None)
    keeper = reading.RowKeeper(("yes",))
    for first in range(0, n, 90):
        part = slice(first, first + 90)
        keeper.add(frame[part], scores[part], texts[part])
    labelled = np.flatnonzero(labels != "")
    y = labels[labelled] == "yes"
    kept, places = keeper.kept(y, scores[labelled], labelled)
    np.testing.assert_array_equal(kept["place"].to_numpy(), labelled[places])
    top = np.argsort(-scores[labelled], kind="stable")[:7]
    assert set(top) <= set(places)
    rare = np.flatnonzero(y)
    if most_rare > len(rare):
        assert set(places) == set(top) | set(rare)
    else:
        lowest = rare[np.argsort(scores[labelled][rare], kind="stable")][: most_rare // 2]
        assert set(lowest) <= set(places)
        assert len(places) <= most_rare + 7


def test_empty_cells_and_copies_are_counted():
    columns = [Column("a", "number", "", "number", 1, 3), Column("b", "number", "", "number", 0, 2)]
    content = made_model(SimpleNamespace(columns=columns, statistics_=None), None)
    training = TrainingFacts(4, 0, 0, True, 0.0, None, None, 0, True, None, None, {}, "2026-01-01")
    content = replace(content, facts=replace(content.facts, training=training))
    now = ColumnTracker(content.trained)
    for a, b in (([1.0, None, 1.0], [2.0, None, 2.0]), ([1.0], [2.0])):
        now.add(pl.DataFrame({"a": a, "b": b}))
    first, second = now.drifts({"b": 0.5})
    assert (first.missing_before, first.missing_now, first.outside) == (0.25, 0.25, 0.0)
    assert (second.missing_before, second.missing_now, second.outside) == (0.0, 0.25, 0.5)
