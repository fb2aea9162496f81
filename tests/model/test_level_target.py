"""Ordered targets: which labels are levels, in which order, and what is refused."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from draws import draws
from faults import refused
from made_models import made_model
from rareclass.decide.calibration import Calibration
from rareclass.errors import ErrorKind
from rareclass.fit.hold_out import pooled
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.labels.levels import MOST_LEVELS
from rareclass.labels.spelling import codes_among
from rareclass.metrics import interval, recall_at_k
from rareclass.model.decisions import RareDecision
from rareclass.model.evaluate import decision_table, probability_quality
from rareclass.model.facts import ScoredRows
from rareclass.model.targets import FoundLabels, RareClassFacts, level_target, rare_target
from rareclass.report.threshold_table import ThresholdTable

MEASURED = [str(k / 4) for k in range(MOST_LEVELS + 1)] * 2


def found(labels):
    row_of = lambda label: labels.index(label) + 1  # noqa: E731
    table = pl.Series(labels, dtype=pl.String).value_counts(sort=True)
    return FoundLabels("grade", dict(table.iter_rows()), row_of)


def read(*labels, levels=None):
    return level_target(found(list(labels)), levels)


def test_numbers_are_ordered_by_size_and_not_as_text():
    target = read("10", "9", "-1", "2.5", "9")
    assert target.levels == ("-1", "2.5", "9", "10")
    assert target.codes(pl.Series(["-1", "2.5", "9", "10"])).tolist() == [0, 1, 2, 3]
    assert target.level_counts == (1, 1, 2, 1)
    assert target.majority == 2
    assert target.n_codes == 4
    assert read(*MEASURED[1 : MOST_LEVELS + 1] * 2).n_codes == MOST_LEVELS
    # A number that is written in two ways is one level.
    target = read("1", "01", "1e0", "2")
    assert target.levels == ("1", "2")
    assert target.level_counts == (3, 1)
    assert target.notes() == [
        "labels in other spellings were read as levels: '01' as 1, '1e0' as 1."
    ]


def test_levels_given_have_their_order_and_may_be_empty():
    target = read("low", "high", "High", "low", levels=("low", "medium", "high"))
    written = pl.Series(["low", "high", "High", "?", None])
    assert target.codes(written).tolist() == [0, 2, 2, -1, -1]
    assert target.level_counts == (2, 0, 2)
    assert target.majority == 0
    assert "no row is of level medium." in target.notes()
    said = target.description()
    assert said[0] == "Levels of grade, lowest first: low (2), medium (0), high (2)"
    assert said[1] == "Majority level: low, 2 rows (50.00%)"
    downwards = read("1", "2", "3", levels=("3", "2", "1"))
    assert downwards.codes(pl.Series(["3", "2.0", "1"])).tolist() == [0, 1, 2]


@pytest.mark.parametrize("n_others", [1, 5, 6, 40])
def test_labels_of_the_majority_are_named_or_counted(n_others):
    labels = ["rare", *[f"other {k}" for k in range(n_others) for _ in range(20)]]
    target = rare_target(found(labels).counts, "rare")
    said = target.description()[1]
    more = re.search(r" and (\d+) more", said)
    assert said.count("(20)") + int(more[1] if more else 0) == n_others
    assert more is None or int(more[1]) > 0


@pytest.mark.parametrize(("n_rare", "is_told"), [(1, False), (5, False), (6, True), (9, True)])
def test_a_class_of_more_than_half_of_the_rows_is_doubted(n_rare, is_told):
    target = rare_target(found(["yes"] * n_rare + ["no"] * (10 - n_rare)).counts, "yes")
    assert ["more than half" in note for note in target.notes()] == [True] * is_told


@pytest.mark.parametrize(("n_rare", "is_told"), [(200.0, False), (200.4, False), (230.0, True)])
def test_copies_among_rare_rows_held_out_are_told(n_rare, is_told):
    target = rare_target({"no": 2, "yes": 1}, "yes")
    notes = target.notes_on_held_out(np.ones(200, np.int16), 1e3, n_rare)
    assert ["200 of the 230 rare rows" in note for note in notes] == [True] * is_told


def test_exact_spelling_goes_before_the_same_value():
    assert codes_among(["a", "A"], ["A", "a"]) == {"a": 1, "A": 0}
    assert codes_among(["á", "1.0"], ["1", "01"]) == {}


@pytest.mark.parametrize(
    ("labels", "levels", "says"),
    [
        (
            ["low", "high", "low"],
            None,
            ("row 1 of the target 'grade': 'low' is text", "levels=); there are 'low', 'high'"),
        ),
        (["3", "4", "1,5", "4"], None, ("row 3 of the target 'grade': '1,5' is text",)),
        (["1", "2", "1_0"], None, ("'1_0'",)),
        (
            ["low", "hihg", "?", "high"],
            ("low", "high"),
            (
                "row 2 of the target 'grade': 'hihg'",
                "levels 'low', 'high' (",
                "mean 'high'",
                "leave such rows",
            ),
        ),
        (["6", "6.0"], None, ("one class only: '6' in all 2 rows",)),
        (["low", "low"], ("low", "high"), ("one class only: 'low'",)),
        # A measurement is no level, and cuts are suggested.
        (MEASURED, None, ("101 different numbers", "12.5, 18.75, 22.5 (its median")),
        (["1", "inf", "2"], None, ("row 2 of the target 'grade': 'inf' is not a level",)),
        ([], None, ("No row has a target value",)),
    ],
)
def test_labels_that_are_no_levels_are_refused_with_their_row(labels, levels, says):
    with refused(ErrorKind.LABELS) as caught:
        read(*labels, levels=levels)
    assert all(each in str(caught.value) for each in says)


def test_few_held_out_rows_of_a_level_are_told():
    target = read(*"1112223334")
    notes = target.notes_on_held_out(np.array([0] * 9 + [1], np.int16), 10.0, 0.0)
    assert "few distinct rows of level 2 (1) were held out" in notes[0]
    assert "no row of levels 3, 4 was held out" in notes[1]
    assert len(notes) == 2
    y = np.repeat(np.arange(4, dtype=np.int16), 9)
    notes = target.notes_on_held_out(y, 40.0, 0.0)
    assert "only 36 of the 40 rows held out are distinct" in notes[0]


def test_numbers_in_an_order_that_is_not_their_size_are_noted():
    assert read("3", "4", "5", levels=("5", "3", "4")).notes() == [
        "the levels are numbers that levels= puts in another order than their size: 5, 3, 4, the "
        "last ranked first."
    ]
    for levels in (("3", "4", "5"), ("5", "4", "3")):
        assert read("3", "4", "5", levels=levels).notes() == []


@draws(40)
@given(st.integers(0, 10_000), st.integers(3, 60), st.integers(1, 60))
def test_rows_are_counted_as_one_by_one(seed, n_rest, n_rare):
    rng = np.random.default_rng(seed)
    rare = np.repeat([False, True], [n_rest, n_rare])
    scores = rng.integers(0, 9, len(rare)) + 2.0 * rare
    threshold, *tops = decision_table(ScoredRows(rare, scores), 5.0)
    pairs = list(zip(rare, scores > 5.0, strict=True))
    hits, false = pairs.count((True, True)), pairs.count((False, True))
    assert threshold.alerts == hits + false
    exact = stats.binomtest(hits, n_rare).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(threshold.recall, (hits / n_rare, *exact), atol=1e-9)
    exact = stats.binomtest(false, n_rest).proportion_ci(0.95, "exact")
    np.testing.assert_allclose(threshold.false_positive_rate, (false / n_rest, *exact), atol=1e-9)
    if hits + false:
        exact = stats.binomtest(hits, hits + false).proportion_ci(0.95, "exact")
        expected = (hits / (hits + false), *exact)
        np.testing.assert_allclose(threshold.precision, expected, atol=1e-9)
    else:
        assert threshold.as_plain_data()["precision"]["value"] is None
    assert [row.alerts for row in tops] == sorted({10, 100, n_rare} & set(range(len(rare))))
    groups = np.arange(len(rare)) // 3
    by_groups = decision_table(ScoredRows(rare, scores, group=groups), 5.0)[0]
    report = ThresholdTable.of(rare, scores, own=5.0, groups=groups)
    for name in ("precision", "recall", "false_positive_rate"):
        in_report, found = getattr(report, name).at(report.own), getattr(by_groups, name)
        np.testing.assert_allclose(in_report, found, atol=1e-9)
        np.testing.assert_allclose(found.value, getattr(threshold, name).value, atol=1e-9)
        assert found.low <= getattr(threshold, name).low + 1e-9
    for row in tops:
        recall = interval("recall_at_k", rare, scores, k=row.alerts)
        np.testing.assert_allclose(row.recall, recall, rtol=1e-9)
        found = n_rare * recall_at_k(rare, scores, row.alerts)
        np.testing.assert_allclose(row.precision.value, found / row.alerts, rtol=1e-9)
        wrong = (row.alerts - found) / n_rest
        np.testing.assert_allclose(row.false_positive_rate.value, wrong, atol=1e-9)
        assert row.false_positive_rate.low <= wrong + 1e-12
        assert row.false_positive_rate.high >= wrong - 1e-12
        bounds = [*row.precision, *row.recall, *row.false_positive_rate]
        assert 0.0 <= min(bounds) <= max(bounds) <= 1.0
    decision = RareDecision(RareClassFacts("y", "yes", "no"), np.array([5.0]))
    numbers = decision.confusion(ScoredRows(rare.astype(np.int16), scores)).numbers
    counts, intervals = numbers["at_threshold"], numbers["intervals_at_threshold"]
    assert (counts["true_rare"], counts["false_rare"]) == (hits, false)
    assert (counts["missed_rare"], counts["true_rest"]) == (n_rare - hits, n_rest - false)
    for name, found in (("precision", threshold.precision), ("recall", threshold.recall)):
        if threshold.alerts or name == "recall":
            assert [counts[name], *intervals[name]] == list(found)
        else:
            assert counts[name] is intervals[name] is None


def test_losses_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    rare, p = rng.random(500) < 0.1, rng.uniform(0.01, 0.6, 500)
    quality = probability_quality(rare, p, 0.1)
    share = np.full(500, rare.mean())
    found = (quality.log_loss, quality.log_loss_of_share, quality.brier, quality.brier_of_share)
    expected = [loss(rare, each) for loss in (log_loss, brier_score_loss) for each in (p, share)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert (quality.mean, quality.share) == (p.mean(), rare.mean())


def test_classes_have_together_the_probability_of_a_rare_row():
    generator = np.random.default_rng(3)
    y = (np.arange(40) % 3 == 0).astype(np.int16)
    content = made_model(None, None, calibration=Calibration.fit(y, generator.normal(size=40) + y))
    scores = np.array([-1.0, 0.5, 2.0])
    classes = np.array([[0.1, 0.3], [0.2, 0.2], [0.6, 0.1]])
    assert isinstance(content.calibration, Calibration)
    for calibration in (content.calibration, content.calibration.at(prevalence=0.01)):
        found = replace(content, calibration=calibration).stated_classes(scores, classes)
        np.testing.assert_allclose(found.sum(axis=1), calibration(scores), rtol=1e-12)
        np.testing.assert_allclose(found[:, 0] / found[:, 1], classes[:, 0] / classes[:, 1])


def test_scores_of_a_part_are_moved_to_where_the_majority_lies():
    generator = np.random.default_rng(0)
    truth, weight = generator.normal(size=50), generator.integers(1, 4, 50).astype(float)
    rows = ScoredRows(np.zeros(50, np.int16), truth, weight, np.arange(50))
    parts = []
    for k, (stretch, shift) in enumerate([(2.0, 1.0), (0.1, -7.0)]):
        chosen = np.arange(50) % 2 == k
        scores = truth[chosen] * stretch + shift
        own, like = (MajorityScores.of(each, weight[chosen]) for each in (scores, truth[chosen]))
        part = rows.take(np.flatnonzero(chosen))
        parts.append(part._replace(scores=match_majority(own, like)(scores)))
    found = pooled(parts)
    np.testing.assert_allclose(found.scores, truth, atol=1e-12)
    assert found.weight.tolist() == weight.tolist()
