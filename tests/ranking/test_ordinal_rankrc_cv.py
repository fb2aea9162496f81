"""OrdinalRankRCCV against fits of its own folds."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from made_tables import ordinal_table
from rareclass import OrdinalRankRC, OrdinalRankRCCV
from rareclass.decide import level_thresholds

X, Y = ordinal_table(300, [0.1, 0.75, 0.1, 0.05])
LAMS = [1.0, 0.03, 0.001]


@pytest.fixture(scope="module")
def selected():
    return OrdinalRankRCCV(lams=LAMS, cv=3, random_state=0, tol=1e-9).fit(X, Y)


def folds():
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))


def test_thresholds_are_those_of_held_out_scores(selected):
    width = OrdinalRankRC(max_iter=1, tol=1.0).fit(X, Y).width_  # of all rows
    scores = np.empty(300)
    for train, test in folds():
        model = OrdinalRankRC(lam=selected.best_lam_, width=width, tol=1e-9)
        scores[test] = model.fit(X[train], Y[train]).score_samples(X[test])
    used = selected.score_samples(X)
    majority = selected.majority_level_ == Y
    for _, test in folds():  # each as its majority lies under the model in use
        rest = scores[test][majority[test]]
        stretch = used[majority].std() / rest.std()
        scores[test] = (scores[test] - rest.mean()) * stretch + used[majority].mean()
    np.testing.assert_allclose(selected.thresholds_, level_thresholds(Y, scores), atol=1e-5)


def test_the_model_in_use_is_that_of_the_best_lam(selected):
    wanted = OrdinalRankRC(lam=selected.best_lam_, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(selected.transform(X), wanted.transform(X), atol=1e-9)
    assert selected.majority_level_ == 1
    assert selected.classes_.tolist() == [0, 1, 2, 3]
    scores = selected.score_samples(X)
    np.testing.assert_array_equal(
        selected.predict(X), np.searchsorted(selected.thresholds_, scores)
    )


def test_every_fold_holds_its_share_of_every_level():
    seen = []

    def scoring(y, scores, weight):
        seen.append(np.bincount(y, weight, minlength=4))
        return -seen[-1].sum()

    names = np.array(["a", "b", "c", "d"])
    model = OrdinalRankRCCV(lams=[1.0], cv=5, scoring=scoring, levels=names)
    model.fit(X, names[Y], np.ones(300))
    assert np.ptp(np.array(seen), axis=0).max() <= 1.0
    np.testing.assert_array_equal(np.sum(seen, axis=0), np.bincount(Y))
    assert model.best_score_ == -60.0


def test_levels_of_fewer_rows_than_folds_are_no_trouble():
    few = np.r_[np.flatnonzero(Y != 3), np.flatnonzero(Y == 3)[:2]]
    model = OrdinalRankRCCV(lams=[1.0, 0.01], cv=5).fit(X[few], Y[few])
    assert model.n_splits_ == 5
    assert len(model.thresholds_) == 3


@pytest.mark.sampled(0)
def test_weights_are_copies(selected):
    copies = np.random.default_rng(0).integers(1, 4, 300)
    repeated = np.repeat(np.arange(300), copies)
    fold_of_row = np.empty(300, dtype=int)
    for k, (_, test) in enumerate(folds()):
        fold_of_row[test] = k
    models = []
    for rows, weight in ((np.arange(300), copies), (repeated, None)):
        fold = fold_of_row[rows]
        cv = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(3)]
        models.append(OrdinalRankRCCV(lams=LAMS, cv=cv, tol=1e-9).fit(X[rows], Y[rows], weight))
    weighted, plain = models
    np.testing.assert_allclose(
        weighted.cv_results_["mean_test_score"], plain.cv_results_["mean_test_score"], atol=1e-9
    )
    np.testing.assert_allclose(weighted.thresholds_, plain.thresholds_, atol=1e-8)
