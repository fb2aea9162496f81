"""Weights of members: greedy selection as written down, never worse than the best five's mean."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from oracles.ensemble import selection_by_trying
from rareclass.ensemble.combination import N_BEGIN, N_STEPS, greedy_weights, mean_of_greedy
from rareclass.metrics import average_precision, roc_auc


@st.composite
def held_out_scores(draw):
    """Scores of some members: some know something, some nothing, some are copies of others."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, n_rare = draw(st.integers(8, 40)), draw(st.integers(1, 5))
    y = np.zeros(n, bool)
    y[random.permutation(n)[:n_rare]] = True
    n_members = draw(st.integers(1, 6))
    known = random.uniform(-1.0, 2.0, n_members)
    scores = random.normal(size=(n, n_members)) + known * y[:, None]
    if draw(st.booleans()):
        scores = scores.round()
    if n_members > 2 and draw(st.booleans()):
        scores[:, 2] = scores[:, 0]
    return y, scores


@given(held_out_scores(), st.sampled_from([average_precision, roc_auc]), st.integers(1, 6))
@draws(80)
def test_weights_are_those_of_trying_everybody(table, measure, n_steps):
    y, scores = table

    def merit(combined):
        return measure(y, combined.round(9))  # ties of sums in another order stay ties

    found = greedy_weights(scores, merit, n_steps=n_steps)
    expected = selection_by_trying(scores, merit, N_BEGIN, n_steps)
    np.testing.assert_allclose(found, expected)


@given(held_out_scores(), st.sampled_from([average_precision, roc_auc]))
@draws(60)
def test_the_combination_is_no_worse_than_the_mean_of_the_best(table, measure):
    y, scores = table

    def merit(combined):
        return measure(y, combined)

    weights = greedy_weights(scores, merit)
    assert weights.sum() == pytest.approx(1.0)
    assert (weights >= 0.0).all()
    own = np.array([merit(column) for column in scores.T])
    best = np.argsort(-own, kind="stable")[:N_BEGIN]
    mean = scores[:, best].sum(axis=1)
    assert merit(scores @ weights) >= merit(mean) - 0.02  # ties of sums may break when divided


def test_a_member_that_hurts_has_no_part():
    random = np.random.default_rng(0)
    y = np.arange(400) < 30
    good = random.normal(size=(400, 5)) + 2.0 * y[:, None]
    harmful = random.normal(size=(400, 1)) - 2.0 * y[:, None]
    weights = greedy_weights(np.hstack([harmful, good]), lambda s: average_precision(y, s))
    assert weights[0] == 0.0
    assert (weights[1:] > 0.0).all()


def test_steps_that_gain_nothing_are_not_kept():
    y = np.arange(20) < 5
    perfect = np.column_stack([y * 1.0, y * 2.0, y * 1.0, np.zeros(20)])
    weights = greedy_weights(perfect, lambda s: roc_auc(y, s), n_begin=3, n_steps=N_STEPS)
    np.testing.assert_allclose(weights, [1 / 3, 1 / 3, 1 / 3, 0.0])


def test_weights_by_two_merits_are_the_mean_of_both():
    random = np.random.default_rng(0)
    y = np.arange(60) < 12
    scores = random.normal(size=(60, 7)) + random.uniform(0.0, 2.0, 7) * y[:, None]
    merits = [lambda s: average_precision(y, s), lambda s: roc_auc(y, s)]
    expected = (greedy_weights(scores, merits[0]) + greedy_weights(scores, merits[1])) / 2
    np.testing.assert_allclose(mean_of_greedy(scores, merits), expected)
