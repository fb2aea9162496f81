"""skops loads every estimator with the types of `SKOPS_TRUSTED`, and these execute nothing."""

import inspect
import warnings
from functools import cache
from importlib import import_module

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.ensemble import HistGradientBoostingClassifier

from rareclass import SKOPS_TRUSTED, OrdinalRankRC, RankRC, RareClassifier
from rareclass.decide import CalibratedRanker, DecisionClassifier, ThresholdRule
from rareclass.ensemble.plan import MEMBERS
from rareclass.folds import RareGroupKFold, RareStratifiedKFold, RareTimeSplit
from rareclass.kernels.kernels import KERNELS, make_kernel
from rareclass.ranking.losses import PNormPush
from registered import ESTIMATORS, MORE_ESTIMATORS
from to_onnx.test_tables import made

RULES = [
    ThresholdRule.min_precision(0.5),
    ThresholdRule.min_recall(0.5),
    ThresholdRule.max_fpr(0.1),
    ThresholdRule.max_alerts(10, rows=1000),
    ThresholdRule.max_alerts(10),
    ThresholdRule.least_cost(1.0, 10.0),
    ThresholdRule.f_beta(),
]
OF_LEVELS = OrdinalRankRC(levels=[0, 1], pair_cost=np.ones((2, 2)))
# What may be given to an estimator: as parameters, they are in its file.
GIVEN = [
    *(kind() for kind in MEMBERS.values()),
    *(make_kernel(name, 2.0) for name in KERNELS),
    *RULES,
    PNormPush(),
    RareStratifiedKFold(2),
    RareGroupKFold(2),
    RareTimeSplit(2),
]


@cache
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 3))
    return X, (X[:, 0] + random.normal(size=80) > 1.3).astype(int)


def skops():
    """Import what looks through all of scikit-learn for types that it trusts."""
    return import_module("skops.io")


def loaded(model, others=()):
    content = skops().dumps(model)
    assert set(skops().get_untrusted_types(data=content)) <= {*SKOPS_TRUSTED, *others}
    return skops().loads(content, trusted=[*SKOPS_TRUSTED, *others])


@pytest.mark.parametrize(
    "estimator",
    [
        *ESTIMATORS,
        OF_LEVELS,
        *(pytest.param(each, marks=pytest.mark.thorough) for each in MORE_ESTIMATORS),
    ],
    ids=lambda each: repr(each)[:60],
)
@pytest.mark.sampled(8)
def test_every_estimator_loads_and_scores_the_same(estimator):
    X, y = rows()
    with warnings.catch_warnings(action="ignore"):
        model = clone(estimator).fit(X, y)
    again = loaded(model)
    for name in ("score_samples", "predict", "predict_proba", "transform"):
        if hasattr(model, name):
            np.testing.assert_array_equal(getattr(again, name)(X), getattr(model, name)(X), name)


@pytest.mark.sampled(0)
def test_a_classifier_of_words_dates_and_texts_loads():
    table, rare = made(120)
    random = np.random.default_rng(0)
    hours = random.integers(0, 9999, 120)
    table["when"] = np.datetime64("2024-01-01T00") + hours.astype("timedelta64[h]")
    words = random.choice(["a", "quick", "brown", "fox", "jumps", "over", "dogs"], (120, 5))
    table["text"] = [" ".join(each) for each in words]
    members = ["logistic regression", "logistic regression on indicators", "extra trees"]
    model = RareClassifier(members=members, cv=2, n_jobs=1).fit(table, rare)
    np.testing.assert_array_equal(loaded(model).score_samples(table), model.score_samples(table))


def test_what_is_given_as_a_parameter_loads():
    for each in GIVEN:
        assert type(loaded(each)) is type(each)


def test_models_of_others_inside_ours_load():
    X, y = rows()
    trees = HistGradientBoostingClassifier(max_iter=2)
    others = skops().get_untrusted_types(data=skops().dumps(clone(trees).fit(X, y)))
    inner = CalibratedRanker(trees, cv=2).fit(X, y)
    np.testing.assert_array_equal(loaded(inner, others).predict_proba(X), inner.predict_proba(X))
    model = DecisionClassifier(trees, RULES[-1], cv=2).fit(X, y)
    np.testing.assert_array_equal(loaded(model, others).predict(X), model.predict(X))


def test_a_function_of_ones_own_is_not_trusted():
    X, y = rows()
    model = RankRC(kernel=own_kernel).fit(X, y)
    content = skops().dumps(model)
    with pytest.raises(skops().exceptions.UntrustedTypesFoundException, match="own_kernel"):
        skops().loads(content, trusted=SKOPS_TRUSTED)


def own_kernel(X, Z):
    return X @ Z.T


def test_types_on_the_list_are_there_and_execute_nothing():
    for name in SKOPS_TRUSTED:
        module, _, kind = name.rpartition(".")
        found = getattr(import_module(module), kind)
        assert inspect.isclass(found), name
        assert (root := name.split(".")[0]) in {"numpy", "polars", "rareclass", "scipy", "sklearn"}
        # A class that is only imported there would be found, and no model that holds one saved.
        assert root != "rareclass" or found.__module__ == module, name
        own = {"__reduce__", "__reduce_ex__", "__setstate__", "__del__"} & {*vars(found)}
        assert not own or root != "rareclass" or kind == "LearnedMember", (name, own)
