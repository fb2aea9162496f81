"""Rates of weighted rows: bounds by their definition, and how often intervals hold the rate."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy import stats

from made_models import made_model
from rareclass.metrics.intervals import WeightedRate, mid_p_bounds
from rareclass.model.facts import ScoredRows
from rareclass.model.model import alert_rate
from rareclass.report.threshold_table import ThresholdTable

LEVEL, N_ROWS, UNIT = 0.95, 20_000, 10


@given(st.integers(1, 400), st.floats(0, 1), st.sampled_from([0.025, 0.05, 0.2]))
def test_mid_p_bounds_are_their_definition(trials, share, tail):
    hits = round(share * trials)
    low, high = mid_p_bounds(hits, float(trials), tail)
    assert low <= hits / trials <= high
    for bound, side, end in ((low, stats.binom.sf, 0.0), (high, stats.binom.cdf, 1.0)):
        if hits == end * trials:
            assert bound == end
            continue
        as_many = stats.binom.pmf(hits, trials, bound)
        beyond = side(hits, trials, bound) if end == 0.0 else side(hits - 1, trials, bound)
        assert beyond + as_many / 2 == pytest.approx(tail, rel=1e-6)


def rows_of(seed, n=300):
    random = np.random.default_rng(seed)
    is_rare, weight = random.random(n) < 0.2, random.integers(1, 6, n).astype(float)
    is_rare[0], weight[0] = False, 1.0
    return random.normal(size=n) + is_rare, is_rare, weight


@given(st.integers(0, 10_000), st.floats(-2, 3), st.sampled_from([1.0, 7.3]))
def test_a_weight_of_k_is_k_copies_of_a_drawn_row(seed, threshold, unit):
    scores, is_rare, weight = rows_of(seed)
    rows, drawn = (
        np.repeat(np.arange(len(weight)), weight.astype(int)),
        np.where(is_rare, 1.0, unit),
    )
    one = WeightedRate.of(scores, threshold, is_rare, drawn * weight)
    many = WeightedRate.of(scores[rows], threshold, is_rare[rows], drawn[rows])
    assert_allclose(one.interval(LEVEL), many.interval(LEVEL), rtol=1e-9)
    opposite = WeightedRate.of(-scores, -threshold, is_rare, drawn * weight).interval(LEVEL)
    assert_allclose((1 - opposite.value, 1 - opposite.high, 1 - opposite.low), one.interval(LEVEL))


def coverage(bounds, pmf, truth):
    low, high = bounds
    return float(pmf @ ((low <= truth + 1e-12) & (truth - 1e-12 <= high)))


def test_rows_without_weights_cover_as_often_as_stated():
    """Exact: each number of alerts by its binomial chance."""
    k = np.arange(300.0)
    bounds = WeightedRate(k, 0.0 * k, N_ROWS / 2, N_ROWS / 2).bounds(LEVEL)
    for expected in (*np.geomspace(0.01, 9.9, 60), *np.geomspace(10, 150, 90)):
        share = expected / N_ROWS
        found = coverage(bounds, stats.binom.pmf(k, N_ROWS, share), share)
        assert (0.93 if expected >= 10 else 0.9) <= found
        assert found <= 0.97 or expected < 10


def test_a_thinned_majority_covers_as_often_as_stated():
    """Exact: each pair of numbers of drawn alerts by its chance; majority rows weigh 10."""
    rare, majority = np.arange(75.0), np.arange(50.0)
    above = np.repeat(rare, 50), np.tile(UNIT * majority, 75)
    bounds = WeightedRate(*above, 500.0, N_ROWS - 500.0, 1.0, UNIT).bounds(LEVEL)
    for of_rare in (0.0, 0.5, 2.0, 5.0, 10.0, 20.0, 40.0):
        for of_majority in (0.05, 0.2, 0.6, 1.0, 2.0, 3.0, 5.0, 10.0, 25.0):
            pmf = np.outer(
                stats.binom.pmf(rare, N_ROWS, of_rare / N_ROWS),
                stats.binom.pmf(majority, N_ROWS / UNIT, of_majority * UNIT / N_ROWS),
            )
            found = coverage(bounds, pmf.ravel(), (of_rare + UNIT * of_majority) / N_ROWS)
            assert found >= (0.93 if of_rare + of_majority >= 10 else 0.9)
            # Where less than 3 alerts of the majority are expected, those unseen widen the bound.
            assert found <= (0.97 if of_rare + of_majority >= 10 and of_majority >= 3 else 0.998)


@pytest.mark.parametrize("weight", [None, "copies", "thinned", "by chance"])
def test_monitor_and_report_say_the_same_of_weighted_rows(weight):
    scores, is_rare, copies = rows_of(3, 2_000)
    weight = {
        "copies": copies,
        "thinned": np.where(is_rare, 1.0, 10.0),
        "by chance": copies * np.random.default_rng(0).uniform(1, 9, 2_000),
    }.get(weight)
    held = ScoredRows(is_rare.astype(np.int16), scores, weight)
    model = made_model(None, None, held_out=held).with_thresholds(1.5)
    by_monitor = alert_rate(model, 30, 400).expected
    table = ThresholdTable.of(is_rare, scores, weight, own=1.5)
    assert_allclose(table.amounts.at(table.own), 1e4 * np.array(by_monitor), rtol=1e-9)
