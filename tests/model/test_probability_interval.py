"""Bounds of probabilities, beside isotonic regressions of the held-out rows and one more."""

from dataclasses import replace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from sklearn.isotonic import IsotonicRegression

from draws import draws
from faults import refused
from made_models import made_model
from rareclass.decide.calibration.calibration import Calibration
from rareclass.errors import ErrorKind
from rareclass.fit.hold_out import pooled
from rareclass.folds.score_scale import MajorityScores, match_majority
from rareclass.model.facts import ScoredRows
from rareclass.model.model import Model


def model_file(seed: int, weighted: bool) -> Model:
    generator = np.random.default_rng(seed)
    y = (generator.random(40) < 0.3).astype(np.int16)
    y[:2] = [0, 1]
    scores = (generator.normal(size=40) + y).round(1)
    weight = generator.integers(1, 4, 40).astype(float) if weighted else None
    calibration = Calibration.fit(y, scores, weight)
    return made_model(None, None, calibration=calibration, held_out=ScoredRows(y, scores, weight))


def with_one_more(held_out: ScoredRows, score: float, label: int) -> float:
    """What isotonic regression says of a row that has joined."""
    weight = np.ones(len(held_out.y)) if held_out.weight is None else held_out.weight
    scores = np.append(held_out.scores, score)
    regression = IsotonicRegression()
    regression.fit(scores, np.append(held_out.y, label), np.append(weight, 1.0))
    return float(regression.predict([score])[0])


@draws(10)
@given(seed=st.integers(0, 1000), weighted=st.booleans(), score=st.floats(-2, 3))
def test_bounds_are_isotonic_regressions_with_one_more_row(
    seed: int, weighted: bool, score: float
) -> None:
    content = model_file(seed, weighted)
    low, high = content.probability_interval(np.array([score]))
    assert content.held_out is not None
    np.testing.assert_allclose(low, with_one_more(content.held_out, score, 0), atol=1e-12)
    np.testing.assert_allclose(high, with_one_more(content.held_out, score, 1), atol=1e-12)


def test_bounds_go_with_the_prevalence_and_hold_the_probability() -> None:
    content, scores = model_file(3, False), np.linspace(-2, 3, 30)
    plain = content.probability_interval(scores)
    assert isinstance(content.calibration, Calibration)
    content = replace(content, calibration=content.calibration.at(prevalence=0.01))
    shifted = content.probability_interval(scores)
    odds = np.exp(content.calibration.shift)
    for before, after in zip(plain, shifted, strict=True):
        expected = odds * before / (1 - before + odds * before)
        np.testing.assert_allclose(after, expected, rtol=1e-9)
    probability = content.calibration(scores)
    low, high = content.probability_interval(scores, probability)
    assert ((low <= probability) & (probability <= high)).all()
    assert (low <= shifted.low).all()
    assert (high >= shifted.high).all()


def test_classes_have_together_the_probability_of_a_rare_row() -> None:
    content, scores = model_file(3, False), np.array([-1.0, 0.5, 2.0])
    classes = np.array([[0.1, 0.3], [0.2, 0.2], [0.6, 0.1]])
    assert isinstance(content.calibration, Calibration)
    for calibration in (content.calibration, content.calibration.at(prevalence=0.01)):
        found = replace(content, calibration=calibration).stated_classes(scores, classes)
        np.testing.assert_allclose(found.sum(axis=1), calibration(scores), rtol=1e-12)
        np.testing.assert_allclose(found[:, 0] / found[:, 1], classes[:, 0] / classes[:, 1])


def test_without_held_out_scores_there_are_none() -> None:
    with refused(ErrorKind.UNSUPPORTED):
        _ = replace(model_file(0, False), held_out=None).venn_abers


def test_scores_of_a_part_are_moved_to_where_the_majority_lies() -> None:
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
    assert found.weight is not None
    assert found.weight.tolist() == weight.tolist()
