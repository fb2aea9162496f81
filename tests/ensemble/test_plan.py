"""The plan of a fit: from the table's shape alone, cut only where a user gives a time."""

import json
import pickle
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from ensemble.quick_members import Clock, MeanDifference, Slow
from faults import refused
from made_tables import rare_mixture
from rareclass import RareClassifier
from rareclass.ensemble import cross_fitting, plan
from rareclass.ensemble.cross_fitting import TimeLimit
from rareclass.ensemble.members.machines import LaplaceOnQuantiles
from rareclass.ensemble.members.member import Size, Stopped
from rareclass.ensemble.members.trees import ExtraTrees, HistogramBoosting
from rareclass.ensemble.plan import EFFORTS, folds_of, machine_speed, make_members, make_plan
from rareclass.errors import ErrorKind
from rareclass.findings import FindingKind, finding_of

X, Y = rare_mixture(120, 20)
FOLDS = [(np.flatnonzero(np.arange(120) % 3 != k), np.arange(k, 120, 3)) for k in range(3)]
SHAPES = st.builds(
    lambda n_rare, times, n_columns: Size(n_rare * times, n_rare, n_columns),
    st.integers(1, 10**5),
    st.integers(2, 1000),
    st.integers(1, 500),
)


@pytest.fixture(autouse=True)
def reference_machine(monkeypatch):
    monkeypatch.setattr(plan, "machine_speed", lambda: 1.0)


@pytest.fixture
def clock(monkeypatch):
    one = Clock()
    monkeypatch.setattr(cross_fitting, "learning_clock", one.perf_counter)
    return one


def fitted(members, seconds=60.0, cv=FOLDS, **more):
    model = RareClassifier(time_budget=seconds, members=members, cv=cv, n_jobs=1, **more)
    return model.fit(X, Y)


def learned(model):
    return list(dict.fromkeys(sorted(model.leaderboard_["member"])))


@pytest.mark.parametrize(
    ("n_rows", "added"),
    [
        (999, set()),
        (1_000, {"catboost"}),
        (3_000, {"catboost", "deep histogram boosting"}),
        (30_000, {"catboost", "deep histogram boosting", "slow histogram boosting"}),
    ],
)
def test_members_by_the_number_of_rows(n_rows, added):
    pytest.importorskip("catboost")
    made = make_plan("standard", make_members("auto"), Size(n_rows, 50, 10), 5)
    large = {"catboost", "deep histogram boosting", "slow histogram boosting"}
    names = [member.name for member in made.members]
    assert large & set(names) == added
    assert names[0] == "histogram boosting"  # the best average rank
    assert len(names) == 6 + len(added)


@given(SHAPES, st.sampled_from(EFFORTS))
def test_more_effort_is_no_fewer_members_or_rows(shape, effort):
    plans = [make_plan(each, make_members("auto", each), shape, 5) for each in EFFORTS]
    for less, more in pairwise(plans):
        assert {each.name for each in less.members} <= {each.name for each in more.members}
        assert less.n_rows <= more.n_rows <= shape.n_rows
    of_effort = plans[EFFORTS.index(effort)]
    assert of_effort == make_plan(effort, make_members("auto", effort), shape, 5)
    assert of_effort.n_rows == shape.n_rows or of_effort.n_rows > shape.n_rare


@given(SHAPES, st.floats(0.01, 1e4), st.floats(1.0, 10.0))
@draws(60)
def test_a_time_limit_leaves_the_first_members_and_more_time_leaves_no_fewer(shape, seconds, times):
    members = make_members("auto")
    full = make_plan("standard", members, shape, 5)
    cut, longer = (
        make_plan("standard", members, shape, 5, seconds=limit)
        for limit in (seconds, seconds * times)
    )
    assert cut.members == full.members[: len(cut.members)]
    assert [*(each.name for each in cut.members), *cut.without_time] == [
        each.name for each in full.members
    ]
    assert len(cut.members) == 1 or cut.seconds <= seconds
    assert len(cut.members) <= len(longer.members) or cut.n_rows < longer.n_rows
    assert cut.n_rows <= longer.n_rows <= full.n_rows
    assert cut.is_thinned_for_time == (cut.n_rows < full.n_rows)


def test_folds_are_fewer_on_many_rows():
    assert folds_of("auto", 29_999, 5_000, False).n_folds == 5
    assert folds_of("auto", 30_000, 999, False).n_folds == 3
    assert folds_of("auto", 30_000, 1_000, False) == (10, 2)
    assert folds_of("auto", 30_000, 1_000, True).n_folds == 3  # stretches of time
    assert folds_of(7, 30_000, 1_000, False).n_folds == 7


@pytest.mark.parametrize("seconds", [0, -1.0, np.nan, np.inf, "60", True])
def test_the_time_is_a_number_of_seconds(seconds):
    with pytest.raises(ValueError, match=r"time_budget=.* must be a number above 0"):
        fitted([MeanDifference()], seconds)


def test_an_effort_that_there_is_not():
    with refused(ErrorKind.SETTING, says="effort='hard'"):
        RareClassifier(effort="hard").fit(X, Y)


def test_the_plan_is_kept_and_told_in_a_line(capsys):
    model = fitted([MeanDifference()], None, verbose=True)
    assert model.plan_.line in capsys.readouterr().err
    assert model.plan_.line.startswith("1 member, 3 folds, 120 rows; about ")
    assert (model.plan_.effort, model.without_time_) == ("standard", [])


def test_few_rows_are_learned_by_one_thread_and_each_fold_of_a_member_once(monkeypatch):
    def start(thread):
        raise AssertionError("a thread was started")

    monkeypatch.setattr("threading.Thread.start", start)
    count, learn = Counter(), HistogramBoosting.learn

    def counted(member, X, *more):
        count[len(X)] += 1
        return learn(member, X, *more)

    monkeypatch.setattr(HistogramBoosting, "learn", counted)
    quick = [HistogramBoosting(rounds=5), ExtraTrees(trees=4), LaplaceOnQuantiles(lams=(0.01,))]
    model = RareClassifier(members=quick, cv=FOLDS, n_jobs=4).fit(X, Y)
    assert learned(model) == sorted(member.name for member in quick)
    assert count == {80: 3}


def test_so_many_rows_are_learned_by_all_threads(monkeypatch):
    asked = []
    monkeypatch.setattr(plan, "_ONE_THREAD_ROWS", 120)

    class Asking(MeanDifference):
        def learn(self, X, is_rare, weight, seed, n_jobs):
            asked.append(n_jobs)
            return super().learn(X, is_rare, weight, seed, n_jobs)

    for n_rows in (120, 119):
        RareClassifier(members=[Asking()], cv=3, n_jobs=4).fit(X[:n_rows], Y[:n_rows])
    assert asked == [4, 4, 4, 1, 1, 1]


def long_table():
    y = np.arange(6000) % 50 == 0
    return np.random.default_rng(0).normal(size=(6000, 2)) + y[:, None], y


def test_a_long_table_is_thinned_in_the_majority_and_scores_stand_for_all_of_it(monkeypatch):
    monkeypatch.setitem(plan.MOST_ROWS, "standard", 2000)
    table, y = long_table()
    random = np.random.default_rng(1)
    for weight in (None, np.where(y, 1.0, random.integers(1, 3, 6000))):
        model = RareClassifier(members=[MeanDifference()], cv=3, n_jobs=1).fit(table, y, weight)
        assert model.plan_.n_rows == len(model.held_out_["row"]) == 2000
        assert model.held_out_["rare"].sum() == 120
        total = 6000 if weight is None else weight.sum()
        assert model.held_out_["weight"].sum() == pytest.approx(total)
        scores = model.score_samples(random.normal(size=(20_000, 2)))
        assert (scores >= 1.0).mean() == pytest.approx(0.1, rel=0.25)


def test_who_learns_from_few_majority_rows_scores_all_that_members_are_judged_on():
    class AtMost(MeanDifference):
        name, most_majority = "at most", 500

    table, y = long_table()
    members = [AtMost("at most"), MeanDifference()]
    model = RareClassifier(members=members, cv=3, n_jobs=1).fit(table, y)
    assert len(model.held_out_["row"]) == 6000
    assert learned(model) == ["at most", "mean difference"]
    assert model.leaderboard_["roc_auc"].min() > 0.7


def test_a_member_that_is_not_likely_to_end_is_not_begun(clock):
    never = Slow("never", clock, interrupted_in=0, units=1e10)
    with pytest.warns(UserWarning, match="cut the plan to 1 member and 120 rows") as told:
        model = fitted([Slow("first", clock, 1.0), never, Slow("last", clock, 1.0)])
    assert learned(model) == ["first"]
    assert model.without_time_ == ["never", "last"]
    finding = finding_of(told[0].message)
    assert finding.kind == FindingKind.TIME_LIMIT
    assert finding.values == {"left out": ["never", "last"], "members": 1, "rows": 120}
    assert finding.remedy == {"time_budget": "larger, or None"}


def test_a_member_that_runs_past_the_end_is_stopped_between_folds(clock):
    members = [Slow("first", clock, 1.0), Slow("late", clock, 31.0), Slow("last", clock, 1.0)]
    with pytest.warns(UserWarning, match="without late, last"):
        model = fitted(members)
    assert learned(model) == ["first"]
    assert clock.now < 1000.0 + 3.0 + 3 * 31.0


def test_the_first_member_is_learned_whatever_it_takes(clock):
    with pytest.warns(UserWarning, match="without second"):
        model = fitted([Slow("first", clock, 100.0), MeanDifference("second")], 1.0)
    assert learned(model) == ["first"]
    assert model.score_samples(X).shape == (120,)
    assert np.isfinite(model.feature_importances_).all()
    assert fitted([Slow("only", clock, 100.0)], 1.0).without_time_ == []


def test_without_a_limit_the_clock_decides_nothing(clock):
    def model(seconds):
        members = [Slow("first", clock, seconds), Slow("second", clock, seconds, units=1e10)]
        return fitted(members, None)

    quick, slow = model(0.0), model(1e9)
    np.testing.assert_array_equal(quick.score_samples(X), slow.score_samples(X))
    assert learned(slow) == ["first", "second"]


def test_a_limit_goes_on_in_another_process(monkeypatch):
    now = [100.0]
    monkeypatch.setattr(cross_fitting, "learning_clock", lambda: now[0])
    limit = TimeLimit.from_now(10.0)
    sent = pickle.dumps(limit), pickle.dumps(TimeLimit.from_now(None))
    now[0] = 5000.0  # the clock of the other process
    limit, none = map(pickle.loads, sent)
    assert (limit.left, none.left) == (pytest.approx(10.0), np.inf)
    now[0] = 5009.0
    limit.check()
    now[0] = 5011.0
    none.check()
    with pytest.raises(Stopped):
        limit.check()


def test_the_speed_of_the_machine_is_measured_once_and_stored(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    seconds = [0.0]

    def work():
        seconds[0] += 0.001
        return seconds[0]

    monkeypatch.setattr(plan, "_sample_of_work", work)
    machine_speed.cache_clear()
    first = machine_speed()
    assert first == pytest.approx(plan._REFERENCE_SECONDS / 0.001)  # the quickest run
    machine_speed.cache_clear()
    assert machine_speed() == first
    file = tmp_path / "rareclass" / "machine_speed.json"
    assert list(json.loads(file.read_text()).values()) == [first]
    for wrong in ("", "[]", '{"another machine": 1.0}'):
        file.write_text(wrong)
        machine_speed.cache_clear()
        assert machine_speed() < first
    monkeypatch.setenv("XDG_CACHE_HOME", "/proc/no such folder")
    machine_speed.cache_clear()
    assert machine_speed() > 0.0
    machine_speed.cache_clear()


def test_an_interrupted_fit_ends_with_what_is_there_for_the_command_line_alone(clock, monkeypatch):
    second, third = Slow("second", clock, interrupted_in=1), Slow("third", clock)
    with pytest.raises(KeyboardInterrupt):  # a loop around it is to end
        fitted([MeanDifference("first"), second, third], None)
    monkeypatch.setattr(RareClassifier, "_keeps_at_interrupt", True)  # as the command line does
    with pytest.warns(UserWarning, match="Ctrl-C: the model holds .* first") as told:
        model = fitted([MeanDifference("first"), second, third], None)
    assert finding_of(told[0].message).kind == FindingKind.INTERRUPTED
    assert finding_of(told[0].message).values == {"learned": ["first"]}
    assert learned(model) == ["first"]
    alone = fitted([MeanDifference("first")], None)
    np.testing.assert_array_equal(model.score_samples(X), alone.score_samples(X))
    with pytest.raises(KeyboardInterrupt):  # nothing is there
        fitted([second, third], None)
