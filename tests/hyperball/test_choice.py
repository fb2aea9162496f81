"""The radius of the best F1 over held-out rows, how sure that F1 is, and the candidate chosen."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.stats import norm

from draws import draws
from hyperball.rach_cases import f1_by_hand
from rareclass.hyperball.choice import (
    ConfusionCounts,
    RadiusChoice,
    as_good_from,
    choose_radius,
    f1_interval,
    fewest_balls,
    pu_scores,
)

# Whole numbers and halves: ties are exact.
DEPTHS = st.lists(st.integers(-8, 8).map(lambda k: k / 2), min_size=1, max_size=14)


def weighted_f1(depths, is_rare, weight, slack):
    copies = np.repeat(np.arange(len(depths)), weight)
    return f1_by_hand(np.array(is_rare)[copies], np.array(depths)[copies] >= -slack)


def all_cuts(depths):
    """0, and the middle between neighbouring depths, and one below and above all."""
    levels = sorted(set(depths))
    middles = [(a + b) / 2 for a, b in pairwise(levels)]
    return [0.0, *(-m for m in middles), 1.0 - levels[0], -1.0 - levels[-1]]


@given(depths=DEPTHS, data=st.data())
@draws(300)
def test_no_cut_is_better_and_of_equals_the_nearest_to_none_is_taken(depths, data):
    n = len(depths)
    is_rare = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
    weight = data.draw(st.just([1] * n) | st.lists(st.integers(1, 3), min_size=n, max_size=n))
    found = choose_radius(np.array(depths), np.array(is_rare), np.array(weight, float))
    by_cut = {slack: weighted_f1(depths, is_rare, weight, slack) for slack in all_cuts(depths)}
    assert found.f1 == pytest.approx(max(by_cut.values()))
    assert weighted_f1(depths, is_rare, weight, found.slack) == pytest.approx(found.f1)
    called = np.array(depths) >= -found.slack
    rare = np.array(is_rare)
    assert found.counts == ((called & rare).sum(), (called & ~rare).sum(), (~called & rare).sum())
    hits, of_rare = np.sum(weight, where=called & rare), np.sum(weight, where=rare)
    assert found.n_rare == of_rare
    assert found.recall == pytest.approx(hits / max(of_rare, 1))
    as_good = [slack for slack, f1 in by_cut.items() if f1 >= found.f1 - 1e-12]
    # How far below all rows a cut lies is a matter of taste; of the others the nearest is taken.
    between = [abs(slack) for slack in as_good if -slack > min(depths)]
    assert abs(found.slack) <= min(between, default=np.inf)
    if 0.0 in as_good:
        assert found.slack == 0.0


def test_a_slack_lies_in_the_middle_between_two_rows():
    rare = np.array([True, True, False])
    assert choose_radius(np.array([3.0, -1.0, -4.0]), rare, np.ones(3)).slack == 2.5
    assert choose_radius(np.array([6.0, 4.0, 1.0]), rare, np.ones(3)).slack == -2.5


@given(depths=DEPTHS, prior=st.floats(0.1, 50.0), data=st.data())
@draws(200)
def test_a_border_that_is_an_estimate_itself_holds_its_own(depths, prior, data):
    """The slack is the mean of the best one and 0, of as many rare rows each."""
    n = len(depths)
    is_rare = np.array(data.draw(st.lists(st.booleans(), min_size=n, max_size=n)))
    weight = np.array(data.draw(st.lists(st.integers(1, 3), min_size=n, max_size=n)), float)
    best, found = (choose_radius(np.array(depths), is_rare, weight, True, k) for k in (0.0, prior))
    n_rare = weight[is_rare].sum()
    assert found.n_rare == best.n_rare == n_rare
    assert found.slack == pytest.approx((best.slack * n_rare + 0.0 * prior) / (n_rare + prior))
    called = np.array(depths) >= -found.slack - 1e-12
    assert found.f1 == pytest.approx(
        f1_by_hand(*(np.repeat(k, weight.astype(int)) for k in (is_rare, called)))
    )
    assert found.counts.tp == (called & is_rare).sum()


def test_nothing_is_learned_where_nothing_should_be():
    depths, rare = np.array([1.0, -1.0, -3.0, 0.0]), np.array([True, True, False, False])
    found = choose_radius(depths, rare, np.array([1.0, 1.0, 1.0, 3.0]), learn=False)
    assert found.slack == 0.0
    assert found.counts == (1, 1, 1)  # a row on the border is inside
    assert found.f1 == pytest.approx(2 / (2 + 3 + 1))


def test_rounding_errors_part_no_equal_rows():
    depths = np.array([2.0, 1e-16, 0.0, -1e-16, -1.0])
    rare = np.array([True, True, False, True, False])
    found = choose_radius(depths, rare, np.ones(5))
    assert (found.slack, found.counts) == (0.0, (3, 1, 0))
    low = choose_radius(depths, np.array([True, True, True, True, False]), np.ones(5), learn=False)
    assert low.counts == (4, 0, 0)


@given(tp=st.integers(0, 40), fp=st.integers(0, 40), fn=st.integers(0, 40))
@example(tp=0, fp=0, fn=0)
def test_interval_is_wilsons_of_the_hits_among_what_is_or_was_called_rare(tp, fp, fn):
    counts, n = ConfusionCounts(tp, fp, fn), tp + fp + fn
    low, high = f1_interval(counts)
    if not n:
        assert (low, high) == (0.0, 1.0)
        return
    z, share = norm.ppf(0.975), tp / n
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z / (1 + z**2 / n) * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2))
    limits = np.clip([middle - half, middle + half], 0.0, 1.0)
    np.testing.assert_allclose((low, high), 2 * limits / (1 + limits), atol=1e-9)
    assert low - 1e-12 <= 2 * tp / (2 * tp + fp + fn) <= high + 1e-12


def found(tp: int, fp: int = 0, n_rare: int = 6) -> RadiusChoice:
    f1 = 2 * tp / (tp + fp + n_rare) if tp else 0.0
    return RadiusChoice(0.0, ConfusionCounts(tp, fp, n_rare - tp), f1, float(n_rare), tp / n_rare)


def test_the_score_is_precision_times_recall_up_to_a_factor():
    """In a table whose truth is known, and a recall that held-out rows told exactly."""
    n_cases = 400
    recalls, calleds = np.array([0.25, 0.5, 0.75, 1.0]), np.array([150.0, 230.0, 900.0, 9000.0])
    choices = [[found(int(1000 * r), n_rare=1000) for r in recalls]]
    scores = pu_scores(choices, calleds[None])
    precision = recalls * n_cases / calleds
    factor = scores * n_cases / (precision * recalls)
    np.testing.assert_allclose(factor, factor[0], rtol=0.02)


def test_fewer_rows_called_and_more_hits_are_better_and_nothing_found_is_nothing():
    called = np.array([[50.0, 500.0, 50.0, 0.0]])
    scores = pu_scores([[found(5), found(5), found(6), found(0)]], called)
    assert scores[2] > scores[0] > scores[1] > scores[3] == 0.0


def test_of_several_categories_the_geometric_mean_counts():
    rows = [[found(3), found(6)], [found(6), found(2)]]
    called = np.array([[10.0, 30.0], [70.0, 5.0]])
    alone = [pu_scores([row], one[None]) for row, one in zip(rows, called, strict=True)]
    np.testing.assert_allclose(pu_scores(rows, called), np.sqrt(alone[0] * alone[1]))


@pytest.mark.parametrize(("more_found", "number"), [(0.4, 1), (0.6, 2)])
def test_another_ball_has_to_be_worth_more_than_half_a_row(more_found, number):
    choices = [[found(6)] * 3]
    enough = 1.0 / (1.0 - more_found / 6) ** 2
    best = fewest_balls(np.array([0.5, 1.0, enough]), [1, 1, 2], choices)
    assert best == number
    assert as_good_from(1.0, [6]) == pytest.approx((1 - 0.5 / 6) ** 2)
    assert fewest_balls(np.zeros(3), [1, 1, 2], choices) == 0  # none finds anything
