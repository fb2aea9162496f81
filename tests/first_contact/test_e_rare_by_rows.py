"""Which class is rare is decided by rows: weights often are costs, and large for the rare class."""

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass import MIBC, RankRC, RareClassifier, StochasticRankRC
from rareclass.findings import FindingKind, finding_of
from rareclass.labels.partial_labels import read_partial_labels
from rareclass.labels.two_classes import read_labels
from rareclass.metrics import roc_auc

RNG = np.random.default_rng(0)
Y = np.repeat([1, 0], [40, 360])
X = RNG.normal(size=(400, 3)) + Y[:, None]
COSTS = np.where(Y == 1, 50.0, 1.0)


def disagreements(caught):
    found = [finding_of(each.message) for each in caught]
    return [each for each in found if each and each.kind is FindingKind.RARE_BY_ROWS]


@pytest.mark.parametrize(
    "estimator",
    [
        RankRC(),
        MIBC(),
        StochasticRankRC(random_state=0),
        RareClassifier(members=["mibc"], verbose=False),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
@pytest.mark.parametrize("flip", [False, True])
def test_costs_of_errors_do_not_turn_the_rare_class_round(estimator, flip):
    y = 1 - Y if flip else Y
    with pytest.warns(UserWarning, match="fewer rows") as caught:
        estimator.fit(X, y, sample_weight=COSTS)
    assert len(disagreements(caught)) == 1
    assert estimator.pos_label_ == 1 - flip
    assert roc_auc(Y == 1, estimator.score_samples(X)) > 0.85


@pytest.mark.parametrize("weight", [None, np.ones(400), np.where(Y == 1, 9.0, 1.0)])
def test_nothing_is_said_where_rows_and_weights_agree(weight):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        RankRC().fit(X, Y, sample_weight=weight)


def test_a_label_that_is_named_needs_no_warning():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert RankRC(pos_label=1).fit(X, Y, sample_weight=COSTS).pos_label_ == 1
        assert RankRC(pos_label=0).fit(X, Y, sample_weight=COSTS).pos_label_ == 0


def test_balls_go_by_rows_too():
    partial = np.where(RNG.random(400) < 0.5, Y, -1)
    with pytest.warns(UserWarning, match="fewer rows") as caught:
        labels = read_partial_labels(partial, COSTS, None, 400)
    assert labels.rare == (1,)
    assert disagreements(caught)


@given(st.lists(st.tuples(st.booleans(), st.sampled_from([0.0, 0.5, 1.0, 7.0])), min_size=2))
def test_the_rare_label_has_fewest_rows_then_least_weight_then_comes_last(rows):
    y, weight = (np.array(column) for column in zip(*rows, strict=True))
    there = weight > 0.0
    if len(np.unique(y[there])) < 2:
        return
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read_labels(y, weight, None, len(y)).pos_label
    rank = {
        label: (np.count_nonzero(there & (y == label)), weight[y == label].sum(), not label)
        for label in (False, True)
    }
    assert rank[found] == min(rank.values())
    assert bool(disagreements(caught)) == (rank[found][1] > rank[not found][1])
