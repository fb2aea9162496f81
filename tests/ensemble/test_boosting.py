"""Histogram boosting by LightGBM and by scikit-learn: the same settings, and as good a ranking."""

import builtins

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from rareclass.ensemble.members import boosting
from rareclass.ensemble.members.boosting import (
    DeepHistogramBoosting,
    HistogramBoosting,
    SlowHistogramBoosting,
    has_lightgbm,
)

KINDS = [HistogramBoosting, SlowHistogramBoosting, DeepHistogramBoosting]


def a_table(seed, n_rows=3000):
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 6))
    X[random.random(X.shape) < 0.1] = np.nan
    signal = np.nan_to_num(X[:, 0]) * np.nan_to_num(X[:, 1]) + np.nan_to_num(X[:, 2])
    return X, signal + 0.3 * random.normal(size=n_rows) > 2.2


@pytest.fixture
def no_lightgbm(monkeypatch):
    monkeypatch.setattr(boosting, "has_lightgbm", lambda: False)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("is_weighted", [False, True])
def test_both_learn_as_good_a_ranking(kind, is_weighted):
    pytest.importorskip("lightgbm")
    X, y = a_table(0)
    new, rare = a_table(1)
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

    has_lightgbm.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refusing)
    try:
        assert not has_lightgbm()
    finally:
        has_lightgbm.cache_clear()


def test_without_lightgbm_scikit_learn_grows_the_trees(no_lightgbm, monkeypatch):
    monkeypatch.setattr(HistogramBoosting, "by_lightgbm", None)
    X, y = a_table(0, 600)
    function = HistogramBoosting(rounds=5).grow(X, y, None, 0, 1)
    assert len(function.start) - 1 == 5


@pytest.mark.parametrize("n_threads", [1, 2])
def test_lightgbm_learns_the_same_by_any_number_of_threads(n_threads):
    pytest.importorskip("lightgbm")
    X, y = a_table(0, 800)
    one, other = (
        HistogramBoosting(rounds=20).by_lightgbm(X, y, None, 3, k) for k in (1, n_threads)
    )
    np.testing.assert_allclose(one.scores(X), other.scores(X), rtol=1e-9)
