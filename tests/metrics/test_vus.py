"""VUS against all tuples, and its interval."""

import itertools
import math
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from oracles.metrics import samples
from oracles.ordinal import ordinal_samples, vus_by_tuples
from rareclass.errors import ErrorKind
from rareclass.metrics import interval, mauc, roc_auc, vus


@draws(120)
@given(ordinal_samples(max_rows=10, max_levels=5))
def test_vus_is_the_mean_over_tuples(sample):
    scores, codes, weight, n_levels = sample
    wanted = vus_by_tuples(codes, scores, weight)
    found = vus(codes, scores, weight, levels=range(n_levels))
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300)
    assert 0.0 <= found <= 1.0


def test_long_ties_agree_with_all_tuples():
    rng = np.random.default_rng(0)
    codes = np.repeat(np.arange(4), [9, 4, 3, 6])
    for scores in (np.round(rng.normal(size=22) + codes), rng.integers(0, 2, 22).astype(float)):
        weight = rng.gamma(0.3, size=22)
        wanted = vus_by_tuples(codes, scores, weight)
        assert vus(codes, scores, weight) == pytest.approx(wanted, rel=1e-12)


@given(samples())
def test_two_levels_are_roc_auc(sample):
    y, scores, weight = sample
    assert vus(y, scores, weight) == pytest.approx(roc_auc(y, scores, weight), rel=1e-12)


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


@draws(60)
@given(ordinal_samples(max_rows=25, max_levels=6))
def test_vus_lies_between_what_neighbouring_levels_allow(sample):
    scores, codes, weight, _ = sample
    found = vus(codes, scores, weight)
    present = np.unique(codes[weight > 0])
    areas = []
    for low, high in itertools.pairwise(present):
        pair = (codes == low) | (codes == high)
        areas.append(roc_auc(codes[pair] == high, scores[pair], weight[pair]))
    assert found <= min(areas) + 1e-12
    assert found >= 1 - sum(1 - area for area in areas) - 1e-12


@draws(40)
@given(ordinal_samples(max_rows=15), st.integers(0, 10))
def test_copies_are_weights_and_only_the_order_of_scores_counts(sample, seed):
    scores, codes, weight, n_levels = sample
    copies = np.minimum(np.ceil(weight), 3).astype(int)
    y, s, given = np.repeat(codes, copies), np.repeat(scores, copies), {"levels": range(n_levels)}
    assert vus(codes, scores, copies, **given) == vus(y, s, **given)
    drawn = {**given, "n_draws": 5, "random_state": seed}
    assert interval("vus", codes, scores, copies, **drawn) == interval("vus", y, s, **drawn)
    ranks = np.unique(scores, return_inverse=True)[1]
    assert vus(codes, 2.0**ranks, weight, **given) == vus(codes, scores, weight, **given)


@pytest.mark.parametrize("n_levels", [2, 3, 5, 16])
def test_equal_scores_are_in_order_once_in_all_orders(n_levels):
    y = np.repeat(np.arange(n_levels), np.arange(1, n_levels + 1))
    chance = 1 / math.factorial(n_levels)
    assert vus(y, np.zeros(len(y))) == pytest.approx(chance, rel=1e-12)
    assert vus(y, y) == 1.0
    assert vus(y, -y) == 0.0


def test_infinite_scores_and_extreme_weights():
    y, scores = [0, 1, 2, 2], [-np.inf, np.inf, np.inf, 3.0]
    assert vus(y, scores) == 0.25
    assert vus(y, scores, [1e300] * 4) == 0.25
    assert vus(y, scores, [1e308] * 4) == 0.25
    assert vus(y, scores, [1e-300, 1e300, 1.0, 1.0]) == 0.25


def test_interval_is_near_that_of_de_long_for_two_levels():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.05
    scores = rng.normal(size=2000) + y
    found, wanted = interval("vus", y, scores), interval("roc_auc", y, scores)
    assert found.value == pytest.approx(wanted.value)
    assert found.low == pytest.approx(wanted.low, abs=0.02)
    assert found.high == pytest.approx(wanted.high, abs=0.02)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("counts", [(300, 12, 8), (300, 20, 12, 8, 8)])
def test_interval_holds_the_truth_as_often_as_it_says(counts):
    rng = np.random.default_rng(0)
    y = np.repeat(np.arange(len(counts)), counts)
    big = np.repeat(np.arange(len(counts)), 20_000)
    truth = np.mean([vus(big, rng.normal(size=len(big)) + 0.8 * big) for _ in range(5)])
    held = [
        low <= truth <= high
        for _, low, high in (
            interval("vus", y, rng.normal(size=len(y)) + 0.8 * y, n_draws=60) for _ in range(200)
        )
    ]
    assert 0.9 < np.mean(held) <= 1.0


def test_perfect_order_leaves_room_for_doubt():
    found = interval("vus", [0, 0, 0, 1, 1, 2], [0.0, 0.1, 0.2, 1.0, 1.5, 2.0])
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(0.025)


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
def test_bad_columns_are_named(given, kind, place):
    for measure in (mauc, vus, partial(interval, "vus")):
        with refused(kind, **place):
            measure(*given)
