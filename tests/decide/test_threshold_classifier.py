"""DecisionClassifier: any estimator, its held-out scores, its threshold and its labels."""

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import ShuffleSplit, cross_val_predict, cross_val_score
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from faults import refused
from rareclass.decide import DecisionClassifier, ReviewBand, ThresholdRule
from rareclass.decide.decision_classifier import _REFITTED
from rareclass.errors import ErrorKind, InputError
from rareclass.findings import FindingKind, finding_of
from rareclass.folds import RareGroupKFold, RareStratifiedKFold, RareTimeSplit
from rareclass.metrics.held_out_cuts import GROUPED

N = 600
RANDOM = np.random.default_rng(0)
Y = (np.arange(N) % 10 == 0).astype(int)
X = RANDOM.normal(size=(N, 3)) + 2.5 * Y[:, None]
DAY = np.datetime64("2026-01-01") + np.arange(N) // 20
RULE = ThresholdRule.min_recall(0.8)
LOGISTIC = LogisticRegression()


def held_out_by(splitter, by=None, estimator=LOGISTIC):
    scores = np.full(N, np.nan)
    for train, test in splitter.split(X, Y, by):
        scores[test] = clone(estimator).fit(X[train], Y[train]).decision_function(X[test])
    return scores


def test_the_threshold_is_that_of_cross_fitted_scores():
    model = DecisionClassifier(LOGISTIC, RULE).fit(X, Y)
    held_out = cross_val_predict(
        LOGISTIC, X, Y, cv=RareStratifiedKFold(5), method="decision_function"
    )
    np.testing.assert_allclose(model.held_out_scores_, held_out)
    assert model.decision_ == RULE.choose(Y, held_out).approximately(_REFITTED)
    assert not model.decision_.guaranteed
    assert "at confidence about 0.9" in model.decision_.says()
    assert model.threshold_ == model.decision_.threshold
    whole = LogisticRegression().fit(X, Y)
    np.testing.assert_allclose(model.score_samples(X), whole.decision_function(X))
    np.testing.assert_array_equal(
        model.predict(X) == 1, whole.decision_function(X) > model.threshold_
    )
    np.testing.assert_array_equal(model.decide(X) == "alert", model.predict(X) == 1)
    np.testing.assert_allclose(model.predict_proba(X), whole.predict_proba(X))
    assert model.score(X, Y) > 0.9
    assert cross_val_score(model, X, Y, cv=2, scoring="recall").min() > 0.6


@pytest.mark.sampled(1)
@pytest.mark.parametrize("response", ["auto", "decision_function"])
@pytest.mark.parametrize("wrap", [lambda each: each, lambda each: make_pipeline(each)])
def test_outlier_detectors_are_turned(response, wrap):
    far = 3.0 * X
    forest = wrap(IsolationForest(n_estimators=20, random_state=0))
    model = DecisionClassifier(forest, RULE, response=response).fit(far, np.where(Y, "a", "b"))
    assert model.score(far, np.where(Y, "a", "b")) > 0.9


def test_scores_that_are_no_number_are_named():
    class Holes(LogisticRegression):
        def decision_function(self, X):
            return np.where(np.arange(len(X)) == 3, np.nan, super().decision_function(X))

    with refused(ErrorKind.NOT_FINITE, row=3, says="decision_function of Holes"):
        DecisionClassifier(Holes(), RULE).fit(X, Y)


def test_folds_by_group_and_by_time():
    group = np.arange(N) // 7
    model = DecisionClassifier(LOGISTIC, RULE, cv=4).fit(X, Y, groups=group)
    np.testing.assert_allclose(model.held_out_scores_, held_out_by(RareGroupKFold(4), group))
    model = DecisionClassifier(LOGISTIC, RULE, cv=4).fit(X, Y, time=DAY)
    np.testing.assert_allclose(model.held_out_scores_, held_out_by(RareTimeSplit(4), DAY))
    assert np.isnan(model.held_out_scores_).any()
    given = DecisionClassifier(LOGISTIC, RULE, cv=RareTimeSplit(4)).fit(X, Y, time=DAY)
    np.testing.assert_array_equal(given.held_out_scores_, model.held_out_scores_)


def test_alerts_a_day_hold_whole_days_out():
    hour = DAY.astype("M8[h]") + np.arange(N) % 20
    rule = ThresholdRule.max_alerts(3)
    model = DecisionClassifier(LOGISTIC, rule, cv=3).fit(X, Y, time=hour)
    tested = ~np.isnan(model.held_out_scores_)
    assert all(len(np.unique(tested[day == DAY])) == 1 for day in np.unique(DAY))
    chosen = rule.choose(Y[tested], model.held_out_scores_[tested], time=hour[tested])
    assert model.decision_.threshold == chosen.threshold


def test_a_fitted_estimator_and_rows_that_it_did_not_see():
    fitted = LogisticRegression().fit(X[::2], Y[::2])
    model = DecisionClassifier(fitted, RULE, cv="prefit").fit(X[1::2], np.roll(Y, 1)[1::2])
    assert model.estimator_ is fitted
    assert model.decision_.guaranteed
    grouped = DecisionClassifier(fitted, RULE, cv="prefit").fit(X, Y, groups=np.arange(N) // 7)
    assert grouped.decision_.findings[0].values["reason"] == GROUPED
    with refused(ErrorKind.LABELS, says="learned the labels [0, 1]"):
        DecisionClassifier(fitted, RULE, cv="prefit").fit(X, np.where(Y, "a", "b"))


def test_a_single_split_keeps_its_model():
    split = ShuffleSplit(1, test_size=0.5, random_state=0)
    model = DecisionClassifier(LOGISTIC, RULE, cv=split, refit=False).fit(X, Y)
    train, test = next(split.split(X))
    expected = LogisticRegression().fit(X[train], Y[train])
    np.testing.assert_allclose(model.score_samples(X), expected.decision_function(X))
    assert model.decision_ == RULE.choose(Y[test], expected.decision_function(X[test]))


@pytest.mark.parametrize("response", ["decision_function", "predict_proba"])
@pytest.mark.parametrize("names", [("a", "b"), ("b", "a")])
def test_whichever_label_is_rare(response, names):
    y = np.where(Y == 1, names[0], names[1])
    model = DecisionClassifier(LOGISTIC, RULE, response=response).fit(X, y)
    assert model.pos_label_ == names[0]
    recall = (model.predict(X) == names[0])[Y == 1].mean()
    assert recall > 0.75
    assert (model.predict(X) == names[0]).mean() < 0.3
    first = model.decision_function(X) > 0
    np.testing.assert_array_equal(model.classes_[first.astype(int)], model.predict(X))


@pytest.mark.parametrize(
    "estimator",
    [
        KNeighborsClassifier(15),
        RandomForestClassifier(5, random_state=0),
        make_pipeline(StandardScaler(), LogisticRegression()),
    ],
)
def test_any_estimator_and_table(estimator):
    table = pd.DataFrame(X, columns=list("abc"))
    model = DecisionClassifier(estimator, ThresholdRule.max_fpr(0.05)).fit(table, pd.Series(Y))
    assert model.decision_.met
    assert model.feature_names_in_.tolist() == ["a", "b", "c"]
    assert (model.predict(table) == 1)[Y == 0].mean() < 0.1


def test_weights_reach_the_last_step_and_the_rule():
    weight = np.where(np.arange(N) < 300, 1, 2)
    piped = make_pipeline(StandardScaler(), LogisticRegression())
    model = DecisionClassifier(piped, RULE).fit(X, Y, sample_weight=weight)
    assert model.decision_.rows == weight.sum()
    expected = clone(piped).fit(X, Y, logisticregression__sample_weight=weight)
    np.testing.assert_allclose(model.score_samples(X), expected.decision_function(X))
    with pytest.warns(UserWarning, match="takes no sample_weight"):
        DecisionClassifier(KNeighborsClassifier(), RULE).fit(X, Y, sample_weight=weight)


def test_costs_of_rows_and_a_band():
    costs = {"amount": RANDOM.uniform(1, 100, N)}
    rule = ThresholdRule.least_cost(fn="amount", review=5)
    model = DecisionClassifier(LOGISTIC, rule).fit(X, Y, costs=costs)
    assert model.decision_ == rule.choose(Y, model.held_out_scores_, costs=costs)
    band = ReviewBand(ThresholdRule.min_precision(0.8), ThresholdRule.max_alerts(150, rows=600))
    model = DecisionClassifier(LOGISTIC, band).fit(X, Y)
    assert set(model.decide(X)) == {"block", "review", "pass"}
    np.testing.assert_array_equal(model.predict(X) == 1, model.decide(X) == "block")


def test_a_constraint_that_is_not_met_is_told():
    rule = ThresholdRule.min_recall(0.999)
    with pytest.warns(UserWarning, match=r"recall >= 0.999: .* is not met: 60 rare") as told:
        DecisionClassifier(LOGISTIC, rule).fit(X, Y)
    assert finding_of(told[0].message).kind == FindingKind.CONSTRAINT_NOT_MET
    with pytest.raises(InputError, match="is not met"):
        DecisionClassifier(LOGISTIC, rule, unmet="raise").fit(X, Y)


@pytest.mark.parametrize("threshold", [-np.inf, np.inf])
@pytest.mark.parametrize("rare", [0, 1])
def test_an_infinite_threshold_leaves_the_ranking(rare, threshold):
    model = DecisionClassifier(LOGISTIC, RULE, cv=2).fit(X, np.where(Y == 1, rare, 1 - rare))
    model.threshold_ = threshold
    decision = model.decision_function(X)
    assert np.isfinite(decision).all()
    order = np.argsort(decision if rare else -decision)
    np.testing.assert_array_equal(order, np.argsort(model.score_samples(X)))
    assert set(model.predict(X)) == {rare if threshold < 0 else 1 - rare}


def test_few_rare_rows():
    y = np.arange(N) < 3
    with pytest.warns(UserWarning, match="only 3 rows of the smaller class: 3 folds"):
        DecisionClassifier(LOGISTIC, ThresholdRule.f_beta()).fit(X, y)
    with pytest.raises(InputError, match="cv=5 and 1 rows of the smaller class"):
        DecisionClassifier(LOGISTIC, RULE).fit(X, np.arange(N) < 1)
    with pytest.raises(InputError, match="holds all 60 rare rows"):
        DecisionClassifier(LOGISTIC, RULE).fit(X, Y, groups=Y)
    for column in ("groups", "time"):
        with refused(ErrorKind.SHAPE, column=column):
            DecisionClassifier(LOGISTIC, RULE).fit(X, Y, **{column: Y[:-1]})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rule": 0.5}, "rule=0.5 is no ThresholdRule or ReviewBand"),
        ({"response": "predict"}, "response='predict' is not one of"),
        ({"response": "score_samples"}, "LogisticRegression has no score_samples"),
        ({"unmet": "ignore"}, "unmet='ignore' is not one of"),
        ({"cv": "five"}, "cv='five' is no"),
        ({"cv": True}, "cv=True is not"),
        ({"cv": 1}, "cv=1 and 60 rows"),
        ({"cv": RareStratifiedKFold(2, repeats=2)}, "cv tests row 0 more than once"),
        ({"refit": False}, "refit=False keeps the model of a single split, and cv makes 5"),
    ],
)
def test_parameters_outside_their_range(given, said):
    with pytest.raises(ValueError, match=said):
        DecisionClassifier(**{"estimator": LOGISTIC, "rule": RULE} | given).fit(X, Y)
