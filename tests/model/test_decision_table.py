"""Decisions and probabilities beside counts and scikit-learn; scores of parts on one scale."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from sklearn.metrics import brier_score_loss, log_loss

from draws import draws
from made_models import made_model
from rareclass.decide.calibration import Calibration
from rareclass.fit.hold_out import pooled
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.metrics import interval, recall_at_k
from rareclass.model.decisions import RareDecision
from rareclass.model.evaluate import decision_table, probability_quality
from rareclass.model.facts import ScoredRows
from rareclass.model.targets import RareClassFacts
from rareclass.report.threshold_table import ThresholdTable


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
