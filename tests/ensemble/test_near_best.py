"""Members near the best one, and members that are clearly behind on their first fold."""

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws, thorough
from ensemble.quick_members import MeanDifference
from rareclass import RareClassifier
from rareclass.ensemble.members.machines import LaplaceOnQuantiles
from rareclass.ensemble.members.member import EncodedFolds
from rareclass.ensemble.near_best import Behind, Leader, interval_of
from rareclass.ensemble.score_functions import LinearFunction
from rareclass.ensemble.training_rows import HeldOutRows
from rareclass.metrics import average_precision, interval, precision_at_k, roc_auc

N = 2000
Y = np.arange(N) % 20 == 0


def scores_of(y, gain, seed):
    return np.random.default_rng(seed).normal(size=len(y)) + gain * y


def rows_of(y, weight=None):
    return HeldOutRows(y, weight, np.arange(len(y)))


@pytest.mark.parametrize(
    ("objective", "measure"),
    [
        (average_precision, "average_precision"),
        (precision_at_k, "average_precision"),
        (roc_auc, "roc_auc"),
    ],
)
def test_nearness_goes_by_auc_where_that_is_the_objective(objective, measure):
    scores, weight = scores_of(Y, 2.0, 0), np.random.default_rng(0).integers(1, 4, N) * 1.0
    found = interval_of(objective, rows_of(Y, weight), scores)
    assert found == interval(measure, Y, scores, weight, 0.8)


def test_the_leader_is_the_best_in_whatever_steps_and_has_its_interval():
    every = [scores_of(Y, gain, k) for k, gain in enumerate((1.0, 3.0, 2.0))]
    bound = interval("average_precision", Y, every[1], None, 0.8)
    leader = None
    for step in ([every[0]], [], every[1:]):
        leader = Leader.of(step, rows_of(Y), average_precision, leader)
    for found in (leader, Leader.of(every, rows_of(Y), average_precision)):
        assert found.held_out is every[1]
        assert (found.value, found.low) == (bound.value, bound.low)


def test_there_is_no_leader_without_members_or_without_rare_rows():
    assert Leader.of([], rows_of(Y), average_precision) is None
    nobody = np.zeros(N, bool)
    assert Leader.of([scores_of(Y, 1.0, 0)], rows_of(nobody), average_precision) is None


@draws(40)
@given(st.integers(0, 10**6), st.integers(2, 60), st.floats(0.0, 3.0), st.booleans())
def test_a_member_that_is_no_worse_is_never_behind(seed, n_rare, gain, is_weighted):
    random = np.random.default_rng(seed)
    y = np.arange(400) < n_rare
    weight = random.integers(1, 5, 400) * 1.0 if is_weighted else None
    leading, own = scores_of(y, gain, seed), scores_of(y, gain, seed + 1)
    leader = Leader.of([leading], rows_of(y, weight), average_precision)
    if average_precision(y, own, weight) >= average_precision(y, leading, weight):
        assert not leader.is_ahead_of(own, np.arange(400), y, weight, average_precision)
    assert not leader.is_ahead_of(leading, np.arange(400), y, weight, average_precision)


def first_folds(own_gain, n_rows):
    """How often a member is found behind a leader of gain 2.5 by a fifth of the rows."""
    n_draws = 150 if thorough() else 60
    found = 0
    for seed in range(n_draws):
        y = np.arange(n_rows) % 20 == 0
        leading, own = scores_of(y, 2.5, 2 * seed), scores_of(y, own_gain, 2 * seed + 1)
        leader = Leader.of([leading], rows_of(y), average_precision)
        fold = np.flatnonzero(np.arange(n_rows) // 20 % 5 == 0)
        found += leader.is_ahead_of(own[fold], fold, y[fold], None, average_precision)
    return found / n_draws


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("own_gain", "n_rows", "least", "most"),
    [(2.5, 4000, 0.0, 0.1), (2.4, 1000, 0.0, 0.1), (1.0, 1000, 0.7, 1.0), (1.5, 4000, 0.9, 1.0)],
)
def test_a_member_as_good_is_kept_and_one_far_behind_is_found(own_gain, n_rows, least, most):
    assert least <= first_folds(own_gain, n_rows) <= most


def test_rows_without_scores_and_few_rare_rows_say_nothing():
    leading, worse = scores_of(Y, 4.0, 0), np.where(Y, -1.0, 0.0)
    leader = Leader.of([leading], rows_of(Y), average_precision)
    every = np.arange(N)
    assert leader.is_ahead_of(worse, every, Y, None, average_precision)
    assert not leader.is_ahead_of(np.where(Y, np.nan, worse), every, Y, None, average_precision)
    two = np.flatnonzero(~Y | (np.cumsum(Y) <= 2))
    assert not leader.is_ahead_of(worse[two], two, Y[two], None, average_precision)


@dataclass(frozen=True)
class Constant(MeanDifference):
    """Ranks nothing."""

    name: str = "constant"
    calls: Counter = None

    def learn(self, X, is_rare, weight, seed, n_jobs):
        self.calls["learned"] += 1
        return LinearFunction(np.zeros(X.shape[1]))


def a_table(n_rows=600):
    random = np.random.default_rng(0)
    y = np.arange(n_rows) % 10 == 0
    return random.normal(size=(n_rows, 3)) + 3.0 * y[:, None], y


def test_a_member_behind_on_its_first_fold_is_learned_no_further():
    X, y = a_table()
    calls = Counter()
    members = [MeanDifference(), Constant(calls=calls)]
    model = RareClassifier(members=members, random_state=0, n_jobs=1).fit(X, y)
    assert model.behind_ == ["constant"]
    assert calls["learned"] == 1
    assert set(model.leaderboard_["member"]) == {"mean difference"}
    assert model.without_time_ == {}


def test_the_first_member_is_never_behind_and_a_useful_one_is_learned_whole():
    X, y = a_table()
    calls = Counter()
    members = [Constant(calls=calls), MeanDifference()]
    model = RareClassifier(members=members, random_state=0, n_jobs=1).fit(X, y)
    assert model.behind_ == []
    assert calls["learned"] == 5


def kernel_rows(judge):
    X, y = a_table(200)
    fold = np.arange(200) // 10 % 4
    return EncodedFolds(X, y, None, fold, 0, 1, judge=judge)


def test_a_kernel_member_judged_by_its_first_fold_learns_what_it_does_unjudged():
    seen = []
    member = LaplaceOnQuantiles(lams=(0.1, 0.01), n_majority=40)
    judged = member.cross_fit(kernel_rows(seen.append))
    plain = member.cross_fit(kernel_rows(None))
    (scores,) = seen
    assert np.isnan(scores).tolist() == (kernel_rows(None).fold != 0).tolist()
    for one, other in zip(judged, plain, strict=True):
        assert one.setting == other.setting
        np.testing.assert_allclose(one.held_out, other.held_out, rtol=1e-4, atol=1e-4)


def test_a_kernel_member_that_is_behind_says_so():
    def judge(scores):
        raise Behind

    with pytest.raises(Behind):
        LaplaceOnQuantiles(lams=(0.1,), n_majority=40).cross_fit(kernel_rows(judge))
