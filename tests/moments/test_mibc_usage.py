"""MIBC as scikit-learn has it, and what it refuses."""

import re
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning, NotFittedError

import rareclass
from moments.mibc_cases import assert_same_hyperplane, each_covariance, rare_rows
from rareclass.moments import MIBC, MIBCCV
from rareclass.rows import RowSource, as_source

X, Y = rare_rows()


@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"C": 0.0}, "C=0.0 must be a number above 0, or np.inf"),
        ({"C": -1}, "C=-1"),
        ({"C": np.nan}, "C=nan"),
        ({"C": "1"}, "C='1'"),
        ({"C": [1.0]}, "C=[1.0]"),
        ({"tol": 0}, "tol=0 must be a number above 0"),
        ({"tol": np.inf}, "tol=inf"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number above 0"),
        ({"max_iter": 2.5}, "max_iter=2.5"),
        ({"n_jobs": 0}, "n_jobs=0"),
        ({"pos_label": 9}, "pos_label=9 is not among the labels [0, 1]"),
    ],
)
def test_bad_parameters_are_named(parameters, text):
    for learn in (
        lambda: MIBC(**parameters).fit(X, Y),
        lambda: MIBC(**parameters).partial_fit(X, Y, classes=[0, 1]),
    ):
        with pytest.raises(ValueError, match=re.escape(text)):
            learn()


def test_labels_that_cannot_be_learned_from():
    with pytest.raises(ValueError, match=r"one class only: 0"):
        MIBC().fit(X, np.zeros(400, int))
    with pytest.raises(ValueError, match="Only binary classification"):
        MIBC().fit(X, np.arange(400) % 3)
    with pytest.raises(ValueError, match="row 3"):
        MIBC().fit(X, np.where(np.arange(400) == 3, np.nan, Y))
    for learn in (MIBC().fit, lambda X, y: MIBC().partial_fit(X, y, classes=[0, 1])):
        with pytest.raises(ValueError, match=r"\[400, 3\]"):
            learn(X, Y[:3])
        with pytest.raises(ValueError, match="y is None"):
            learn(X, None)
    for weight, text in ((-np.ones(400), "at least 0"), (np.zeros(400), "zero"), (np.ones(3), "3")):
        with pytest.raises(ValueError, match=text):
            MIBC().fit(X, Y, weight)


def test_one_class_alone_is_learned_and_not_yet_solved():
    rare = MIBC().partial_fit(X[Y == 1], Y[Y == 1], classes=[0, 1])
    with pytest.raises(NotFittedError, match="No majority row"):
        rare.predict(X)
    common = MIBC().partial_fit(X[Y == 0], Y[Y == 0], classes=[0, 1])
    with pytest.raises(NotFittedError, match="No rare row"):
        common.coef_.sum()
    wanted = MIBC().fit(X, Y)
    assert_same_hyperplane(MIBC.merge(rare, common), wanted, 1e-6)
    with pytest.raises(NotFittedError, match="not fitted yet"):
        MIBC().offset_.hex()
    assert not hasattr(MIBC(), "coef_")


def test_models_that_do_not_go_together():
    pd = pytest.importorskip("pandas")
    a, frame = MIBC().fit(X, Y), pd.DataFrame(X, columns=list("abcde"))
    shared = np.random.RandomState(0)
    sketched = [
        MIBC(covariance="factor", n_factors=1, random_state=s).fit(X, Y) for s in (shared, shared)
    ]
    for one, other, text in (
        (a, MIBC(ridge=0.1).fit(X, Y), "ridge='auto' and ridge=0.1"),
        (a, MIBC().fit(X[:, :2], Y), "5 and 2 features"),
        (a, MIBC().fit(X, Y + 1), "classes"),
        (a, MIBC().fit(frame, Y), "columns"),
        (a, MIBC().fit(X, 1 - Y), "rare classes 1 and 0"),
        (*sketched, "different sketches"),
    ):
        with pytest.raises(ValueError, match=f"{text}.* do not merge"):
            MIBC.merge(one, other)
    with pytest.raises(NotFittedError, match="not fitted"):
        MIBC.merge(a, MIBC())
    MIBC.merge(a, MIBC(C=3.0, tol=1e-3, n_jobs=1).fit(X, Y))


def test_stopping_short_is_told():
    parameters = {"max_iter": 1, "C": 1e5, "tol": 1e-14}
    with pytest.warns(ConvergenceWarning, match=r"1 of 1 solutions stopped at max_iter=1") as told:
        model = MIBC(**parameters).fit(X, Y)
    assert told[0].filename == __file__
    assert model.status_ == "reached max_iter"
    assert model.duality_gap_ > 1e-14
    with pytest.warns(ConvergenceWarning):
        MIBC(**parameters).partial_fit(X, Y, classes=[0, 1]).coef_.sum()


@each_covariance
def test_moments_that_do_not_fit_are_refused_before_they_are_made(given, monkeypatch):
    monkeypatch.setattr("rareclass.machine.available_memory", lambda: 100)
    monkeypatch.setattr("rareclass.machine._NEGLIGIBLE", 0)
    with pytest.raises(ValueError, match=r"moments of 5 features.*covariance='diagonal'"):
        MIBC(**given).fit(X, Y)


def test_a_stream_whose_label_that_sorts_last_is_the_majority_is_warned_of():
    y = np.where(Y == 1, "fraud", "ok")
    with pytest.warns(UserWarning, match=r"'ok' counts as the rare class.*pos_label="):
        MIBC().partial_fit(X, y, classes=["fraud", "ok"]).coef_  # noqa: B018
    named = MIBC(pos_label="fraud").partial_fit(X, y, classes=["fraud", "ok"])
    np.testing.assert_allclose(named.coef_, MIBC().fit(X, Y).coef_, rtol=1e-6)


def test_a_covariance_that_was_changed_between_rows_is_refused():
    model = MIBC(covariance="diagonal").partial_fit(X, Y, classes=[0, 1])
    with pytest.raises(ValueError, match="was changed: the moments"):
        model.set_params(covariance="full").partial_fit(X, Y)


def test_rows_on_disk_are_read_twice_by_cross_validation(monkeypatch):
    """Once for the moments of the folds and once for their scores, whatever the folds."""
    taken = []
    monkeypatch.setattr("rareclass.rows.source._STRETCH_BYTES", 8 * 5 * 50)
    source = as_source(X)
    disk = RowSource(X.shape, X.dtype, lambda r: (taken.append(r), X[r])[1], False, lambda: None)
    model = MIBCCV(Cs=[0.1, 1.0], cv=4).fit(disk, Y)
    stretches = [r for r in taken if isinstance(r, slice)]
    assert len(stretches) == 2 * -(-len(X) // 50)
    assert [len(r) for r in taken if not isinstance(r, slice)] == [Y.sum()]
    memory = MIBCCV(Cs=[0.1, 1.0], cv=4).fit(source, Y)
    np.testing.assert_allclose(model.coef_, memory.coef_, rtol=1e-7)
    assert model.offset_ == pytest.approx(memory.offset_)
    assert model.best_score_ == memory.best_score_


@pytest.mark.parametrize(("covariance", "most_calls"), [("full", 215), ("diagonal", 155)])
def test_a_small_fit_enters_few_functions_and_looks_at_nothing_twice(covariance, most_calls):
    """Python functions of the package that a fit enters, loops included: its fixed cost."""
    rows = X if covariance == "full" else sparse.csr_array(X)
    model = MIBC(0.01, covariance=covariance, n_jobs=1).fit(rows, Y)
    calls = calls_of_package(lambda: model.fit(rows, Y))
    assert calls.total() <= most_calls
    for once in ("read_features", "_check_finite", "read_labels", "make_covariance", "moments_of"):
        assert calls[once] == 1, once
    assert not calls["available_memory"]
    assert not calls["interior_point"]


def calls_of_package(call):
    """How often each function of the package is entered."""
    home, calls = str(Path(rareclass.__file__).parent), Counter()

    def enter(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(home):
            calls[frame.f_code.co_name] += 1

    sys.setprofile(enter)
    try:
        call()
    finally:
        sys.setprofile(None)
    return calls
