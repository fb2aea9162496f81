"""Displays in scikit-learn's convention: what is drawn is what scikit-learn's curves have."""

from collections.abc import Iterator
from types import SimpleNamespace

import numpy as np
import pytest
from matplotlib import pyplot
from sklearn.cluster import KMeans
from sklearn.datasets import make_classification
from sklearn.ensemble import IsolationForest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import average_precision_score, precision_recall_curve, roc_auc_score

from rareclass import RankRC, RankRCCV
from rareclass.hyperball.description import BallPicture
from rareclass.report import (
    AlertsDisplay,
    BallDisplay,
    CostDisplay,
    FeatureScalesDisplay,
    GainsDisplay,
    LamPathDisplay,
    LandmarkMapDisplay,
    PrecisionRecallDisplay,
    RankingDisplay,
    ReliabilityDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
    ThresholdTable,
    draw_feature_scales,
)

OF_SCORES = [
    AlertsDisplay,
    GainsDisplay,
    PrecisionRecallDisplay,
    RocDisplay,
    ScoreDistributionDisplay,
]


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
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
def test_from_an_estimator_and_from_predictions(display, rows, model) -> None:
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


def test_curves_are_those_of_scikit_learn(rows, model) -> None:
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


def test_options_reach_the_table_and_its_own_threshold_is_marked(rows, model) -> None:
    X, y = rows
    scores = -model.decision_function(X)
    day = np.arange(len(y)) % 7
    display = AlertsDisplay.from_predictions(y, scores, own=0.0, time=day)
    assert display.unit == "alerts a day"
    assert "the model's threshold" in [t.get_text() for t in display.ax_.get_legend().get_texts()]
    cost = CostDisplay.from_predictions(y, scores, costs={"fp": 1.0, "fn": 9.0})
    assert "fp 1, fn 9" in cost.ax_.get_ylabel()
    with pytest.raises(ValueError, match="no costs"):
        CostDisplay.from_predictions(y, scores)
    lift = GainsDisplay.from_predictions(y, scores).plot(lift=True)
    assert lift.ax_.get_yscale() == "log"


def test_what_has_no_scores_is_refused(rows) -> None:
    X, y = rows
    with pytest.raises(ValueError, match="there is nothing"):
        RocDisplay.from_estimator(KMeans(), X, y)
    with pytest.raises(ValueError, match="not two classes with 'fraud'"):
        RocDisplay.from_estimator(LogisticRegression().fit(X, np.arange(len(X)) % 3), X, y)
    with pytest.raises(ValueError, match="has no probabilities"):
        ReliabilityDisplay.from_estimator(KMeans(), X, y)
    with pytest.raises(ValueError, match="inconsistent numbers"):
        RocDisplay.from_predictions(y, np.zeros(3))


def test_the_path_of_lam() -> None:
    X, y = make_classification(120, n_features=4, weights=[0.8], random_state=1)
    search = RankRCCV(lams=[1.0, 2.0**-6], cv=2, refit=False).fit(X, y)
    display = LamPathDisplay.from_estimator(search)
    line = display.ax_.get_lines()[0]
    np.testing.assert_allclose(line.get_ydata(), search.cv_results_["mean_test_score"])
    np.testing.assert_allclose(line.get_xdata(), [1.0, 2.0**-6])
    assert display.best_lam == search.best_lam_
    assert "AUC" in display.ax_.get_ylabel()
    told = LamPathDisplay([1.0, 0.5], [[0.7, 0.8]], n_landmarks=[3, 9]).plot()
    assert len(told.figure_.axes) == 2
    with pytest.raises(ValueError, match="no path of lam"):
        LamPathDisplay.from_estimator(LogisticRegression())


def test_the_map_of_landmarks(rows) -> None:
    X, y = rows
    model = RankRC(lam=0.1).fit(X[:, :2], y)
    display = LandmarkMapDisplay.from_estimator(model, X[:, :2], y)
    np.testing.assert_allclose(display.landmarks, model.landmarks_)
    assert display.surface is not None
    assert display.ax_.get_xlabel() == "x0"
    first, second, scores = display.surface
    np.testing.assert_allclose(scores[3, 5], model.score_samples([[first[5], second[3]]])[0])
    wide = LandmarkMapDisplay.from_estimator(RankRC(lam=0.1).fit(X, y), X)
    assert wide.surface is None
    # Distances in the plane are never longer than those of the rows.
    apart = np.linalg.norm(wide.rows[0] - wide.rows[1])
    assert apart <= np.linalg.norm(X[0] - X[1]) + 1e-12
    with pytest.raises(ValueError, match="no landmarks"):
        LandmarkMapDisplay.from_estimator(LogisticRegression(), X)
    with pytest.raises(ValueError, match="two features"):
        LandmarkMapDisplay.from_estimator(model, X[:, :1])


def test_scales_and_balls_on_axes_that_are_given() -> None:
    _, ax = pyplot.subplots()
    model = SimpleNamespace(feature_scales_=np.array([0.0, 2.0]))
    display = FeatureScalesDisplay.from_estimator(model, feature_names=["a", "b"], ax=ax)
    assert display.ax_ is ax
    assert [each.get_text() for each in ax.get_yticklabels()] == ["b"]
    picture = BallPicture(
        np.array([[0.1, 0.0], [3.0, 1.0]]), np.array(["labelled rare", "unlabelled, outside"]),
        1.0, np.array([3.3]), np.array([0.1]), ("first", "second"), "fraud",
    )  # fmt: skip
    hunt = SimpleNamespace(picture=lambda ball: picture)
    assert BallDisplay.from_estimator(hunt).ax_.shape == (2,)
    _, ax = pyplot.subplots()
    assert BallDisplay(picture).plot(ax=ax).ax_ is ax
    assert ax.get_xlabel() == "first"


def test_scores_of_an_outlier_detector_are_turned(rows) -> None:
    X, y = rows
    forest = IsolationForest(n_estimators=10, random_state=0).fit(X)
    shown = RocDisplay.from_estimator(forest, X, y)
    auc = roc_auc_score(y == "fraud", -forest.score_samples(X))
    assert shown.value.value == pytest.approx(auc)


# -- learned scales of features: bars of those in use, words for those left out --


def scaled(scales, names=None):
    found = SimpleNamespace(feature_scales_=np.asarray(scales, dtype=float))
    if names is not None:
        found.feature_names_in_ = np.array(names)
    return found


def texts(figure):
    axes = figure.axes[0]
    return [label.get_text() for label in axes.get_yticklabels()], axes.get_xlabel()


def test_bars_are_sorted_named_and_zeros_are_counted(tmp_path):
    figure = draw_feature_scales(scaled([0.5, 0.0, 3.0, 0.0], ["a", "b", "c_$x$", "d"]))
    names, below = texts(figure)
    assert names == ["c_$x$", "a"]
    assert "2 features dropped" in below
    assert [bar.get_width() for bar in figure.axes[0].patches] == [3.0, 0.5]
    assert "2 of 4" in figure.axes[0].get_title()
    figure.savefig(tmp_path / "scales.png")
    assert (tmp_path / "scales.png").stat().st_size > 5000


def test_many_features_are_cut_and_the_rest_is_told():
    scales = np.linspace(0.0, 2.0, 101)
    names, below = texts(draw_feature_scales(scaled(scales), most=12))
    assert len(names) == 12
    assert names[0] == "column 100"
    assert "88 more in use, at 1.76 or below" in below
    assert "1 feature dropped" in below


def test_scales_that_are_all_one_are_said_to_be_so():
    _, below = texts(draw_feature_scales(scaled(np.ones(5))))
    assert "all are 1" in below


def test_what_cannot_be_drawn_is_refused():
    with pytest.raises(ValueError, match="no learned scales"):
        draw_feature_scales(RankRC())
    X, y = np.random.default_rng(0).normal(size=(60, 3)), np.arange(60) < 9
    with pytest.raises(ValueError, match="feature_scaling='learned'"):
        draw_feature_scales(RankRC(lam=1.0).fit(X, y))
    with pytest.raises(ValueError, match="2 names for 3"):
        draw_feature_scales(scaled(np.ones(3)), ["a", "b"])
    with pytest.raises(ValueError, match="most=0"):
        draw_feature_scales(scaled(np.ones(3)), most=0)
