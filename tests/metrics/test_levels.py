"""MAUC against all pairs and VUS against all tuples, and their intervals."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from oracles.ordinal import mauc_by_pairs, ordinal_samples, vus_by_tuples
from rareclass.errors import ErrorKind
from rareclass.metrics import interval, mauc, vus

MEASURES = {"mauc": mauc, "vus": vus}
by_name = pytest.mark.parametrize("name", MEASURES)


@draws(120)
@given(pairs=ordinal_samples(max_rows=40, max_levels=9), tuples=ordinal_samples(10, 5))
def test_mauc_is_the_mean_over_pairs_and_vus_over_tuples(pairs, tuples):
    for sample, of, oracle in ((pairs, mauc, mauc_by_pairs), (tuples, vus, vus_by_tuples)):
        scores, codes, weight, n_levels = sample
        wanted = oracle(codes, scores, weight)
        found = of(codes, scores, weight, levels=range(n_levels))
        assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300)
        assert 0.0 <= found <= 1.0
    scores, codes, weight, _ = pairs
    turned = 1 - mauc_by_pairs(codes, scores, weight)
    assert mauc(codes, -scores, weight) == pytest.approx(turned, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("measure", "oracle", "codes"),
    [
        (mauc, mauc_by_pairs, np.random.default_rng(1).integers(0, 100, 1000)),
        (vus, vus_by_tuples, np.repeat(np.arange(4), [9, 4, 3, 6])),
    ],
)
def test_many_levels_and_long_ties_agree_with_the_oracle(measure, oracle, codes):
    rng, n = np.random.default_rng(0), len(codes)
    for scores in (np.round(rng.normal(size=n) + codes / 2, 1), 1.0 * rng.integers(0, 2, n)):
        weight = rng.gamma(0.3, size=n)
        wanted = oracle(codes, scores, weight)
        assert measure(codes, scores, weight) == pytest.approx(wanted, rel=1e-12)


@draws(60)
@given(ordinal_samples(max_rows=25, max_levels=4))
def test_orders_of_the_levels_share_all_of_it(sample):
    scores, codes, weight, n_levels = sample
    by_order = [
        vus(codes, scores, weight, levels=order)
        for order in itertools.permutations(range(n_levels))
    ]
    present = len(np.unique(codes[weight > 0]))
    copies = math.factorial(n_levels) / math.factorial(present)  # orders alike without rows
    assert sum(by_order) == pytest.approx(copies, rel=1e-12)
    reverse = range(n_levels)[::-1]
    backwards = vus(codes, -scores, weight, levels=reverse)
    assert backwards == pytest.approx(by_order[0], rel=1e-12, abs=1e-300)


@by_name
@draws(40)
@given(sample=ordinal_samples(max_rows=15), seed=st.integers(0, 10))
def test_copies_are_weights_in_intervals(name, sample, seed):
    scores, codes, weight, n_levels = sample
    copies = np.minimum(np.ceil(weight), 3).astype(int)
    y, s = np.repeat(codes, copies), np.repeat(scores, copies)
    drawn = {"levels": range(n_levels), "n_draws": 5, "random_state": seed}
    assert interval(name, codes, scores, copies, **drawn) == interval(name, y, s, **drawn)
    groups = np.arange(len(codes)) // 2
    found = interval(name, codes, scores, copies, groups=groups, **drawn)
    assert found == pytest.approx(interval(name, y, s, groups=np.repeat(groups, copies), **drawn))
    mixed = np.array([(float(g) if row % 2 else g) or "word" for row, g in enumerate(groups)], "O")
    for names in ([f"c{-g}" for g in groups], mixed):
        assert found == interval(name, codes, scores, copies, groups=names, **drawn)


@pytest.mark.parametrize("n_levels", [2, 3, 5, 16])
def test_equal_scores_are_in_order_once_in_all_orders(n_levels):
    y = np.repeat(np.arange(n_levels), np.arange(1, n_levels + 1))
    chance = 1 / math.factorial(n_levels)
    assert vus(y, np.zeros(len(y))) == pytest.approx(chance, rel=1e-12)
    assert vus(y, y) == 1.0
    assert vus(y, -y) == 0.0


def test_infinite_scores_and_extreme_weights():
    y, scores = [0, 1, 2, 2], [-np.inf, np.inf, np.inf, 3.0]
    by_pairs = (1 + 1 + 1 + 0.5 + 0) / 5
    assert mauc(y, scores) == by_pairs
    assert mauc(y, scores, [1e300] * 4) == pytest.approx(by_pairs)
    assert mauc(y, scores, [1e-300] * 4) == pytest.approx(by_pairs)
    assert vus(y, scores) == 0.25
    assert vus(y, scores, [1e308] * 4) == 0.25
    assert vus(y, scores, [1e-300, 1e300, 1.0, 1.0]) == 0.25


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("name", "n_draws", "near"), [("mauc", 1000, 0.01), ("vus", 200, 0.02)])
def test_the_interval_is_near_that_of_de_long_for_two_levels(name, n_draws, near):
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.05
    scores = rng.normal(size=2000) + y
    found, wanted = interval(name, y, scores, n_draws=n_draws), interval("roc_auc", y, scores)
    assert found.value == pytest.approx(wanted.value)
    assert found.low == pytest.approx(wanted.low, abs=near)
    assert found.high == pytest.approx(wanted.high, abs=near)


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    ("name", "counts"),
    [("mauc", (300, 12, 8)), ("vus", (300, 12, 8)), ("vus", (300, 20, 12, 8, 8))],
)
def test_the_interval_holds_the_truth_as_often_as_it_says(name, counts):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(counts)), counts)
    # Endless rows: pairs go by the shares of the levels, tuples do not.
    big = np.repeat(y, 100) if name == "mauc" else np.repeat(np.arange(len(counts)), 20_000)
    of = MEASURES[name]
    truth = np.mean([of(big, rng.normal(size=len(big)) + 0.8 * big) for _ in range(5)])
    held = [
        low <= truth <= high
        for _, low, high in (
            interval(name, y, rng.normal(size=len(y)) + 0.8 * y, n_draws=60) for _ in range(200)
        )
    ]
    assert 0.9 < np.mean(held) <= 1.0


@pytest.mark.sampled(1)
@pytest.mark.parametrize("size", [1, 4, 10])
@by_name
def test_the_interval_of_groups_holds_the_truth_as_often(name, size):
    rng, of, held, n_groups = np.random.default_rng(0), MEASURES[name], {True: [], False: []}, 60

    def rows(n):  # a group has one level; most of what its rows score is in common
        level = np.repeat(rng.choice(3, n, p=[0.6, 0.25, 0.15]), size)
        common = np.repeat(rng.normal(size=n), size)
        return level, 0.9 * common + 0.4 * rng.normal(size=n * size) + 0.8 * level

    truth = of(*rows(20_000))
    for _ in range(100):
        y, scores = rows(n_groups)
        for grouped, several in held.items():
            groups = np.repeat(np.arange(n_groups), size) if grouped else None
            found = interval(name, y, scores, n_draws=60, groups=groups, levels=range(3))
            several.append(found.low <= truth <= found.high)
    assert np.mean(held[True]) >= 0.9
    assert np.mean(held[False]) <= (0.85 if size > 1 else 1.0)


@pytest.mark.parametrize(
    ("name", "counts", "low"), [("mauc", (3, 1, 1), 0.025 ** (1 / 2)), ("vus", (3, 2, 1), 0.025)]
)
def test_perfect_order_leaves_room_for_doubt(name, counts, low):
    y = np.repeat([0, 1, 2], counts)
    found = interval(name, y, np.arange(len(y)) * 0.1)
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(low)


def test_the_draw_is_the_same_each_time_and_wider_at_a_higher_level():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    scores = rng.normal(size=300) + y
    first, other = (interval("mauc", y, scores, **more) for more in ({}, {"random_state": 1}))
    assert first == interval("mauc", y, scores) != other
    assert other.low == pytest.approx(first.low, abs=0.02)
    wide = interval("mauc", y, scores, level=0.99)
    assert wide.low < first.low < first.value < first.high < wide.high


@pytest.mark.parametrize(
    ("given", "kind", "place"),
    [
        (([], []), ErrorKind.LABELS, {"says": "no level"}),
        (([1, 1], [1.0, 2.0]), ErrorKind.LABELS, {"says": "only 1"}),
        (([1, 2], [1.0, 2.0], [1.0, 0.0]), ErrorKind.LABELS, {"says": "only 1"}),
        (([1, 2], [1.0]), ErrorKind.ROWS, {"column": "y"}),
        (([1, 2], [1.0, np.nan]), ErrorKind.CELL, {"column": "scores", "row": 1}),
        (([1, 2], [1.0, 2.0], [1.0, -2.0]), ErrorKind.CELL, {"column": "sample_weight", "row": 1}),
    ],
)
@pytest.mark.parametrize("measure", [mauc, vus, *(partial(interval, name) for name in MEASURES)])
def test_bad_columns_are_named(measure, given, kind, place):
    with refused(kind, **place):
        measure(*given)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="level=95 must be"):
        interval("mauc", [0, 1], [0.0, 1.0], level=95)
    with pytest.raises(ValueError, match="n_draws=1 must be at least 2"):
        interval("mauc", [0, 1], [0.0, 1.0], n_draws=1)
