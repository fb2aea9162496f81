"""Meta-estimators, selections and displays of scikit-learn, with every estimator.

Each either gives what it gives of scikit-learn's own classifiers, or refuses as it does there.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import polars as pl
import pytest
import sklearn
from sklearn.base import clone, is_classifier
from sklearn.calibration import CalibratedClassifierCV, CalibrationDisplay
from sklearn.ensemble import BaggingClassifier, StackingClassifier, VotingClassifier
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.inspection import (
    DecisionBoundaryDisplay,
    PartialDependenceDisplay,
    partial_dependence,
    permutation_importance,
)
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import (
    ConfusionMatrixDisplay,
    DetCurveDisplay,
    PrecisionRecallDisplay,
    RocCurveDisplay,
)
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    LearningCurveDisplay,
    TunedThresholdClassifierCV,
    cross_val_predict,
    cross_validate,
    learning_curve,
)
from sklearn.multioutput import MultiOutputClassifier
from sklearn.svm import SVC

from rareclass import RankRCCV
from registered import ESTIMATORS, MORE_ESTIMATORS

plt.switch_backend("Agg")

N = 90
RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(N, 3))
Y = (X[:, 0] + 0.5 * RANDOM.normal(size=N) > 0.9).astype(int)
RESPONSES = ("predict_proba", "decision_function", "predict")
CLASSIFIERS = [each for each in ESTIMATORS if is_classifier(each)]
MORE_CLASSIFIERS = [each for each in MORE_ESTIMATORS if is_classifier(each)]
# What scikit-learn calls stands in base classes: one of each room is tried in every run.
OFTEN = ("MIBCCV", "OnlineLogistic", "CalibratedRanker", "RareClassifier", "StochasticRankRC")
TRIED_OFTEN = [each for each in CLASSIFIERS if type(each).__name__ in OFTEN]


def table(kind):
    columns = {f"x{j}": X[:, j] for j in range(X.shape[1])}
    return {"array": X, "pandas": pd.DataFrame(columns), "polars": pl.DataFrame(columns)}[kind]


def has(model, response):
    return hasattr(clone(model).fit(X, Y), response)


def calibration(model, rows):
    found = CalibratedClassifierCV(model, cv=2).fit(rows, Y).predict_proba(rows)
    assert found.shape == (N, 2)
    np.testing.assert_allclose(found.sum(axis=1), 1.0)


def stacking(model, rows):
    stack = StackingClassifier([("one", model)], LogisticRegression(), cv=2)
    assert stack.fit(rows, Y).predict(rows).shape == (N,)


def voting(model, rows):
    others = [("one", model), ("two", LogisticRegression())]
    assert VotingClassifier(others).fit(rows, Y).predict(rows).shape == (N,)
    if has(model, "predict_proba"):
        soft = VotingClassifier(others, voting="soft").fit(rows, Y)
        assert soft.predict_proba(rows).shape == (N, 2)


def bagging(model, rows):
    bag = BaggingClassifier(model, 2, random_state=0).fit(rows, Y)
    assert bag.predict(rows).shape == (N,)


def fixed_threshold(model, rows):
    for response in RESPONSES[:2]:
        if has(model, response):
            fixed = FixedThresholdClassifier(model, threshold=0.2, response_method=response)
            found = fixed.fit(rows, Y).predict(rows)
            scores = getattr(fixed.estimator_, response)(rows)
            scores = scores[:, 1] if response == "predict_proba" else scores
            np.testing.assert_array_equal(found, (scores >= 0.2).astype(int))


def tuned_threshold(model, rows):
    tuned = TunedThresholdClassifierCV(model, scoring="f1", cv=2).fit(rows, Y)
    assert tuned.predict(rows).shape == (N,)


def many_outputs(model, rows):
    found = MultiOutputClassifier(model).fit(rows, np.column_stack([Y, Y[::-1]])).predict(rows)
    assert found.shape == (N, 2)


def importances(model, rows):
    fitted = clone(model).fit(rows, Y)
    if isinstance(rows, pl.DataFrame):
        return  # permutation_importance itself takes no polars tables
    found = permutation_importance(fitted, rows, Y, n_repeats=2, random_state=0)
    assert found.importances_mean.shape == (3,)


def dependence(model, rows):
    if isinstance(rows, pl.DataFrame):
        return  # neither does partial_dependence
    fitted = clone(model).fit(rows, Y)
    found = partial_dependence(fitted, rows, [0], grid_resolution=5)
    assert found["average"].shape == (1, 5)
    PartialDependenceDisplay.from_estimator(fitted, rows, [0, 1], grid_resolution=4)


def curves_of_learning(model, rows):
    _, _, scores = learning_curve(model, rows, Y, cv=2, train_sizes=[0.5, 1.0], scoring="roc_auc")
    assert np.isfinite(scores).all()


def predicted_in_turn(model, rows):
    for response in RESPONSES:
        if has(model, response):
            found = cross_val_predict(model, rows, Y, cv=2, method=response)
            assert found.shape == ((N, 2) if response == "predict_proba" else (N,))


def displays(model, rows):
    fitted = clone(model).fit(rows, Y)
    for display in (RocCurveDisplay, PrecisionRecallDisplay, DetCurveDisplay):
        display.from_estimator(fitted, rows, Y)
    ConfusionMatrixDisplay.from_estimator(fitted, rows, Y)
    if hasattr(fitted, "predict_proba"):
        CalibrationDisplay.from_estimator(fitted, rows, Y)
    if isinstance(rows, np.ndarray):
        plane = clone(model).fit(rows[:, :2], Y)
        DecisionBoundaryDisplay.from_estimator(plane, rows[:, :2], grid_resolution=5)


def display_of_learning(model, rows):
    LearningCurveDisplay.from_estimator(model, rows, Y, cv=2, train_sizes=[0.5, 1.0])


def search(model, rows):
    found = GridSearchCV(model, {}, scoring="average_precision", cv=2).fit(rows, Y)
    assert found.predict(rows).shape == (N,)
    assert 0.0 < found.best_score_ <= 1.0


def weights_by_routing(model, rows):
    with sklearn.config_context(enable_metadata_routing=True):
        if not hasattr(model, "set_fit_request"):
            return
        asked = clone(model).set_fit_request(sample_weight=True)
        asked.set_score_request(sample_weight=True)
        weight = np.where(Y == 1, 2.0, 1.0)
        found = cross_validate(asked, rows, Y, cv=2, params={"sample_weight": weight})
        assert np.isfinite(found["test_score"]).all()


WAYS = [
    calibration, stacking, voting, bagging, fixed_threshold, tuned_threshold, many_outputs,
    importances, dependence, curves_of_learning, predicted_in_turn, displays, display_of_learning,
    search, weights_by_routing,
]  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings(action="ignore"):
        yield
    plt.close("all")


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("model", TRIED_OFTEN, ids=lambda each: repr(each)[:40])
@pytest.mark.sampled(6)
def test_a_way_of_scikit_learn_takes_the_estimator(way, model):
    way(model, table("array"))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_a_way_of_scikit_learn_takes_data_frames(way, kind):
    way(RankRCCV(lams=[0.1], cv=2), table(kind))


@pytest.mark.thorough
@pytest.mark.parametrize("kind", ["array", "pandas", "polars"])
@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@pytest.mark.parametrize("model", [*CLASSIFIERS, *MORE_CLASSIFIERS], ids=lambda e: repr(e)[:40])
def test_a_way_of_scikit_learn_takes_any_container(way, model, kind):
    way(model, table(kind))


@pytest.mark.sampled(4)
@pytest.mark.parametrize("model", CLASSIFIERS, ids=lambda each: repr(each)[:40])
def test_features_are_selected_by_weights_of_features_alone(model):
    """A kernel machine has none, and is refused as a kernel SVC is."""
    fitted = clone(model).fit(X, Y)
    weights = getattr(fitted, "coef_", getattr(fitted, "feature_importances_", None))
    for selection in (RFE(model, n_features_to_select=2), SelectFromModel(model)):
        if weights is not None:
            assert np.shape(weights)[-1] == X.shape[1]
            assert selection.fit(X, Y).transform(X).shape[0] == N
            continue
        with pytest.raises(ValueError, match="coef_") as of_svc:
            clone(selection).set_params(estimator=SVC()).fit(X, Y).transform(X)
        with pytest.raises(ValueError, match="coef_") as ours:
            selection.fit(X, Y).transform(X)
        assert str(ours.value)[:40] == str(of_svc.value)[:40]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_transformers_give_the_container_that_is_asked_for(kind):
    for model in CLASSIFIERS:
        if hasattr(model, "transform") or hasattr(clone(model).fit(X, Y), "transform"):
            found = clone(model).set_output(transform=kind).fit(X, Y).transform(X)
            assert type(found).__module__.startswith(kind), repr(model)
