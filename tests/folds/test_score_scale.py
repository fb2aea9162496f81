"""Scores of several models on one scale: moments of the majority, false-positive rates of folds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from faults import refused
from rareclass.errors import ErrorKind
from rareclass.folds.score_scale import MajorityScores, ScoreMap, match_majority, on_scale_of_folds


@pytest.mark.parametrize("weighted", [False, True])
def test_scores_are_moved_and_stretched_to_another_model(weighted):
    rng = np.random.default_rng(0)
    scores = rng.normal(3.0, 2.0, 50)
    weight = rng.integers(1, 4, 50).astype(float) if weighted else None
    own = MajorityScores.of(scores, weight)
    as_copies = scores if weight is None else np.repeat(scores, weight.astype(int))
    assert own == pytest.approx((as_copies.mean(), as_copies.std()))
    like = MajorityScores(-1.0, 0.5)
    mapped = match_majority(own, like)(scores)
    assert MajorityScores.of(mapped, weight) == pytest.approx(like)
    np.testing.assert_array_equal(np.argsort(mapped), np.argsort(scores))
    assert MajorityScores.of(match_majority(own)(scores), weight) == pytest.approx((0.0, 1.0))


def test_scores_that_are_all_the_same_are_moved_only():
    flat, spread = MajorityScores.of(np.full(3, 2.0)), MajorityScores(1.0, 4.0)
    assert match_majority(flat, spread)(np.array([2.0, 3.0])).tolist() == [1.0, 2.0]
    assert match_majority(spread, flat)(np.array([2.0, 3.0])).tolist() == [3.0, 4.0]
    assert ScoreMap()(np.array([0.1, -7.0])).tolist() == [0.1, -7.0]


@draws(40)
@given(st.integers(0, 10_000))
def test_the_scale_of_folds_is_the_false_positive_rate_within(seed):
    rng = np.random.default_rng(seed)
    y = rng.random(40) < 0.3
    y[:3], y[3:6] = True, False
    fold = np.arange(40) % 3
    scores = rng.integers(0, 6, 40).astype(float)
    weight = rng.integers(0, 3, 40).astype(float)
    weight[3:6] = 1.0
    scaled = on_scale_of_folds(y, scores, fold, weight)
    for i in range(40):
        rest = (fold == fold[i]) & ~y
        above = weight[rest] @ (scores[rest] > scores[i])
        level = weight[rest] @ (scores[rest] == scores[i])
        assert scaled[i] == pytest.approx(-(above + level / 2) / weight[rest].sum())
    stretched = on_scale_of_folds(y, np.exp(scores) * (1 + fold) - 5 * fold, fold, weight)
    assert stretched == pytest.approx(scaled)


@pytest.mark.parametrize(
    ("folds", "kind"), [([0, 0, 1], ErrorKind.SHAPE), ([0, 0, 1, 1], ErrorKind.TOO_FEW_ROWS)]
)
def test_folds_without_a_scale_are_refused(folds, kind):
    y = np.array([True, False, True, True])
    with refused(kind):
        on_scale_of_folds(y, np.arange(4.0), folds)
