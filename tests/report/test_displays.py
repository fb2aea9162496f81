"""Displays in scikit-learn's convention: what is drawn is what scikit-learn's curves have."""

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from rareclass.report import (
    AlertsDisplay,
    CostDisplay,
    GainsDisplay,
    PrecisionRecallDisplay,
    RankingDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdTable,
)

OF_SCORES = [
    AlertsDisplay, GainsDisplay, PrecisionRecallDisplay, RocDisplay, ScoreDistributionDisplay,
]  # fmt: skip


@pytest.fixture(autouse=True)
def closed():
    yield
    pyplot.close("all")


@pytest.fixture(scope="module")
def rows():
    X, y = make_classification(
        600, n_features=4, n_informative=3, n_redundant=0, weights=[0.9], random_state=0
    )
    return X, np.where(y == 1, "fraud", "ok")


@pytest.fixture(scope="module")
def model(rows):
    return LogisticRegression().fit(*rows)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("display", [*OF_SCORES, ReliabilityDisplay])
def test_from_an_estimator_and_from_predictions(display, rows, model):
    X, y = rows
    made = display.from_estimator(model, X, y)
    assert isinstance(made, RankingDisplay)
    assert made.figure_ is made.ax_.get_figure()
    _, ax = pyplot.subplots()
    again = made.plot(ax=ax)
    assert again is made
    assert made.ax_ is ax
    assert made.name == "LogisticRegression"
    place = list(model.classes_).index("fraud")
    scores = model.predict_proba(X)[:, place]
    given = scores if display is ReliabilityDisplay else model.decision_function(X)
    if display is not ReliabilityDisplay and place == 0:
        given = -given
    other = display.from_predictions(y, given, ax=ax, name="mine")
    assert other.name == "mine"
    for one, two in zip(vars(made).values(), vars(other).values(), strict=True):
        if isinstance(one, ThresholdTable):
            np.testing.assert_allclose(one.hits, two.hits)
    assert ax.get_legend() is not None


def test_curves_are_those_of_scikit_learn(rows, model):
    X, y = rows
    scores = -model.decision_function(X)  # "fraud" is the first class
    display = PrecisionRecallDisplay.from_estimator(model, X, y)
    rare = y == "fraud"
    precision, recall, thresholds = precision_recall_curve(rare, scores)
    table = display.table
    for k in range(1, len(table.thresholds), 13):
        at = np.searchsorted(thresholds, table.thresholds[k], side="right")
        assert table.precision.value[k] == pytest.approx(precision[at])
        assert table.recall.value[k] == pytest.approx(recall[at])
    assert display.value.value == pytest.approx(average_precision_score(rare, scores))
    roc = RocDisplay.from_estimator(model, X, y)
    assert roc.value.value == pytest.approx(roc_auc_score(rare, scores))
    drawn = roc.ax_.get_lines()[0]
    assert drawn.get_ydata()[-1] == 1.0
    assert roc.ax_.get_xscale() == "log"
    roc.plot(log=False)
    assert roc.ax_.get_xscale() == "linear"


def test_options_reach_the_table_and_its_own_threshold_is_marked(rows, model):
    X, y = rows
    scores = -model.decision_function(X)
    day = np.arange(len(y)) % 7
    display = AlertsDisplay.from_predictions(y, scores, own=0.0, time=day)
    assert display.table.alert_unit == "alerts a day"
    assert "the model's threshold" in [t.get_text() for t in display.ax_.get_legend().get_texts()]
    cost = CostDisplay.from_predictions(y, scores, costs={"fp": 1.0, "fn": 9.0})
    assert "fp 1, fn 9" in cost.ax_.get_ylabel()
    with pytest.raises(ValueError, match="no costs"):
        CostDisplay.from_predictions(y, scores)


def test_what_has_no_scores_is_refused(rows):
    X, y = rows
    with pytest.raises(ValueError, match="there is nothing"):
        RocDisplay.from_estimator(KMeans(), X, y)
    with pytest.raises(ValueError, match="not two classes with 'fraud'"):
        RocDisplay.from_estimator(LogisticRegression().fit(X, np.arange(len(X)) % 3), X, y)
    with pytest.raises(ValueError, match="has no probabilities"):
        ReliabilityDisplay.from_estimator(KMeans(), X, y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        RocDisplay.from_predictions(y, np.zeros(3))


def test_scores_of_an_outlier_detector_are_turned(rows):
    X, y = rows
    forest = IsolationForest(n_estimators=10, random_state=0).fit(X)
    shown = RocDisplay.from_estimator(forest, X, y)
    auc = roc_auc_score(y == "fraud", -forest.score_samples(X))
    assert shown.value.value == pytest.approx(auc)
