"""Ordinal machines with few landmarks and with learned scales, against all pairs of levels."""

import numpy as np
import pytest

from oracles.ordinal import mauc_by_pairs
from ranking.test_feature_scales import study
from rareclass import OrdinalRankRC, OrdinalRankRCCV, RankRC
from rareclass.labels.levels import read_levels
from rareclass.labels.two_classes import read_labels
from rareclass.ranking import feature_scaling as learning
from rareclass.ranking.feature_scaling import distinct_rows
from rareclass.ranking.ranking_data import KernelSettings
from rareclass.ranking.targets import OrderedLevels, TwoClasses
from rareclass.rows import as_source


def levels_table(seed, n_rows=50, n_features=3, rounded=False):
    """Rows of four levels, of which the second is frequent."""
    rng = np.random.default_rng(seed)
    y = np.ones(n_rows, dtype=int)
    held = rng.choice(n_rows, 12, replace=False)
    y[held] = np.resize([0, 2, 3], 12)
    X = rng.normal(size=(n_rows, n_features)) + 0.7 * y[:, None]
    return (np.round(X) if rounded else X), y


def test_fewer_landmarks_are_found_by_cross_validation():
    X, y = levels_table(3, 300)
    full = OrdinalRankRCCV(lams=[2**-6], cv=3).fit(X, y)
    few = OrdinalRankRCCV(penalty="l1", max_landmarks=4, cv=3).fit(X, y)
    assert 1 <= few.best_estimator_.n_landmarks_ <= 4 < full.best_estimator_.n_landmarks_
    assert few.score(X, y) > full.score(X, y) - 0.05
    assert (few.cv_results_["n_landmarks"] <= 4).all()
    with pytest.raises(ValueError, match="needs penalty='l1'"):
        OrdinalRankRCCV(max_landmarks=4).fit(X, y)


def test_equal_rows_of_different_levels_stay_apart():
    X = np.array([[0.0], [0.0], [0.0], [1.0], [1.0], [2.0], [2.0]])
    y = np.array([0, 0, 2, 2, 1, 1, 1])
    rows, target = distinct_rows(
        as_source(X), OrderedLevels(read_levels(y), np.ones((3, 3))), 9, lambda n: 9
    )
    held = rows.take(slice(None))[: len(target.labels.rare), 0]
    pairs = sorted(zip(held, target.labels.rare_codes, target.labels.rare_weight, strict=True))
    assert pairs == [(0.0, 0, 2.0), (0.0, 2, 1.0), (1.0, 2, 1.0)]


def test_levels_of_few_rows_are_spread_over_the_folds():
    y = np.repeat([0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], [40] + 11 * [1])
    rng = np.random.default_rng(0)
    made = study(rng.normal(size=(len(y), 2)), y, has_levels=True)
    labels = made.target.labels
    for fold in made.folds(0):
        assert fold.tested[labels.rare].any()
        assert fold.tested[labels.majority].any()


@pytest.fixture
def quick(monkeypatch):
    """Fewer rounds, lams and folds: enough for these data."""
    monkeypatch.setattr(learning, "_N_ROUNDS", 3)
    monkeypatch.setattr(learning, "_FULL_RATE_ROUNDS", 1)
    monkeypatch.setattr(learning, "_LAMS", np.array([2.0**-2, 2.0**-6]))
    monkeypatch.setattr(learning, "_FOLD_SETS", (1001,))


@pytest.mark.thorough
def test_scales_find_the_features_that_order_the_levels(quick):
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], [480, 70, 50])
    X = rng.normal(size=(600, 8))
    # The higher the level, the nearer to the middle of two features: the means say nothing.
    X[:, :2] *= np.array([1.0, 0.3, 0.05])[y][:, None]
    order = rng.permutation(600)
    X, y = X[order], y[order]
    plain = OrdinalRankRC(lam=0.05, random_state=0).fit(X[::2], y[::2])
    model = OrdinalRankRC(lam=0.05, feature_scaling="learned", random_state=0).fit(X[::2], y[::2])
    assert set(np.flatnonzero(model.feature_scales_)) <= {0, 1}
    found, before = (
        mauc_by_pairs(y[1::2], one.score_samples(X[1::2]), np.ones(300)) for one in (model, plain)
    )
    assert found > before
    assert plain.feature_scales_ is None


def test_two_levels_learn_what_two_classes_learn(quick):
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 5)), np.arange(200) < 30
    X[:30, 0] += 2.0
    settings = KernelSettings("gaussian", "mean", "rare", "1GiB", 1, 0)
    levels = OrderedLevels(read_levels(y.astype(int)), np.ones((2, 2)))
    classes = TwoClasses(read_labels(y, None, True, 200))
    one, other = (
        learning.learn_feature_scales(settings, as_source(X), target, 3.0, 0.5, False).scales
        for target in (levels, classes)
    )
    np.testing.assert_allclose(one, other, rtol=1e-6)


def test_two_levels_have_the_landmarks_of_two_classes():
    X, y = levels_table(6, 200)
    y = (y > 1).astype(int)
    ordinal = OrdinalRankRC(penalty="l1", lam=0.02, tol=1e-9).fit(X, y)
    classes = RankRC(penalty="l1", lam=0.02, tol=1e-9).fit(X, y)
    np.testing.assert_allclose(ordinal.score_samples(X), classes.score_samples(X), atol=1e-6)
    assert ordinal.n_landmarks_ == classes.n_landmarks_
