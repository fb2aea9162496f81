"""Which candidate is kept: by F1 with the order as judge, or by precision times recall."""

import numpy as np
import pytest

from rareclass.hyperball.choice import (
    ConfusionCounts,
    RadiusChoice,
    as_good_from,
    fewest_balls,
    first_of_equals,
    pu_scores,
)


def found(tp: int, fp: int = 0, n_rare: int = 6) -> RadiusChoice:
    counts = ConfusionCounts(tp, fp, n_rare - tp)
    return RadiusChoice(0.0, counts, counts.f1, float(n_rare), tp / n_rare)


def test_the_score_is_precision_times_recall_up_to_a_factor():
    """In a table whose truth is known, and a recall that held-out rows told exactly."""
    n_cases, n_rows = 400, 100_000
    recalls, calleds = np.array([0.25, 0.5, 0.75, 1.0]), np.array([150.0, 230.0, 900.0, 9000.0])
    choices = [[found(int(1000 * r), n_rare=1000) for r in recalls]]
    scores = pu_scores(choices, calleds[None])
    precision = recalls * n_cases / calleds
    factor = scores * n_cases / (precision * recalls)
    np.testing.assert_allclose(factor, factor[0], rtol=0.02)
    assert n_rows > calleds.max()


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


def test_by_f1_the_first_within_half_a_row_is_taken():
    assert first_of_equals([[found(4), found(6, 1), found(6)]]) == 1
    assert first_of_equals([[found(4), found(5), found(6)]]) == 2
