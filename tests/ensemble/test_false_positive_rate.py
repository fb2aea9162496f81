"""The scale of false-positive rates: counted, monotone, the same for weights and for copies."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from draws import draws
from oracles.ensemble import excess_by_copies, log_rate_by_rows
from rareclass.ensemble.score_functions import FalsePositiveRate


@st.composite
def majorities(draw, most=80):
    """Scores with many ties or none, some of them far out, and weights of whole numbers."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n = draw(st.integers(1, most))
    scores = random.normal(size=n) * 10.0 ** draw(st.integers(-6, 6))
    kind = draw(st.sampled_from(["plain", "ties", "heavy", "same"]))
    if kind == "ties":
        scores = random.integers(-3, 4, n).astype(float)
    elif kind == "heavy":
        scores = random.standard_cauchy(n) ** 3
    elif kind == "same":
        scores[:] = scores[0]
    weight = random.integers(0, 4, n).astype(float)
    weight[random.integers(n)] = 1.0
    return scores, weight


@given(majorities())
@draws(200)
def test_rates_are_counted(table):
    scores, weight = table
    scale = FalsePositiveRate.of(scores, weight)
    expected = [log_rate_by_rows(s, scores, weight) for s in scale.knots]
    np.testing.assert_allclose(scale.log_rates, expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(scale(scale.knots), scale.log_rates)
    excess = excess_by_copies(scores, weight)
    if excess > 1e-9 * np.abs(scores).max():
        assert scale.excess == pytest.approx(excess, rel=1e-9)
    assert scale.excess > 0.0


@given(majorities())
@draws(200)
def test_a_weight_is_so_many_copies_and_only_ratios_of_weights_count(table):
    scores, weight = table
    copies = np.repeat(scores, weight.astype(int))
    asked = np.concatenate([scores, scores + 1.0, np.linspace(-1.0, 2.0, 7) * np.ptp(scores)])
    expected = FalsePositiveRate.of(copies)(asked)
    for other in (weight, weight / 7.0, weight * 1e9):
        scale = FalsePositiveRate.of(scores, other)
        np.testing.assert_allclose(scale(asked), expected, rtol=1e-9, atol=1e-9)


@given(majorities(most=2000), st.integers(0, 2**32))
@draws(60)
@example((np.zeros(1), np.ones(1)), 0)
@example((np.repeat([0.0, 1.0], [1, 40]), np.ones(41)), 0)
def test_rates_fall_with_the_score_and_are_rates(table, seed):
    scores, weight = table
    scale = FalsePositiveRate.of(scores, weight)
    random = np.random.default_rng(seed)
    width = max(np.ptp(scores), 1.0)
    asked = np.sort(scores.min() + width * random.uniform(-1.0, 3.0, 300))
    rates = scale(asked)
    assert (np.diff(rates) <= 0.0).all()
    assert np.isfinite(rates).all()
    assert (rates < 0.0).all()
    assert len(scale.knots) <= 150


def test_the_tail_falls_like_a_power():
    scale = FalsePositiveRate.of(np.arange(100.0))
    top = scale(np.array([99.0]))
    assert scale.excess == 14.5  # of 70 to 99 over 70
    for far in (1.0, 1e3, 1e9, 1e300):
        expected = top - np.log1p(far / 14.5)
        np.testing.assert_allclose(scale(np.array([99.0 + far])), expected)


def test_what_is_kept_of_many_scores_is_within_a_twelfth_of_a_doubling():
    scores = np.random.default_rng(0).normal(size=20_000)
    scale = FalsePositiveRate.of(scores)
    order = np.sort(scores)[::-1]
    exact = np.log((np.arange(20_000) + 1.0) / 20_001.0)
    np.testing.assert_allclose(scale(order), exact, atol=np.log(2.0) / 12.0)
    np.testing.assert_allclose(scale(order[:32]), exact[:32], rtol=1e-12)


def test_scores_that_are_equal_but_for_rounding_have_no_tail_of_their_own():
    scores = 1.0 + np.random.default_rng(0).uniform(-1e-16, 1e-16, 200)
    scale = FalsePositiveRate.of(scores)
    assert scale(np.array([2.0])) > np.log(0.5 / 201.0) - np.log(2.0) - 1e-9
    # The highest are equal: the deviation of all says how far is far.
    scores = np.repeat([0.0, 1.0], [60, 40])
    assert FalsePositiveRate.of(scores).excess == pytest.approx(scores.std())


def test_equal_rows_that_score_differently_in_the_last_digit_are_equal():
    random = np.random.default_rng(0)
    scores = np.repeat(random.normal(size=100), 3)
    rounded = scores * (1.0 + random.choice([-1e-16, 0.0, 1e-16], 300))
    assert len(np.unique(rounded)) > 100
    asked = random.normal(size=500)
    expected = FalsePositiveRate.of(scores)(asked)
    np.testing.assert_allclose(FalsePositiveRate.of(rounded)(asked), expected, rtol=1e-9)


def test_one_row():
    scale = FalsePositiveRate.of(np.array([3.0]))
    np.testing.assert_allclose(np.exp(scale(np.array([-9.0, 3.0, 4.0]))), [0.5, 0.5, 0.25])
