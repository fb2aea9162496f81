"""RACH and RACHCV in scikit-learn's tools, and what they say to wrong parameters and inputs."""

import signal

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, PredefinedSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from hyperball.rach_cases import QUIET, RARE, UNKNOWN, ball_of, hidden_cluster, unwarned
from rareclass.errors import InputError
from rareclass.hyperball import RACH, RACHCV, choice
from rareclass.hyperball.pool import make_space
from rareclass.rows import from_arrays


def test_in_the_tools_of_scikit_learn():
    X, y, truth = hidden_cluster()
    pipeline = make_pipeline(StandardScaler(), RACH(C2=0.02))
    # Cross-validation over rows whose label is known; the others are always there to learn from.
    fold = np.where(y == UNKNOWN, -1, np.arange(len(y)) % 3)
    grid = GridSearchCV(
        pipeline, {"rach__C1": [0.1, 10.0], "rach__C2": [0.005, 0.02]}, cv=PredefinedSplit(fold)
    )
    with unwarned():
        grid.fit(X, y)
    assert grid.best_score_ > 0.6
    assert grid.score(X, truth) > 0.6  # F1, the model's own score


@pytest.mark.parametrize("model", [RACH(), RACHCV()])
def test_before_fitting(model):
    for call in (model.describe, model.picture):
        with pytest.raises(NotFittedError):
            call()
    for name in ("center_", "radius_", "pos_label_", "landmarks_", "n_iter_"):
        assert not hasattr(model, name)


REFUSED = [
    ("C1 C2 margin", [-1.0, np.nan, np.inf, "1", None, True], "a finite number at or above 0"),
    ("tol", [0, -1.0, np.nan, "a"], "a number above 0"),
    ("max_outer max_inner n_landmarks max_kept", [0, -3, 2.5, None], "a whole number above 0"),
    ("n_balls", [0, 1.5, "two", True], "a whole number above 0, or 'auto'"),
    ("width", [0.0, -1.0, np.nan, "wide", None], "'mean' or a number above 0"),
    ("filter", [0.0, -1.0, np.nan, "yes", None], r"True \(3 times the threshold, .* False, or a"),
    ("radius_slack", [np.nan, "a", None, {1: np.inf}, {1: "a"}], "a number, or a dict"),
    ("rare_share", [0.0, 1.5, "half", np.nan], "the share .* above 0"),
    ("radius", ["wide", {1: "wide"}], "'solved' or 'share', or a dict"),
]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        *(
            ({name: value}, f"^{name}=.* must be {message}")
            for names, values, message in REFUSED
            for name in names.split()
            for value in values
        ),
        ({"radius": {9: "share"}}, "^radius=.* names 9, which is not a rare label"),
        ({"kernel": "round"}, "^kernel='round' is not one of .*'gaussian'"),
        ({"kernel": 3}, "^kernel=3 is not one of"),
        ({"pos_label": 7}, r"^pos_label=7 is not among the labels \[0, 1\]"),
        ({"random_state": "a"}, "'a' cannot be used to seed"),
    ],
)
def test_parameters_that_are_refused(change, message):
    X, y, _ = hidden_cluster(n=80)
    with pytest.raises(ValueError, match=message):
        RACH(**change).fit(X, y)


def test_labels_that_fit_did_not_see_are_refused_by_score():
    X, y, _ = hidden_cluster(n=80)
    model = ball_of(X, y, C2=0.0)
    with pytest.raises(ValueError, match=r"row 3: label 7 is not among the classes \[0, 1\]"):
        model.score(X[:5], [0, 1, -1, 7, 0])


def test_what_fit_rows_refuses():
    X, y, _ = hidden_cluster(n=80)
    for model in (RACH(), RACHCV()):
        with pytest.raises(TypeError, match="fit_rows takes rows with labels, not a ndarray"):
            model.fit_rows(X)
        with pytest.raises(InputError, match="These rows have no labels to learn from"):
            model.fit_rows(from_arrays(X, None))
    fitted = RACH(**QUIET).fit_rows(from_arrays(X, y))
    np.testing.assert_array_equal(fitted.predict(from_arrays(X, None)), fitted.predict(X))


def test_attributes_that_are_not_there():
    X, y, _ = hidden_cluster(n=80)
    model = RACH(**QUIET).fit(X, y)
    assert model.pos_label_ == RARE
    with pytest.raises(AttributeError, match="a ball without a kernel has no landmarks"):
        _ = model.landmarks_
    with pytest.raises(ValueError, match="ball=1: balls are 0 to 0"):
        model.picture(1)
    with pytest.raises(ValueError, match="ball=-1"):
        model.picture(-1)


def test_ctrl_c_stops_a_long_fit(monkeypatch):
    X, y, _ = hidden_cluster(n=300, p=10)
    widths = []

    def interrupted(*given):
        widths.append(given[1])
        if len(widths) == 3:
            signal.raise_signal(signal.SIGINT)
        return make_space(*given)

    monkeypatch.setattr(choice, "make_space", interrupted)
    model = RACHCV(kernel="gaussian")
    with unwarned(), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert len(widths) == 3
    assert not hasattr(model, "balls_")
