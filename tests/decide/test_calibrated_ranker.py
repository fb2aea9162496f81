"""CalibratedRanker: cross-fitted scores, one map, the base rate that is true."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression, Perceptron
from sklearn.model_selection import StratifiedKFold, cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import get_tags

from rareclass import MIBC, RankRC
from rareclass.decide import CalibratedRanker, Calibration
from rareclass.findings import FindingKind, finding_of
from rareclass.folds import RareStratifiedKFold

X, Y = make_classification(900, n_features=6, weights=[0.93], flip_y=0.05, random_state=0)
BALANCED = LogisticRegression(class_weight="balanced")
FOLDS = StratifiedKFold(4, shuffle=True, random_state=3)


def rare(model, rows=X):
    return model.predict_proba(rows)[:, 1]


class Scored(ClassifierMixin, BaseEstimator):
    def __init__(self, score=0.0):
        self.score_ = score
        self.score = score

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    def decision_function(self, X):
        return np.full(len(X), self.score)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("method", ["auto", "logistic"])
def test_the_map_is_that_of_scores_of_models_that_have_not_seen_the_row(method):
    held_out = cross_val_predict(BALANCED, X, Y, cv=FOLDS, method="decision_function")
    expected = Calibration.fit(Y, held_out, method=method)
    model = CalibratedRanker(BALANCED, method, FOLDS, ensemble=False).fit(X, Y)
    np.testing.assert_allclose(model.held_out_scores_, held_out)
    whole = BALANCED.fit(X, Y).decision_function(X)
    np.testing.assert_allclose(rare(model), expected(whole))
    of_several = Calibration.fit(Y, held_out, method=method, several_models=True)
    of_folds = [
        of_several(BALANCED.fit(X[train], Y[train]).decision_function(X))
        for train, _ in FOLDS.split(X, Y)
    ]
    model = CalibratedRanker(BALANCED, method, FOLDS).fit(X, Y)
    np.testing.assert_allclose(rare(model), np.mean(of_folds, axis=0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "estimator",
    [
        BALANCED,
        GaussianNB(),
        Perceptron(class_weight="balanced"),
        make_pipeline(StandardScaler(), RankRC(lam=0.1)),
        RankRC(lam=0.1),
        MIBC(ridge=0.1),
    ],
    ids=lambda one: type(one).__name__,
)
def test_probabilities_of_any_classifier_have_the_true_base_rate(estimator):
    train, test = slice(0, 600), slice(600, 900)
    model = CalibratedRanker(estimator, cv=3).fit(X[train], Y[train])
    assert rare(model, X[test]).mean() == pytest.approx(Y[test].mean(), rel=0.25)
    assert model.score(X[test], Y[test]) > 0.7


def test_a_prevalence_or_a_sampling_rate_puts_back_what_was_left_out():
    majority = np.flatnonzero(Y == 0)
    kept = np.sort(np.concatenate([np.flatnonzero(Y == 1), majority[::4]]))
    rate = 0.25
    thinned = CalibratedRanker(BALANCED, majority_sampling_rate=rate).fit(X[kept], Y[kept])
    assert rare(thinned).mean() == pytest.approx(Y.mean(), rel=0.1)
    stated = CalibratedRanker(BALANCED, prevalence=float(Y.mean())).fit(X[kept], Y[kept])
    np.testing.assert_allclose(rare(stated), rare(thinned), rtol=0.02)
    plain = CalibratedRanker(BALANCED).fit(X[kept], Y[kept])
    assert rare(plain).mean() > 2 * Y.mean()
    before = rare(plain)
    np.testing.assert_allclose(
        rare(plain.set_prevalence(majority_sampling_rate=rate)), rare(thinned)
    )
    np.testing.assert_allclose(rare(plain.set_prevalence()), before)
    weight = np.where(Y[kept] == 1, 1.0, 4.0)  # so do weights
    weighted = CalibratedRanker(BALANCED).fit(X[kept], Y[kept], sample_weight=weight)
    assert rare(weighted).mean() == pytest.approx(Y.mean(), rel=0.1)


def test_weights_reach_the_last_step_of_a_pipeline_or_count_in_the_map_alone():
    weight = np.random.default_rng(0).integers(0, 4, len(Y))
    piped = CalibratedRanker(make_pipeline(BALANCED), cv=FOLDS).fit(X, Y, weight)
    alone = CalibratedRanker(BALANCED, cv=FOLDS).fit(X, Y, weight)
    np.testing.assert_allclose(rare(piped), rare(alone))
    assert np.isnan(alone.held_out_scores_[weight == 0]).all()
    with pytest.warns(UserWarning, match="takes no sample_weight") as told:
        CalibratedRanker(KNeighborsClassifier()).fit(X, Y, np.ones(len(Y)))
    assert finding_of(told[0].message).kind == FindingKind.WEIGHTS_IN_MAP


@pytest.mark.sampled(1)
@pytest.mark.parametrize("make", [pl.DataFrame, pd.DataFrame, sparse.csr_array])
def test_any_rows_that_scikit_learn_takes_give_the_same(make):
    rows = make(X)
    model = CalibratedRanker(BALANCED, cv=FOLDS).fit(rows, Y)
    expected = rare(CalibratedRanker(BALANCED, cv=FOLDS).fit(X, Y))
    np.testing.assert_allclose(rare(model, rows), expected, rtol=1e-5)
    assert model.n_features_in_ == X.shape[1]
    if make is pl.DataFrame:
        assert model.feature_names_in_.tolist() == rows.columns


def test_the_rare_class_may_come_first_or_be_named():
    labels = np.where(Y == 1, "fraud", "ok")
    one = CalibratedRanker(BALANCED, cv=FOLDS).fit(X, labels)
    assert one.pos_label_ == "fraud"
    other = CalibratedRanker(BALANCED, cv=FOLDS).fit(X, Y)
    with pytest.raises(ValueError, match="no label at all: row 1"):
        other.score(X[:3], [0, np.nan, 1])
    np.testing.assert_allclose(one.predict_proba(X)[:, 0], rare(other))
    np.testing.assert_allclose(one.decision_function(X), -other.decision_function(X))
    np.testing.assert_allclose(one.score_samples(X), other.score_samples(X))
    assert ((one.predict(X) == "fraud") == (other.predict(X) == 1)).all()
    turned = CalibratedRanker(BALANCED, "logistic", FOLDS, pos_label=0).fit(X, Y)
    logistic = CalibratedRanker(BALANCED, "logistic", FOLDS).fit(X, Y)
    np.testing.assert_allclose(rare(turned), rare(logistic), atol=1e-6)
    assert not get_tags(turned).classifier_tags.multi_class


def test_groups_are_held_out_together():
    group = np.arange(len(Y)) // 3
    model = CalibratedRanker(BALANCED, cv=3).fit(X, Y, groups=group)
    for one in np.unique(group)[:20]:
        rows = group == one
        each = np.array([m.decision_function(X[rows]) for m in model.estimators_])
        seen = np.isclose(each, model.held_out_scores_[rows])
        assert seen.all(axis=1).sum() == 1
    shuffled = CalibratedRanker(BALANCED, cv=3, random_state=1).fit(X, Y, groups=group)
    assert (shuffled.held_out_scores_ != model.held_out_scores_).any()


def test_a_row_that_several_folds_test_counts_once():
    twice = CalibratedRanker(BALANCED, cv=RareStratifiedKFold(3, repeats=2)).fit(X, Y)
    assert len(twice.estimators_) == 6
    # The rare rows of the first fold are tested once more, and still count once.
    pairs = list(FOLDS.split(X, Y))
    pairs.append((pairs[0][0], pairs[0][1][Y[pairs[0][1]] == 1]))
    again = CalibratedRanker(BALANCED, cv=pairs).fit(X, Y)
    assert again.calibration_.trained_prevalence == pytest.approx(Y.mean())


def test_outlier_detectors_are_turned():
    random = np.random.default_rng(0)
    y = np.arange(400) % 10 == 0
    X = random.normal(size=(400, 3)) * np.where(y, 4.0, 1.0)[:, None]
    model = CalibratedRanker(IsolationForest(n_estimators=20, random_state=0)).fit(X, y)
    assert model.score(X, y) > 0.8


class Adrift(LogisticRegression):
    """A ranker whose scores lie somewhere else, and spread otherwise, for any other rows."""

    def fit(self, X, y):
        super().fit(X, y)
        self.pos_label_ = 1
        rng = np.random.default_rng(int(1e6 * abs(X[0, 0])) + self.adrift * len(X))
        self.at_ = (9 * rng.normal(), 1 + rng.random()) if self.adrift else (0.0, 1.0)
        return self

    def __init__(self, adrift=False):
        super().__init__()
        self.adrift = adrift

    def score_samples(self, X):
        return self.at_[0] + self.at_[1] * self.decision_function(X)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("ensemble", [True, False])
def test_where_the_scores_of_a_ranker_lie_does_not_matter(ensemble):
    fixed = CalibratedRanker(Adrift(), cv=FOLDS, ensemble=ensemble).fit(X, Y)
    adrift = CalibratedRanker(make_pipeline(Adrift(True)), cv=FOLDS, ensemble=ensemble).fit(X, Y)
    np.testing.assert_allclose(rare(adrift), rare(fixed), rtol=1e-6)


class FirstColumn(Scored):
    def fit(self, X, y):
        self.pos_label_ = 1
        return super().fit(X, y)

    def score_samples(self, X):
        return X[:, 0]


def test_a_ranker_may_score_all_majority_rows_alike():
    y = (np.arange(90) % 6 == 0).astype(int)
    scores = np.where(np.arange(90) % 12 == 0, 1.0, 0.0)
    found = rare(CalibratedRanker(FirstColumn(), cv=3).fit(scores[:, None], y), scores[:, None])
    assert found[0] > 0.8 > 0.2 > found[1] > 0.0


def test_equal_scores_are_told_and_get_the_prevalence():
    with pytest.warns(UserWarning, match="all held-out scores of Scored are equal") as told:
        model = CalibratedRanker(Scored(0.7)).fit(X, Y)
    assert finding_of(told[0].message).kind == FindingKind.CONSTANT_SCORES
    assert rare(model) == pytest.approx([Y.mean()] * len(Y))


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"method": "platt"}, "method='platt' is not one of"),
        ({"prevalence": 0.1, "majority_sampling_rate": 0.1}, "the same thing twice"),
        ({"cv": 1}, "at least 2 folds"),
        ({"cv": "all"}, "cv='all' is not"),
        ({"cv": [(np.flatnonzero(Y == 0), np.arange(9))]}, "fold 1 learns from one class only"),
        ({"cv": [(np.arange(900), np.flatnonzero(Y == 0))]}, "test rows of one class only"),
        ({"pos_label": 7}, "pos_label=7"),
    ],
)
def test_parameters_out_of_range_are_named(given, told):
    with pytest.raises(ValueError, match=told):
        CalibratedRanker(BALANCED, **given).fit(X, Y)


class Wild(GaussianNB):
    def predict_proba(self, X):
        return 3.0 * super().predict_proba(X)


@pytest.mark.parametrize(
    ("estimator", "rows", "told"),
    [
        (BALANCED, (Y, np.zeros(len(Y))), "at least one non-zero"),
        (BALANCED, (np.zeros(len(Y)),), "one class only"),
        (BALANCED, (np.arange(len(Y)) == 5,), "1 rows of the smaller class"),
        (Scored(np.nan), (Y,), "of Scored gives row 0 the score nan"),
        (StandardScaler(), (Y,), "StandardScaler has no decision_function"),
        (Wild(), (Y,), r"Wild gives row .* which is not between 0 and 1"),
    ],
)
def test_rows_that_cannot_be_learned_from_are_named(estimator, rows, told):
    with pytest.raises(ValueError, match=told):
        CalibratedRanker(estimator).fit(X, *rows)
