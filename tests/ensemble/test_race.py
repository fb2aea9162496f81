"""The race under a time budget: predicted times, who is begun, who is stopped, what `fit` warns of.

The clock is not a real one.
"""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from ensemble.quick_members import Clock, MeanDifference, Slow
from made_tables import rare_mixture
from rareclass import RareClassifier
from rareclass.ensemble import cost_model, race, rare_classifier, training_rows
from rareclass.ensemble.cost_model import LEAST_PER_RARE, LEAST_ROWS, CostModel
from rareclass.ensemble.members.machines import LaplaceOnQuantiles, LogisticOnQuantiles
from rareclass.ensemble.members.member import Member, Size, Stopped
from rareclass.ensemble.members.trees import CatBoost, ExtraTrees, HistogramBoosting
from rareclass.ensemble.race import TimeBudget
from rareclass.findings import FindingKind, finding_of

X, Y = rare_mixture(120, 20)
FOLDS = [(np.flatnonzero(np.arange(120) % 3 != k), np.arange(k, 120, 3)) for k in range(3)]


@given(st.integers(1_000, 1_000_000), st.integers(2, 100))
def test_boosted_trees_of_both_libraries_are_expected_to_take_times_of_one_order(n_rows, n_columns):
    members = HistogramBoosting(), CatBoost()
    size = Size(n_rows, n_rows // 25, n_columns)
    times = [CostModel().predict(each, size, 3) for each in members]
    assert max(times) < 12 * min(times)


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr(race, "learning_clock", one.perf_counter)
    return one


def fitted(members, seconds=60.0, cv=FOLDS, **more):
    return RareClassifier(seconds, members=members, cv=cv, n_jobs=1, **more).fit(X, Y)


def learned(model):
    return set(model.leaderboard_["member"])


def test_a_member_that_is_not_likely_to_end_is_not_begun(clock):
    # What "extra trees" takes a unit is known; this one claims to have 1e10 of them.
    never = Slow("extra trees", clock, interrupted_in=0, units=1e10)
    last = Slow("last", clock, 1.0)
    model = fitted([Slow("first", clock, 1.0), never, last])
    assert learned(model) == {"first", "last"}
    assert model.without_time_.keys() == {"extra trees"}
    assert model.without_time_["extra trees"] > 60.0


def test_few_rows_are_learned_by_one_thread_and_each_fold_of_a_member_once(monkeypatch):
    def start(thread):
        raise AssertionError("a thread was started")

    monkeypatch.setattr("threading.Thread.start", start)
    count, learn = Counter(), HistogramBoosting.learn

    def counted(member, X, *more):
        count[len(X)] += 1
        return learn(member, X, *more)

    monkeypatch.setattr(HistogramBoosting, "learn", counted)
    quick = [
        HistogramBoosting(rounds=5),
        ExtraTrees(trees=4),
        LaplaceOnQuantiles(lams=(0.01,)),
    ]
    model = RareClassifier(600.0, members=quick, cv=FOLDS, n_jobs=4).fit(X, Y)
    assert learned(model) == {member.name for member in quick}
    assert count == {80: 3}
    assert not model.without_time_


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n_rows", "n_learned"), [(999, 6), (1000, 8), (3000, 9)])
def test_few_rows_are_learned_by_fewer_members_each_once(monkeypatch, n_rows, n_learned):
    begun = []

    def quickly(member, rows):
        begun.append(member.name)
        return MeanDifference().cross_fit(rows)

    monkeypatch.setattr(race, "quietly", quickly)
    RareClassifier().fit(*rare_mixture(n_rows, 20))
    assert len(begun) == len(set(begun)) == n_learned
    least = {"slow histogram boosting": 1000, "catboost": 1000, "deep histogram boosting": 3000}
    assert set(least) & set(begun) == {name for name, rows in least.items() if n_rows >= rows}


def test_so_many_rows_are_learned_by_all_threads(monkeypatch):
    asked = []
    monkeypatch.setattr(rare_classifier, "_ONE_THREAD_ROWS", 120)

    class Asking(MeanDifference):
        def learn(self, X, is_rare, weight, seed, n_jobs):
            asked.append(n_jobs)
            return super().learn(X, is_rare, weight, seed, n_jobs)

    for n_rows in (120, 119):
        RareClassifier(members=[Asking()], cv=3, n_jobs=4).fit(X[:n_rows], Y[:n_rows])
    assert asked == [4, 4, 4, 1, 1, 1]


def test_who_takes_more_than_its_share_waits_for_the_others(clock):
    # 30 s are foretold: all that is left, less what "last" is likely to take, is 42 s.
    large = Slow("extra trees", clock, 10.0, units=10.0 / 8e-7)
    model = fitted([Slow("first", clock, 1.0), large, Slow("last", clock, 1.0)])
    assert learned(model) == {"first", "extra trees", "last"}
    assert model.without_time_ == {}
    # Neither of two keeps to its half, 24 s: the first in order is learned, and too little is left.
    late = Slow("catboost", clock, 10.0, units=10.0 / 1e-6)
    model = fitted([Slow("first", clock, 1.0), large, late], 55.0)
    assert learned(model) == {"first", "extra trees"}
    assert model.without_time_["catboost"] == pytest.approx(30.0, rel=0.1)
    # Who keeps to its share comes before them, whatever the order.
    model = fitted([Slow("first", clock, 1.0), large, late, Slow("last", clock, 1.0)], 55.0)
    assert learned(model) == {"first", "extra trees", "last"}


def test_a_member_is_stopped_between_folds_when_the_time_is_over(clock):
    quick = [Slow("first", clock, 1.0), MeanDifference("second")]
    model = fitted([*quick, Slow("late", clock, 31.0), Slow("last", clock)])
    assert learned(model) == {"first", "second"}
    assert model.without_time_ == {"late": None, "last": None}
    assert clock.now < 1000.0 + 1.2 * 60.0


def test_one_member_is_learned_whatever_it_takes(clock):
    members = [Slow("first", clock, 100.0), MeanDifference("second")]
    with pytest.warns(UserWarning, match="first alone, not for second: allow more sec") as told:
        model = fitted(members, 1.0)
    assert learned(model) == {"first"}
    finding = finding_of(told[0].message)
    assert finding.kind == FindingKind.ONE_MEMBER
    assert finding.values == {"left out": ["second"]}
    assert finding.remedy == {"time_budget": "larger"}
    assert model.score_samples(X).shape == (120,)
    assert np.isnan(model.feature_importances_).all()  # nor was there time for these
    # A member alone leaves nothing to warn of.
    model = fitted([Slow("only", clock, 100.0)], 1.0)
    assert model.without_time_ == {}


def test_the_one_that_is_learned_whatever_it_takes_is_likely_to_end_in_time(clock):
    never = Slow("extra trees", clock, 100.0, units=1e10)
    later = Slow("catboost", clock, 100.0, units=2e10)
    with pytest.warns(UserWarning, match="quick alone"):
        model = fitted([never, Slow("quick", clock, 1.0), later])
    assert learned(model) == {"quick"}
    with pytest.warns(UserWarning, match="extra trees alone"):  # none is: the quickest
        model = fitted([later, never])
    assert learned(model) == {"extra trees"}


def test_the_first_member_has_a_tenth_of_the_time_where_reading_took_all_of_it(clock, monkeypatch):
    read = rare_classifier.read_training_rows

    def slowly(*given):
        clock.now += 100.0
        return read(*given)

    monkeypatch.setattr(rare_classifier, "read_training_rows", slowly)
    best = Slow("catboost", clock, 3.0, units=1e6)
    with pytest.warns(UserWarning, match="catboost alone"):
        model = fitted([best, Slow("quick", clock, 0.1)])
    assert learned(model) == {"catboost"}
    longer = Slow("extra trees", clock, 100.0, units=1e10)
    with pytest.warns(UserWarning, match="quick alone"):
        model = fitted([longer, Slow("quick", clock, 0.1)])
    assert learned(model) == {"quick"}


def test_an_interrupted_fit_ends_with_what_is_there(clock):
    members = [
        MeanDifference("first"),
        Slow("second", clock, interrupted_in=1),
        Slow("third", clock),
    ]
    with pytest.warns(UserWarning, match="interrupted: the model holds .* first") as told:
        model = fitted(members)
    assert finding_of(told[0].message).kind == FindingKind.INTERRUPTED
    assert finding_of(told[0].message).values == {"learned": ["first"]}
    assert learned(model) == {"first"}
    np.testing.assert_array_equal(
        model.score_samples(X), fitted([MeanDifference("first")]).score_samples(X)
    )


def test_an_interruption_before_anything_was_learned_is_one(clock):
    with pytest.raises(KeyboardInterrupt):
        fitted([Slow("first", clock, interrupted_in=1), MeanDifference("second")])


@pytest.fixture
def small_pieces(monkeypatch):
    for module, name, value in (
        (race, "SMALL_ROWS", 500),
        (training_rows, "_PIECE_ROWS", 200),
        (training_rows, "_PIECE_RARE", 20),
        (cost_model, "LEAST_ROWS", 100),
    ):
        monkeypatch.setattr(module, name, value)


@pytest.mark.usefixtures("small_pieces")
def test_scores_of_rows_that_a_member_did_not_learn_take_of_its_time(clock, monkeypatch):
    y = np.arange(2000) % 50 == 0
    table = np.random.default_rng(0).normal(size=(2000, 2)) + y[:, None]
    members = [Slow("all", clock, seconds_a_row=1.0), Slow("some", clock, seconds_a_row=4.0)]
    with_others, seconds = race._with_others, []
    for late in (0.0, 7.0):

        def score(*rows, late=late):
            clock.now += late
            return with_others(*rows)

        monkeypatch.setattr(race, "_with_others", score)
        model = RareClassifier(25_000.0, members=members, cv=3, n_jobs=1).fit(table, y)
        columns = map(model.leaderboard_.get, ("member", "seconds"))
        seconds.append(dict(zip(*columns, strict=True)))
    first, second = seconds
    assert second == pytest.approx({"all": first["all"], "some": first["some"] + 7.0})


@pytest.mark.sampled(0)
@pytest.mark.usefixtures("small_pieces")
def test_of_a_long_table_as_much_is_learned_as_there_is_time_for(clock):
    rng = np.random.default_rng(0)
    y = np.arange(6000) % 50 == 0
    table = rng.normal(size=(6000, 2)) + y[:, None]
    weight = np.where(y, 1.0, rng.integers(1, 3, 6000))
    slow = Slow("slow", clock, seconds_a_row=1.0)

    def learned_rows(seconds, weight=None, members=(slow,), cv=3):
        clock.rows.clear()
        model = RareClassifier(seconds, members=list(members), cv=cv, n_jobs=1)
        return model.fit(table, y, weight), clock.rows[:]

    model, (piece, whole) = learned_rows(1e6)[0], clock.rows[:2]
    assert piece == (200, 20, 2)  # what it takes is tried on two folds of a small piece
    assert whole == (6000, 120, 3)
    # The piece took 400 s; what is left of 88 % is for three folds of so many rows.
    model, calls = learned_rows(10_000.0)
    assert calls[1][0] == pytest.approx((0.88 * 10_000 - 400) / 3, rel=0.03)
    assert calls[1][1] == 120
    assert len(model.held_out_["row"]) == calls[1][0]  # no more are drawn than are learned
    # Five folds, where there is time for them.
    assert learned_rows(30_000.0, cv="auto")[1][1][2] == 3
    assert learned_rows(40_000.0, cv="auto")[1][1] == (6000, 120, 5)
    # Scores are those of all of the majority.
    for weights in (None, weight):
        model, _ = learned_rows(10_000.0, weights)
        scores = model.score_samples(rng.normal(size=(20_000, 2)))
        assert (scores >= 1.0).mean() == pytest.approx(0.1, rel=0.25)
    few, calls = learned_rows(700.0)
    assert calls[1][0] == 120 + 5 * 120  # not less
    assert few.score_samples(table).shape == (6000,)
    # Another learns from as many of these as its own part of the time is enough for, and all that
    # are judged on have its scores.
    slower = Slow("slower", clock, seconds_a_row=4.0)
    model, calls = learned_rows(80_000.0, members=[slow, slower])
    rows = [call[0] for call in calls[-2:]]
    assert rows[0] == 6000
    assert rows[1] == pytest.approx((0.88 * 80_000 - 400 - 1600 - 18_000) / 12, rel=0.03)
    assert len(model.held_out_["row"]) == 6000
    assert set(model.leaderboard_["member"]) == {"slow", "slower"}


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, np.inf, "60", True, None])
def test_the_time_is_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match=r"time_budget=.* must be a number above 0"):
        fitted([MeanDifference()], seconds)


class Linear(Member):
    """A member whose time is that of its cells."""

    name, view = "linear", "quantiles"

    def cost(self, size):
        return float(size.n_rows * size.n_features)


class Square(Linear):
    name = "square"

    def cost(self, size):
        return float(size.n_rows) ** 2


class AtMost(Square):
    """Learns from so many majority rows at most."""

    most_majority = 30_000


@given(
    st.floats(1e-4, 1.5),
    st.integers(1, 10**4),
    st.integers(1, 10**7),
    st.sampled_from([Linear(), Square(), AtMost()]),
)
@draws(100)
def test_as_many_rows_as_fit_in_the_time(share, n_rare, n_majority, member):
    costs = CostModel()
    costs.learn(member, Size(2_000, 100, 10), 5, 0.2)

    def predicted(n):
        return costs.predict(member, Size(n_rare + n, n_rare, 10), 5)

    most = n_majority if member.most_majority is None else min(n_majority, member.most_majority)
    seconds = share * predicted(most)
    size = Size(n_rare + n_majority, n_rare, 10)
    found = costs.affordable(member, size, 5, seconds).n_rows - n_rare
    least = min(most, max(LEAST_ROWS, LEAST_PER_RARE * n_rare))
    assert least <= found <= most
    assert found == least or predicted(found) <= seconds * (1 + 1e-9)
    assert found == most or predicted(1.03 * found + 2) > seconds


def test_time_is_foretold_from_what_a_member_took():
    costs, member = CostModel(), Linear()
    assert costs.predict(member, Size(100, 10, 5), 5) is None
    costs.learn(member, Size(100, 10, 5), 5, 2.0)
    assert costs.predict(member, Size(1000, 10, 10), 5) == pytest.approx(40.0)
    assert costs.predict(member, Size(100, 10, 5), 10) == pytest.approx(4.0)
    costs.learn(member, Size(200, 10, 5), 5, 2.0)  # the last word counts
    assert costs.predict(member, Size(100, 10, 5), 5) == pytest.approx(1.0)


def test_a_member_that_is_known_is_slower_as_others_were():
    size = Size(5000, 100, 10)
    costs, trees, linear = CostModel(), HistogramBoosting(), LogisticOnQuantiles()
    usual = costs.predict(linear, size, 5)
    assert usual > 0.0
    costs.learn(trees, size, 5, 3.0 * costs.predict(trees, size, 5))
    assert costs.predict(linear, size, 5) == pytest.approx(3.0 * usual)
    costs.learn(Linear(), size, 5, 1e9)  # of a unit of its own: says nothing of others
    assert costs.predict(linear, size, 5) == pytest.approx(3.0 * usual)
    costs.learn(linear, size, 5, 0.5 * usual)
    assert costs.predict(linear, size, 5) == pytest.approx(0.5 * usual)


def test_a_member_is_stopped_somewhat_after_the_end(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(race, "learning_clock", lambda: now[0])
    budget = TimeBudget(10.0, started=100.0)
    now[0] = 108.0
    assert budget.left == pytest.approx(2.0)
    budget.check()
    now[0] = 111.0
    budget.check()
    assert budget.left == pytest.approx(-1.0)
    now[0] = 112.0
    with pytest.raises(Stopped):
        budget.check()
