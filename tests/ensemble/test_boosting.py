"""Histogram boosting by LightGBM and by scikit-learn: the same settings, and as good a ranking."""

import builtins
import warnings

import numpy as np
import pytest
from sklearn.metrics import average_precision_score

from rareclass import RareClassifier
from rareclass.ensemble.members.trees import (
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

    X = np.random.default_rng(0).normal(size=(120, 2))
    has_lightgbm.cache_clear()
    monkeypatch.setattr(builtins, "__import__", refusing)
    model = RareClassifier(members=[HistogramBoosting(rounds=2)], cv=2)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model.fit(X, X[:, 0] > 1.0)
        assert not has_lightgbm()
    finally:
        has_lightgbm.cache_clear()
    said = [str(warning.message) for warning in caught if "LightGBM" in str(warning.message)]
    assert len(said) == isinstance(error, OSError)
    assert all("libgomp.so.1" in words for words in said)
