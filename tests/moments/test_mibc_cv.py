"""MIBCCV against its folds fitted one by one."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import StratifiedKFold

from moments.mibc_cases import EXACT, each_covariance, moments_of_array, rare_rows
from oracles.moments import assert_same_moments
from rareclass.moments import MIBC, MIBCCV, mibc_cv
from rareclass.moments.moments import MomentSettings

X, Y = rare_rows(300, 30, shift=0.7)
CS = [0.003, 0.1, 3.0]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


def watched(monkeypatch):
    """The hyperplanes of each fold, and the moments that they come from."""
    seen = []
    original = mibc_cv._TrainingTable.solve

    def solve(self, moments, *rest):
        found = original(self, moments, *rest)
        seen.append((moments, found))
        return found

    monkeypatch.setattr(mibc_cv._TrainingTable, "solve", solve)
    return seen


@pytest.mark.sampled(3)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_moments_by_removal_are_fresh_ones(given, container, monkeypatch):
    seen, splits = watched(monkeypatch), list(FOLDS.split(X, Y))
    weight = np.random.default_rng(0).random(300) + 0.5
    far = X + np.array([1e4, 0.0, -1e4, 0.0, 0.0])
    MIBCCV(CS, cv=splits, **given, **EXACT).fit(container(far), Y, weight)
    for (train, _), (moments, hyperplanes) in zip(splits, seen, strict=True):
        row = [
            MIBC(C, **given, **EXACT).fit(container(far)[train], Y[train], weight[train])
            for C in CS
        ]
        assert_same_moments(moments, row[0].moments_, rtol=1e-8)
        common = train[Y[train] == 0]
        plain = moments_of_array(far[common], MomentSettings(), weight[common])
        np.testing.assert_allclose(moments.variance, plain.variance, rtol=1e-9)
        for hyperplane, model in zip(hyperplanes, row, strict=True):
            scale = np.abs(model.coef_).max()
            np.testing.assert_allclose(hyperplane.coef, model.coef_, atol=1e-7 * scale)


def test_among_equals_the_simplest_is_best():
    easy = np.r_[np.random.default_rng(0).normal(size=(80, 2)), 9 + np.zeros((8, 2))]
    y = np.r_[np.zeros(80), np.ones(8)]
    model = MIBCCV([10.0, 1.0, 100.0], ridges=[0.1, "auto", 1.0, 0.5], cv=4).fit(easy, y)
    assert (model.cv_results_["mean_test_score"] == 1.0).all()
    assert (model.best_C_, model.best_ridge_) == (1.0, 1.0)
    assert (model.cv_results_["rank_test_score"] == 1).all()


def test_what_cannot_be_tried_is_refused():
    for parameters, text in (
        ({"Cs": None}, "Cs=None must be a list of numbers above 0"),
        ({"ridges": []}, "ridges is empty"),
        ({"ridges": [0.1, -2]}, "ridge=-2 is not 'auto'"),
        ({"ridges": "each"}, "ridge='each' is not 'auto'"),
        ({"covariance": mibc_cv.MIBC, "ridges": [0.1]}, "covariance=<class"),
        ({"cv": None}, "cv=None"),
        ({"cv": 1}, "cv=1 .* needs at least 2 folds"),
    ):
        with pytest.raises(ValueError, match=text):
            MIBCCV(**{"cv": 3, **parameters}).fit(X, Y)


@pytest.mark.parametrize("ridges", [0.1, "auto", [0.5, 2.0]])
def test_every_ridge_is_tried_with_every_price_and_one_need_not_be_in_a_list(ridges):
    results = MIBCCV(CS, ridges=ridges, cv=3).fit(X, Y).cv_results_
    tried = ridges if isinstance(ridges, list) else [ridges]
    assert results["ridge"].tolist() == [ridge for ridge in tried for _ in CS]
    assert results["C"].tolist() == CS * len(tried)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_threshold_is_the_best_on_held_out_scores(weighted):
    weight = np.random.default_rng(2).choice([0.5, 1.0, 4.0], 300) if weighted else np.ones(300)
    splits = list(FOLDS.split(X, Y))
    model = MIBCCV([0.1], cv=splits, **EXACT).fit(X, Y, weight)
    scores = np.empty(len(X))
    for train, test in splits:
        alone = MIBC(0.1, **EXACT).fit(X[train], Y[train], weight[train])
        scores[test] = alone.score_samples(X[test]) - alone.coef_ @ alone.moments_.mean
    threshold = model.offset_ - model.coef_ @ model.best_estimator_.moments_.mean

    def balanced(t):
        return balanced_accuracy_score(Y, scores > t, sample_weight=weight)

    assert balanced(threshold) == pytest.approx(max(balanced(t) for t in scores), abs=1e-6)
    kappa = threshold / np.sqrt(np.cov(X[Y == 0] @ model.coef_, aweights=weight[Y == 0], ddof=0))
    assert model.specificity_bound_ == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-6)
    assert model.intercept_ == -model.offset_ == model.best_estimator_.intercept_
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))


def test_the_hard_margin_among_the_prices():
    data, y = rare_rows(200, 10, 3, seed=1, shift=9.0)
    model = MIBCCV([np.inf, 0.01], cv=3).fit(data, y)
    assert model.cv_results_["C"].tolist() == [0.01, np.inf]
    alone = MIBCCV([np.inf], cv=3).fit(data, y)
    np.testing.assert_allclose(model.coef_ if model.best_C_ == np.inf else alone.coef_, alone.coef_)
    with pytest.raises(ValueError, match="convex hull"):
        MIBCCV([np.inf], cv=3).fit(*rare_rows(200, 60, 2, shift=0.0))


def test_folds_that_stop_short_and_singular_ones_are_told_once():
    with pytest.warns(ConvergenceWarning) as told:
        MIBCCV([1e-4, 1e5], cv=3, max_iter=1, tol=1e-14, refit=False).fit(X, Y)
    assert len(told) == 1
    assert "of 6 solutions stopped at max_iter=1" in str(told[0].message)
    assert told[0].filename == __file__
    with warnings.catch_warnings(record=True) as all_told:
        warnings.simplefilter("always")
        model = MIBCCV(CS, cv=3).fit(np.c_[X, np.ones(300)], Y)
    assert len(all_told) == 1
    assert "column 5 constant" in str(all_told[0].message)
    assert all_told[0].filename == __file__
    assert np.isfinite(model.coef_).all()
