"""Probabilities of estimators that hold rows out while fitting, and none of others."""

import numpy as np
import pytest
from sklearn.datasets import make_classification

from rareclass import MIBC, MIBCCV, OrdinalRankRC, OrdinalRankRCCV, RankRC, RankRCCV, RareClassifier
from rareclass.decide.calibration import Calibration, LevelCalibration
from rareclass.estimators.estimator import learn_calibration
from rareclass.model.model_file import our_types

X, Y = make_classification(500, n_features=5, n_redundant=0, weights=[0.9], random_state=0)
CALIBRATED = [
    RankRCCV(lams=[1.0, 0.1], cv=3),
    MIBCCV(Cs=[0.1, 1.0], cv=3),
    RareClassifier(members="logistic regression", cv=3),
]


def rare(model, rows=X):
    return model.predict_proba(rows)[:, 1]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", CALIBRATED, ids=lambda one: type(one).__name__)
def test_probabilities_rise_with_the_score_and_have_the_base_rate_that_is_stated(model):
    assert hasattr(model, "predict_proba")
    model.fit(X[:350], Y[:350])
    p = rare(model)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert (np.diff(p[np.argsort(model.score_samples(X))]) >= -1e-12).all()
    assert p[350:].mean() == pytest.approx(Y.mean(), rel=0.2)
    moved = rare(model.set_prevalence(0.01))
    assert moved.mean() < 0.5 * p.mean()
    np.testing.assert_allclose(rare(model.set_prevalence()), p)
    with pytest.raises(ValueError, match="prevalence=1 must be between 0 and 1"):
        model.set_prevalence(1)


def test_the_map_is_of_scores_of_rows_held_out():
    model = RankRCCV(lams=[0.1], width=1.0, cv=[(np.arange(250, 500), np.arange(250))]).fit(X, Y)
    alone = RankRC(lam=0.1, width=1.0).fit(X[250:], Y[250:])
    scores, whole, is_rest = alone.score_samples(X[:250]), model.score_samples(X), Y[:250] == 0
    # Of a ranker only the order is trained: its majority is brought to where the model's lies.
    standard = (scores - scores[is_rest].mean()) / scores[is_rest].std()
    moved = standard * whole[Y == 0].std() + whole[Y == 0].mean()
    expected = learn_calibration(Y[:250], moved, None)
    np.testing.assert_allclose(rare(model), expected(whole), rtol=1e-3, atol=1e-6)


def test_weights_divided_by_the_largest_are_copies_again():
    rng = np.random.default_rng(0)
    times, scores = rng.integers(1, 4, len(Y)), rng.normal(size=len(Y)) + Y
    one = learn_calibration(Y, scores, times / times.max())
    other = learn_calibration(np.repeat(Y, times), np.repeat(scores, times), None)
    np.testing.assert_allclose(one(scores), other(scores), rtol=1e-6)
    assert learn_calibration(np.zeros(3), np.arange(3.0), None) is None


@pytest.mark.parametrize("model", [RankRC(lam=1.0), MIBC(), RankRCCV(lams=[1.0], refit=False)])
def test_what_holds_no_rows_out_says_who_gives_probabilities(model):
    model = model.fit(X, Y)
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError, match=r"rareclass.decide.CalibratedRanker"):
        model.predict_proba(X)
    with pytest.raises(AttributeError, match="has no probabilities"):
        model.set_prevalence(0.1)


LEVELS = np.digitize(X[:, 0] + X[:, 1], [0.8, 2.0])


def test_levels_have_a_probability_each():
    model = OrdinalRankRCCV(lams=[0.1], cv=3, levels=[-1, 0, 1, 2, 3])
    assert hasattr(model, "predict_proba")
    p = model.fit(X[:350], LEVELS[:350]).predict_proba(X)
    assert p.shape == (500, 5)
    np.testing.assert_allclose(p.sum(axis=1), 1.0)
    assert (p >= 0).all()
    assert (p[:, [0, 4]] == 0).all()  # levels of no row
    share = np.bincount(LEVELS[350:] + 1, minlength=5) / 150
    np.testing.assert_allclose(p[350:].mean(axis=0), share, atol=0.06)
    higher = p[np.argsort(model.score_samples(X))] @ np.arange(5.0)
    assert higher[-50:].mean() > higher[:50].mean() + 0.5
    above = [each for each in model.calibration_.above if not isinstance(each, float)]
    for k, each in enumerate(above):
        expected = each(model.score_samples(X))  # but for where they cross
        np.testing.assert_allclose(p[:, k + 2 :].sum(axis=1), expected, atol=1e-3)
    assert not hasattr(OrdinalRankRC().fit(X, LEVELS), "predict_proba")
    assert not hasattr(model.best_estimator_.fit(X, LEVELS), "predict_proba")


def test_maps_that_cross_are_made_monotone():
    y, scores = np.repeat([0, 1, 2], 6), np.arange(18.0)
    one = Calibration.fit(y > 0, scores, method="logistic")
    other = Calibration.fit(y > 0, scores + 4.0, method="logistic")
    rows = np.array([3.0, 5.0, 8.0])
    assert (other(rows) < one(rows)).all()
    p = LevelCalibration([other, one])(rows)  # the lower level is exceeded less often
    middle = 0.5 * (one(rows) + other(rows))
    np.testing.assert_allclose(p, np.column_stack([1 - middle, 0 * middle, middle]), atol=1e-12)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("model", CALIBRATED, ids=lambda one: type(one).__name__)
def test_a_model_file_keeps_the_map_and_its_prevalence(model):
    model.fit(X, Y).set_prevalence(0.02)
    kept = getattr(model, "best_estimator_", model)
    import skops.io

    file = skops.io.dumps(kept)
    held = skops.io.get_untrusted_types(data=file)
    of_map = {name for name in held if ".decide." in name}
    assert of_map
    assert of_map <= {*our_types()}
    loaded = skops.io.loads(file, trusted=held)
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    if kept is not model:  # a best model that is fitted again forgets the map of its search
        assert not hasattr(kept.fit(X, Y), "predict_proba")
