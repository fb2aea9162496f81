"""MAUC against all pairs, and its interval."""

from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from oracles.metrics import samples
from oracles.ordinal import mauc_by_pairs, ordinal_samples
from rareclass.errors import ErrorKind
from rareclass.metrics import interval, mauc, roc_auc


@pytest.mark.sampled(0)
@draws(150)
@given(ordinal_samples(max_rows=40, max_levels=9))
def test_mauc_is_the_mean_over_pairs(sample):
    scores, codes, weight, n_levels = sample
    wanted = mauc_by_pairs(codes, scores, weight)
    found = mauc(codes, scores, weight, levels=range(n_levels))
    assert found == pytest.approx(wanted, rel=1e-12, abs=1e-300)
    assert mauc(codes, -scores, weight) == pytest.approx(1 - wanted, rel=1e-9, abs=1e-12)


def test_many_levels_and_ties_agree_with_all_pairs():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 100, 2000)
    scores = np.round(rng.normal(size=2000) + codes / 50, 1)
    weight = rng.gamma(0.3, size=2000)
    wanted = mauc_by_pairs(codes, scores, weight)
    assert mauc(codes, scores, weight) == pytest.approx(wanted, rel=1e-12)


@given(samples())
def test_two_levels_are_roc_auc(sample):
    y, scores, weight = sample
    assert mauc(y, scores, weight) == pytest.approx(roc_auc(y, scores, weight), rel=1e-12)


@draws(40)
@given(ordinal_samples(max_rows=15), st.integers(0, 10))
def test_a_weight_of_k_is_k_copies_and_0_is_absence(sample, seed):
    scores, codes, weight, n_levels = sample
    copies = np.minimum(np.ceil(weight), 3).astype(int)
    y, s, given = np.repeat(codes, copies), np.repeat(scores, copies), {"levels": range(n_levels)}
    assert mauc(codes, scores, copies, **given) == mauc(y, s, **given)
    drawn = {**given, "n_draws": 5, "random_state": seed}
    assert interval("mauc", codes, scores, copies, **drawn) == interval("mauc", y, s, **drawn)


def test_infinite_scores_and_extreme_weights():
    y, scores = [0, 1, 2, 2], [-np.inf, np.inf, np.inf, 3.0]
    by_pairs = (1 + 1 + 1 + 0.5 + 0) / 5
    assert mauc(y, scores) == by_pairs
    assert mauc(y, scores, [1e300] * 4) == pytest.approx(by_pairs)
    assert mauc(y, scores, [1e-300] * 4) == pytest.approx(by_pairs)


def test_the_interval_is_near_that_of_de_long_for_two_levels():
    rng = np.random.default_rng(0)
    y = rng.random(2000) < 0.05
    scores = rng.normal(size=2000) + y
    found, wanted = interval("mauc", y, scores, n_draws=1000), interval("roc_auc", y, scores)
    assert found.value == pytest.approx(wanted.value)
    assert found.low == pytest.approx(wanted.low, abs=0.01)
    assert found.high == pytest.approx(wanted.high, abs=0.01)


@pytest.mark.sampled(0)
def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [300, 12, 8])
    big = np.repeat([0, 1, 2], [30_000, 1200, 800])
    truth = np.mean([mauc(big, rng.normal(size=len(big)) + 0.8 * big) for _ in range(5)])
    held = [
        low <= truth <= high
        for _, low, high in (
            interval("mauc", y, rng.normal(size=len(y)) + 0.8 * y, n_draws=60) for _ in range(200)
        )
    ]
    assert 0.9 < np.mean(held) <= 1.0


def test_perfect_order_leaves_room_for_doubt():
    found = interval("mauc", [0, 0, 0, 1, 2], [0.0, 0.1, 0.2, 1.0, 2.0])
    assert found.value == found.high == 1.0
    assert found.low == pytest.approx(0.025 ** (1 / 2))


def test_the_draw_is_the_same_each_time_and_wider_at_a_higher_level():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 300)
    scores = rng.normal(size=300) + y
    first, second = interval("mauc", y, scores), interval("mauc", y, scores)
    assert first == second
    other = interval("mauc", y, scores, random_state=1)
    assert other != first
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
def test_bad_columns_are_named(given, kind, place):
    for measure in (mauc, partial(interval, "mauc")):
        with refused(kind, **place):
            measure(*given)


def test_bad_parameters_are_named():
    with pytest.raises(ValueError, match="level must lie"):
        interval("mauc", [0, 1], [0.0, 1.0], level=95)
    with pytest.raises(ValueError, match="n_draws=1 must be at least 2"):
        interval("mauc", [0, 1], [0.0, 1.0], n_draws=1)
