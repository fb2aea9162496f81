"""A solver that is cut short says so, and its gap stays true."""

import functools
import warnings
from itertools import product

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from rareclass.hyperball import RACH, RACHCV


def table(seed, n=440, p=20):
    rng = np.random.RandomState(seed)
    X = rng.randn(n, p)
    y = np.full(n, -1)
    y[:10], y[10:60] = 1, 0
    X[:10] += 0.7
    return X, y


CUT = {"C1": 30.0, "C2": 0.3, "kernel": "gaussian", "filter": False}


@functools.cache
def uncut(seed):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return RACH(**CUT).fit(*table(seed))


@pytest.mark.parametrize(
    ("seed", "max_inner"),
    [
        pytest.param(*case, marks=() if case in {(0, 1), (0, 10)} else pytest.mark.thorough)
        for case in product(range(2), [1, 2, 3, 5, 10])
    ],
)
def test_the_gap_is_true_however_short_the_solver_is_cut(seed, max_inner):
    X, y = table(seed)
    best = uncut(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = RACH(**CUT, max_inner=max_inner).fit(X, y)
    found, least = model.objective_path_[-1], best.objective_path_[-1]
    assert best.duality_gap_ <= 1e-6
    assert (found - least) / abs(found) <= model.duality_gap_ + 2e-6
    if model.duality_gap_ > 1e-4:
        assert model.status_ == "reached max_iter"


def test_a_solver_cut_short_warns():
    X, y = table(0)
    model = RACH(C1=30.0, C2=0.3, kernel="gaussian", filter=False, max_inner=1, max_outer=1)
    with pytest.warns(ConvergenceWarning, match="Raise max_outer=, max_inner= or tol="):
        model.fit(X, y)


def test_a_share_is_dealt_out_to_the_balls():
    rng = np.random.RandomState(0)
    X = rng.randn(600, 2)
    y = np.full(600, -1)
    X[:40], X[40:80] = [5.0, 5.0] + 0.1 * X[:40], [-5.0, 5.0] + 0.1 * X[40:80]
    y[:6], y[40:46], y[100:140] = 1, 2, 0
    model = RACH(C2=0.0, radius="share", rare_share=0.1, filter=False).fit(X, y)
    found = [len(ball.found) for ball in model.balls_]
    n_unlabelled = int((y == -1).sum())
    assert abs(sum(found) - 0.1 * n_unlabelled) <= 2
    assert abs(found[0] - found[1]) <= 1


def test_a_border_beyond_the_kept_rows_is_said():
    X, y = table(1, p=3)
    model = RACH(C2=0.0, radius="share", rare_share=0.4, max_kept=20)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    assert "was to hold 152 unlabelled rows" in model.messages_[0]
    assert "rare_share=" in model.messages_[0]


def test_labels_that_fit_did_not_see_are_refused_by_score():
    X, y = table(2)
    model = RACH(C2=0.0).fit(X, y)
    with pytest.raises(ValueError, match=r"row 3: label 7 is not among the classes \[0, 1\]"):
        model.score(X[:5], [0, 1, -1, 7, 0])


def test_what_was_not_refitted_cannot_predict():
    X, y = table(3)
    model = RACHCV(refit=False, cv=3).fit(X, y)
    with pytest.raises(AttributeError, match="refit=True"):
        model.predict(X)


def test_a_category_with_a_single_case_leaves_the_choice_to_the_others():
    X, y = table(4)
    y[5:10] = 2
    y[1:5] = -1  # one case of category 1 is left
    X[5:10] += 3.0
    with pytest.warns(UserWarning, match="1 has a single labelled row"):
        model = RACHCV(cv=3).fit(X, y)
    assert model.n_splits_ == 3
    assert model.best_score_ > 0.0
    assert set(model.predict(X)) <= {0, 1, 2}
    with pytest.raises(ValueError, match="names 9, which is not a rare label"):
        RACH(radius={9: "share"}).fit(X, y)
    with pytest.raises(ValueError, match="cv='5' must be"):
        RACHCV(cv="5").fit(X, y)
