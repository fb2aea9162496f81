"""Probabilities of several rare classes, and scores of parts on one scale."""

from dataclasses import replace

import numpy as np

from made_models import made_model
from rareclass.decide.calibration.calibration import Calibration
from rareclass.fit.hold_out import pooled
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.model.facts import ScoredRows


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
        part = ScoredRows(rows.y[chosen], scores, weight[chosen], np.flatnonzero(chosen))
        own, like = (MajorityScores.of(each, weight[chosen]) for each in (scores, truth[chosen]))
        parts.append((part, match_majority(own, like)))
    found = pooled(parts)
    np.testing.assert_allclose(found.scores, truth, atol=1e-12)
    assert found.weight.tolist() == weight.tolist()
