"""Which rows a round lists: never twice, within the budget, at random with the chances it says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from faults import refused
from rareclass.errors import ErrorKind
from rareclass.labels.states import CheckReason
from rareclass.review.reviewing import Shares, draw_by_strata, farthest, select_rows


@st.composite
def rounds(draw):
    n = draw(st.integers(1, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    scores = rng.integers(0, draw(st.integers(1, 30)), n).astype(float)  # with ties
    points = rng.normal(size=(n, 2))
    known = rng.normal(size=(draw(st.integers(0, 4)), 2))
    teaches = draw(st.floats(0, 1))
    shares = Shares(teaches, draw(st.floats(0, 1 - teaches)))
    return scores, points, known, draw(st.integers(1, 80)), shares, draw(st.integers(0, 99))


@given(rounds(), st.booleans())
def test_no_row_twice_and_the_budget_is_kept(drawn, has_scores):
    scores, points, known, budget, shares, seed = drawn
    given = scores if has_scores else None
    found = select_rows(given, points, known, budget, shares, seed)
    assert len(found.rows) == min(budget, len(scores))
    assert len({*found.rows.tolist()}) == len(found.rows)
    is_random = found.reason == CheckReason.RANDOM
    assert (found.chance[~is_random] == 1.0).all()
    assert ((found.chance > 0.0) & (found.chance <= 1.0)).all()
    # Weights of the rows at random add up to the rows that no rule took.
    if is_random.any():
        left = len(scores) - np.count_nonzero(~is_random)
        assert (1.0 / found.chance[is_random]).sum() == pytest.approx(left)
    if shares.random and budget > 1:
        assert is_random.any() or len(scores) == 1
    # No row is left that scores above one taken by score.
    by_score = found.rows[found.reason == CheckReason.SCORE]
    if not has_scores:
        assert not len(by_score)
    elif len(by_score):
        others = np.delete(scores, by_score)
        assert scores[by_score].min() >= others.max(initial=-np.inf)
    again = select_rows(given, points, known, budget, shares, seed)
    np.testing.assert_array_equal(found.rows, again.rows)


@pytest.mark.sampled(5)
@pytest.mark.parametrize("is_ordered", [True, False])
@pytest.mark.parametrize(("n_rows", "n"), [(40, 7), (30, 12), (9, 2), (5, 5), (3, 1)])
def test_rows_are_drawn_as_often_as_their_chances_say(n_rows, n, is_ordered):
    rng = np.random.default_rng(n_rows)
    times, chances, n_draws = np.zeros(n_rows), np.zeros(n_rows), 1500
    for _ in range(n_draws):
        rows, chance = draw_by_strata(np.arange(n_rows), n, rng, is_ordered)
        assert len({*rows.tolist()}) == n
        times[rows] += 1
        chances[rows] = chance
    assert chances.sum() == pytest.approx(n)
    assert (chances > 0.0).all()
    spread = np.sqrt(chances * (1.0 - chances) / n_draws)
    assert (np.abs(times / n_draws - chances) <= 4.5 * spread + 1e-12).all()
    # The first in order are drawn no less often than others.
    assert (np.diff(chances) <= 1e-12).all()


def test_ties_are_broken_at_random():
    scores, points, known = np.zeros(20), np.zeros((20, 1)), np.zeros((0, 1))
    first = {
        int(select_rows(scores, points, known, 1, Shares(0.0, 0.0), seed).rows[0])
        for seed in range(60)
    }
    assert len(first) > 10


def test_rows_that_teach_are_unlike_the_known_ones():
    scores = np.arange(100.0)[::-1]
    points = np.zeros((100, 1))
    points[30], points[31], points[99] = 5.0, 4.9, 50.0
    found = select_rows(scores, points, np.zeros((1, 1)), 10, Shares(0.3, 0.2))
    teaching = found.rows[found.reason == CheckReason.TEACHES]
    # The next in score are looked at, not all; and a row like one just chosen teaches little.
    assert teaching[0] == 30
    assert 31 in teaching[1:]
    assert 99 not in teaching


@given(st.integers(0, 2**32 - 1), st.integers(0, 12))
def test_farthest_points_are_those_of_a_plain_search(seed, n):
    rng = np.random.default_rng(seed)
    points, known = rng.normal(size=(12, 3)), rng.normal(size=(rng.integers(1, 4), 3))
    near, chosen = list(known), []
    for _ in range(n):
        apart = [
            -1.0 if k in chosen else min(((point - other) ** 2).sum() for other in near)
            for k, point in enumerate(points)
        ]
        chosen.append(int(np.argmax(apart)))
        near.append(points[chosen[-1]])
    assert farthest(points, known, n).tolist() == chosen


@pytest.mark.parametrize("shares", [(-0.1, 0.2), (0.7, 0.4), (float("nan"), 0.0), (0.0, 1.1)])
def test_shares_that_are_none(shares):
    with refused(ErrorKind.SETTING):
        Shares(*shares)
