"""Members of trees learn from little, rank what can be ranked, and stay within their range."""

import builtins
import warnings

import numpy as np
import pytest
from sklearn.metrics import average_precision_score, roc_auc_score

from ensemble.quick_members import named
from rareclass import RareClassifier
from rareclass.ensemble.members.member import EncodedFolds
from rareclass.ensemble.members.trees import (
    CatBoost,
    DeepHistogramBoosting,
    ExtraTrees,
    HistogramBoosting,
    SlowHistogramBoosting,
    has_lightgbm,
)
from rareclass.ensemble.tree_sum import TreeSum

MEMBERS = [
    HistogramBoosting(rounds=10),
    ExtraTrees(trees=8),
    CatBoost(rounds=20, learning_rate=0.2),
]
BY_NAME = pytest.mark.parametrize("member", named(MEMBERS))


def folds_of(X, is_rare, weight=None, n_folds=3, **more):
    fold = np.empty(len(X), int)
    for rows in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        fold[rows] = np.arange(len(rows)) % n_folds
    return EncodedFolds(X, is_rare, weight, fold, **({"seed": 0, "n_jobs": 1} | more))


def a_table(n_rows=600, seed=0):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 4))
    X[random.random(X.shape) < 0.05] = np.nan
    return X, np.nan_to_num(X[:, 0]) + np.nan_to_num(X[:, 1]) > 2


@pytest.mark.sampled(3)
@BY_NAME
def test_held_out_rows_are_ranked(member):
    X, is_rare = a_table()
    (learned,) = member.cross_fit(folds_of(X, is_rare))
    assert roc_auc_score(is_rare, learned.held_out) > 0.9
    assert len(learned.functions) == 3
    assert roc_auc_score(is_rare, TreeSum.mean_of(learned.functions).scores(X)) > 0.95


@BY_NAME
def test_a_training_part_of_one_class_has_no_opinion(member):
    X, _ = a_table(50)
    function = member.learn(X, np.zeros(50, bool), None, 0, 1)
    np.testing.assert_array_equal(function.scores(X), np.zeros(50))


@BY_NAME
def test_weights_put_a_thinned_majority_back(member):
    X, is_rare = a_table()
    light = member.learn(X, is_rare, None, 0, 1).scores(X).mean()
    heavy = member.learn(X, is_rare, np.where(is_rare, 50.0, 1.0), 0, 1).scores(X).mean()
    assert heavy > light


@BY_NAME
def test_a_number_far_outside_scores_like_the_end_of_the_range(member):
    X, is_rare = a_table()
    function = member.learn(X, is_rare, None, 0, 1)
    for far, end in ((1e30, np.nanmax(X, axis=0)), (-1e30, np.nanmin(X, axis=0))):
        for j in range(X.shape[1]):
            row, at_end = X[:20].copy(), X[:20].copy()
            row[:, j], at_end[:, j] = far, end[j]
            np.testing.assert_array_equal(function.scores(row), function.scores(at_end))


@pytest.mark.sampled(2)
@BY_NAME
def test_numbers_that_float32_does_not_hold(member):
    X, is_rare = a_table()
    X[:, 2:] = np.where(np.isnan(X[:, :2]), X[:, :2], np.sign(X[:, :2]) * 1e300)
    (learned,) = member.cross_fit(folds_of(X, is_rare))
    assert roc_auc_score(is_rare, learned.held_out) > 0.85


BOOSTINGS = [HistogramBoosting, SlowHistogramBoosting, DeepHistogramBoosting]


def boosting_table(seed, n_rows=3000):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 6))
    X[random.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    return X, signal + 0.3 * random.normal(size=n_rows) > 2.2


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", BOOSTINGS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_both_learn_as_good_a_ranking(kind, is_weighted):
    pytest.importorskip("lightgbm")
    X, y = boosting_table(0)
    new, rare = boosting_table(1)
    weight = np.random.default_rng(0).integers(1, 4, len(y)) * 1.0 if is_weighted else None
    found = [
        average_precision_score(rare, learn(X, y, weight, 0, 1).scores(new))
        for learn in (kind().by_lightgbm, kind().by_scikit_learn)
    ]
    assert min(found) > 0.6
    assert found[0] == pytest.approx(found[1], abs=0.06)


@pytest.mark.parametrize("error", [ImportError("no such module"), OSError("libgomp.so.1")])
def test_lightgbm_that_cannot_be_loaded_is_not_there(monkeypatch, error):
    imported = builtins.__import__

    def refusing(name, *args, **more):
        if name == "lightgbm":
            raise error
        return imported(name, *args, **more)

    X = np.random.default_rng(0).normal(size=(120, 2))
    has_lightgbm.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refusing)
    model = RareClassifier(members=[HistogramBoosting(rounds=2)], cv=2)
    try:
        with warnings.catch_warnings(record=True, action="always") as caught:
            model.fit(X, X[:, 0] > 1.0)
        assert not has_lightgbm()
    finally:
        has_lightgbm.cache_clear()
    said = [str(warning.message) for warning in caught if "LightGBM" in str(warning.message)]
    assert len(said) == isinstance(error, OSError)
    assert all("libgomp.so.1" in words for words in said)
