"""Thresholds of rows in groups: their design effect by hand, and as often as they say."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import special, stats

from decide.test_threshold_rules import APART, Rule, prevalence_free, scored, true_precision
from draws import draws, thorough
from rareclass.decide.threshold_rule import ThresholdRule
from rareclass.metrics import missed_case_measures
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import exact_interval, trials_of_share
from rareclass.report.scores_section import ReliabilityDisplay
from rareclass.report.subgroups import Subgroups
from rareclass.report.threshold_table import ThresholdTable

PREVALENCE, BATCH = 0.1, 300


@st.composite
def in_groups(draw):
    y, scores = draw(scored())
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    return y, scores, random.integers(0, draw(st.integers(1, len(y))), len(y))


def trials_by_hand(hits, counted, groups, every=None):
    """Rows over their design effect: that of a ratio, and two more groups whose rows are alike."""
    size = np.bincount(groups, counted if every is None else every)
    made_up = (size @ size) / size.sum()
    each = [(hits[groups == g].sum(), counted[groups == g].sum()) for g in np.unique(groups)]
    each = [(a, n) for a, n in each if n]
    rows = sum(n for _, n in each)
    share, alike = sum(a for a, _ in each) / rows, sum(n * n for _, n in each) / rows
    effect = alike
    if 0 < share < 1:
        effect = sum((a - share * n) ** 2 for a, n in each) / (rows * share * (1 - share))
    return rows * (len(each) + 2) / (len(each) * effect + 2 * made_up), 0 < share < 1


@given(in_groups())
@draws(60)
def test_rows_of_groups_count_by_their_design_effect(table):
    y, scores, groups = table
    held = HeldOutCuts.read(y, scores, groups=groups)
    called = [scores > held.threshold(cut) for cut in range(len(held.trials))]
    of_cuts = [
        trials_by_hand(above & y, above, groups, scores > -np.inf)[0] for above in called[1:]
    ]
    np.testing.assert_allclose(held.trials[1:], np.minimum(of_cuts, held.ends[1:]))
    for cut, (above, trials) in enumerate(zip(called, held.trials, strict=True)):
        found = trials_of_share(y, above, group=groups)
        np.testing.assert_allclose(found, (trials * np.mean(y[above]) if trials else 0.0, trials))
        hits, n = trials_of_share(above, y, group=groups)
        of_called, of_rare, _ = held.tests_of(cut)
        tests = (hits, n), of_rare, of_called
        is_all = above[y].all(), above[y].all(), not (above & ~y).any()
        assert [a == b for a, b in tests] == list(is_all)  # to the last bit
    is_all = np.ones(len(y), bool)
    classes = (y, held.rare_trials), (~y, held.majority_trials), (is_all, held.row_trials)
    for counted, trials in classes:
        found = [trials_by_hand(above & counted, counted, groups) for above in called]
        some = [n for n, is_between in found if is_between] or [n for n, _ in found]
        assert trials == pytest.approx(min(*some, counted.sum()))
    assert held.alike == pytest.approx(len(y) / held.row_trials)
    # Copies of a row are rows of its group.
    copies = np.random.default_rng(0).integers(1, 4, len(y))
    copies[np.argmin(y)] = 1  # or else the majority was thinned
    weighed = HeldOutCuts.read(y, scores, copies, groups=groups)
    y, scores, groups = (np.repeat(each, copies) for each in table)
    copied = HeldOutCuts.read(y, scores, groups=groups)
    for name in ("ranks", "trials", "rare_trials", "majority_trials", "row_trials"):
        np.testing.assert_allclose(getattr(weighed, name), getattr(copied, name), err_msg=name)


def rows_in_groups(random, n_groups, size, alike):
    """Groups of one class, of `size` rows on the mean, with `alike` of the variance in common."""
    group = np.repeat(np.arange(n_groups), random.geometric(1.0 / size, n_groups))
    y, of_group = random.random(n_groups) < PREVALENCE, random.normal(size=n_groups)
    noise = random.normal(size=len(group))
    scores = np.sqrt(alike) * of_group[group] + np.sqrt(1.0 - alike) * noise
    return y[group], scores + APART * y[group], group


HOLDS_IN_GROUPS = {
    Rule.min_precision(0.3): lambda t, _: true_precision(t, PREVALENCE) >= 0.3,
    Rule.min_recall(0.7): lambda t, _: prevalence_free(t)[0] >= 0.7,
    Rule.max_fpr(0.1): lambda t, _: prevalence_free(t)[1] <= 0.1,
    Rule.max_alerts(40, rows=BATCH): lambda t, scores: (scores[:BATCH] > t).sum() <= 40,
}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("size", "alike"), [(4, 1.0), (8, 0.6)])
@pytest.mark.parametrize("rule", HOLDS_IN_GROUPS, ids=lambda rule: rule.words)
def test_it_holds_as_often_for_rows_of_groups(rule, size, alike):
    random, broken, promised = np.random.default_rng(0), [], 0
    for _ in range(1000 if thorough() else 120):
        y, scores, group = rows_in_groups(random, 400, size, alike)
        chosen = rule.choose(y, scores, groups=group)
        promised += chosen.met
        later = rows_in_groups(random, 400, size, alike)[1]
        broken.append(chosen.met and not HOLDS_IN_GROUPS[rule](chosen.threshold, later))
    assert np.mean(broken) <= 0.1 + 2.0 * math.sqrt(0.09 / len(broken))
    assert promised >= 0.9 * len(broken)


def test_too_few_groups_promise_nothing_and_say_so():
    y, group = np.arange(300) < 60, np.repeat(np.arange(15), 20)
    scores = np.random.default_rng(0).normal(size=300) + 5.0 * y
    assert Rule.min_recall(0.7).choose(y, scores).met
    chosen = Rule.min_recall(0.9).choose(y, scores, groups=group)
    assert not chosen.met
    assert chosen.n_independent < 22
    assert f"(they count as {chosen.n_independent:,.0f} independent ones)" in chosen.says()


def rows_with_probabilities(random, n_groups, size, alike):
    """Rows of a group have one probability, and so much of what decides their class in common."""
    group = np.repeat(np.arange(n_groups), size)
    of_group, own = random.normal(size=n_groups), random.normal(size=len(group))
    probability = special.expit(random.normal(size=n_groups) - 2.5)[group]
    fate = np.sqrt(alike) * of_group[group] + np.sqrt(1.0 - alike) * own
    return special.ndtr(fate) < probability, probability, group


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("size", "alike"), [(4, 1.0), (8, 0.3), (20, 0.6)])
def test_intervals_of_a_report_hold_for_rows_of_groups(size, alike):
    random, bins, days, costs = np.random.default_rng(1), [], [], []
    for _ in range(400 if thorough() else 40):
        y, probability, group = rows_with_probabilities(random, 1600 // size, size, alike)
        reliable = ReliabilityDisplay.of(y, probability, groups=group)
        bins.append(reliable.n_off / len(reliable.found))
        day, threshold = group * 8 // (group[-1] + 1), np.quantile(probability, 0.8)
        of_days = Subgroups.of("day", day, y, probability, threshold, groups=group)
        days.append(bool(of_days.worse))
        prices = {"fp": 1.0, "fn": 5.0}
        table = ThresholdTable.of(y, probability, own=0.1, costs=prices, groups=group)
        missed, false = 5.0 * probability, 1.0 - probability
        _, low, high = table.cost.at(table.own)
        costs.append(not low <= np.where(probability > 0.1, false, missed).sum() <= high)
    # Where rows count, 12 to 35 % of the bins, 24 to 93 % of the days and 19 to 38 % of the costs.
    assert max(map(np.mean, (bins, days, costs))) <= 0.05 + 2.0 * math.sqrt(0.05 / len(bins))


@given(in_groups())
@draws(20)
def test_rows_count_as_many_whatever_their_classes(table):
    y, scores, groups = table
    held = HeldOutCuts.read(y, scores, groups=groups, to_count=True)
    for one in (0, 1):
        of_one = HeldOutCuts.read(0 * y + one, scores, groups=groups, to_count=True)
        assert (of_one.row_trials, of_one.row_unit) == (held.row_trials, held.row_unit)
        assert (of_one.rare_trials, of_one.majority_trials)[one] == 0.0


@pytest.mark.parametrize("weight", [20.0, 20.37])
def test_rows_of_a_thinned_majority_are_no_copies(weight):
    """Rules keep what they say, and intervals hold, where each majority row stands for twenty."""
    random, kept, held = np.random.default_rng(0), [], []
    for _ in range(60):
        y = np.arange(1380) < 400
        scores = random.normal(size=1380) + 2.5 * y
        for rule in (ThresholdRule.min_precision(0.3), ThresholdRule.max_fpr(0.005)):
            chosen = rule.choose(y, scores, np.where(y, 1.0, weight))
            recall, false = stats.norm.sf(chosen.threshold - np.array([2.5, 0.0]))
            precision = 400 * recall / (400 * recall + 980 * weight * false)
            of_precision = chosen.measure == "precision"
            kept.append(not chosen.met or (precision >= 0.3 if of_precision else false <= 0.005))
            of_false = chosen.false_positive_rate
            held.append(
                chosen.precision.low <= precision and of_false.low <= false <= of_false.high
            )
    assert np.mean(kept) >= 0.9
    assert np.mean(held) >= 0.83  # of 90 %


@pytest.mark.parametrize("size", [30, 300, 3000])
def test_one_large_group_breaks_no_budget(size):
    """The other rows are counted one by one, and as much alike as those of the group."""
    random, rows = np.random.default_rng(0), 4000 + size
    group, times = np.append(np.arange(4000), np.full(size, -1)), np.arange(rows) % 6 * 1.0
    scores, y = np.append(random.normal(size=4000), np.full(size, -1.0)), np.arange(rows) % 99 == 0
    by_rows = ThresholdRule.max_alerts(20, rows=1000).choose(y, scores, groups=group)
    by_days = ThresholdRule.max_alerts(20).choose(y, scores, groups=group, time=times)
    assert (by_rows.alerts <= rows / 50, by_days.alerts <= 120) == (True, True)


def test_a_day_whose_rare_rows_are_all_found_is_never_worse():
    group, rare = np.repeat(np.arange(6), 3), np.tile([True, True, False], 6)
    day = [1, 1, 1, 1, 2, 1, 1, 1, 1, 2, 0, 1, 1, 2, 2, 0, 2, 2]
    found = Subgroups.of("day", day, rare, rare * 1.0, 0.5, groups=group)
    assert found.worse == ()
    assert {each.recall[::2] for each in found.parts} == {(1.0, 1.0)}


@given(in_groups(), st.floats(0.01, 0.99))
@draws(20)
def test_measures_with_missed_cases_have_the_intervals_of_the_threshold(table, missed):
    y, scores, groups = table
    threshold = np.median(scores)
    found = missed_case_measures(y, scores, threshold, missed_cases=missed, groups=groups)
    called, cases, _ = HeldOutCuts.read(y, scores, groups=groups, to_count=True).tests_at(threshold)
    assert found.recall == exact_interval(*cases, 0.95)
    precision = np.minimum(np.divide(exact_interval(*called, 0.95), 1.0 - missed), 1.0)
    assert found.precision == pytest.approx(precision) if called[1] else found.precision is None
