"""OrdinalRankRCCV against fits of its own folds."""

import numpy as np
import pytest
from sklearn.model_selection import StratifiedKFold

from made_tables import ordinal_table
from oracles.ordinal import mauc_by_pairs
from rareclass import OrdinalRankRC, OrdinalRankRCCV
from rareclass.decide import level_thresholds
from rareclass.metrics import vus

X, Y = ordinal_table(300, [0.1, 0.75, 0.1, 0.05])
LAMS = [1.0, 0.03, 0.001]


@pytest.fixture(scope="module")
def selected():
    return OrdinalRankRCCV(lams=LAMS, cv=3, random_state=0, tol=1e-9).fit(X, Y)


def folds():
    return list(StratifiedKFold(3, shuffle=True, random_state=0).split(X, Y))


def test_fold_scores_are_those_of_models_that_never_saw_the_held_out_rows(selected):
    width = OrdinalRankRC(max_iter=1, tol=1.0).fit(X, Y).width_  # of all rows
    held_out = {lam: np.empty(300) for lam in LAMS}
    for k, (train, test) in enumerate(folds()):
        for i, lam in enumerate(LAMS):
            model = OrdinalRankRC(lam=lam, width=width, tol=1e-9).fit(X[train], Y[train])
            scores = held_out[lam][test] = model.score_samples(X[test])
            wanted = mauc_by_pairs(Y[test], scores, np.ones(len(test)))
            found = selected.cv_results_[f"split{k}_test_score"][i]
            assert found == pytest.approx(wanted, abs=1e-6)
    scores, used = held_out[selected.best_lam_], selected.score_samples(X)
    majority = selected.majority_level_ == Y
    for _, test in folds():  # each as its majority lies under the model in use
        rest = scores[test][majority[test]]
        stretch = used[majority].std() / rest.std()
        scores[test] = (scores[test] - rest.mean()) * stretch + used[majority].mean()
    np.testing.assert_allclose(selected.thresholds_, level_thresholds(Y, scores), atol=1e-5)


def test_vus_can_choose():
    by_name = OrdinalRankRCCV(lams=LAMS[:2], cv=3, random_state=0, scoring="vus").fit(X, Y)
    by_function = OrdinalRankRCCV(lams=LAMS[:2], cv=3, random_state=0, scoring=vus).fit(X, Y)
    means = by_name.cv_results_["mean_test_score"]
    np.testing.assert_array_equal(means, by_function.cv_results_["mean_test_score"])
    assert by_name.best_score_ == means.max()


def test_the_best_lam_is_refitted_on_all_rows(selected):
    results = selected.cv_results_
    assert selected.best_lam_ == LAMS[int(np.argmax(results["mean_test_score"]))]
    assert selected.best_score_ == results["mean_test_score"].max()
    wanted = OrdinalRankRC(lam=selected.best_lam_, tol=1e-9).fit(X, Y)
    np.testing.assert_allclose(selected.score_samples(X), wanted.score_samples(X), atol=1e-9)
    np.testing.assert_allclose(selected.transform(X), wanted.transform(X), atol=1e-9)
    assert selected.score(X, Y) == pytest.approx(wanted.score(X, Y))
    assert selected.majority_level_ == 1
    assert selected.classes_.tolist() == [0, 1, 2, 3]
    assert selected.n_splits_ == 3
    scores = selected.score_samples(X)
    np.testing.assert_array_equal(
        selected.predict(X), np.searchsorted(selected.thresholds_, scores)
    )


@pytest.mark.sampled(0)
def test_splitters_and_lists_of_folds_do_as_integers(selected):
    splitter = StratifiedKFold(3, shuffle=True, random_state=0)
    for cv in (splitter, folds()):
        model = OrdinalRankRCCV(lams=LAMS, cv=cv, tol=1e-9).fit(X, Y)
        np.testing.assert_allclose(
            model.cv_results_["mean_test_score"], selected.cv_results_["mean_test_score"]
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


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"lams": []}, "lams is empty"),
        ({"lams": [1.0, -1.0]}, r"lam=-1.0 must be a number above 0"),
        ({"scoring": "roc_auc"}, r"scoring='roc_auc' is not one of \['mauc', 'vus'\]"),
        ({"cv": 1}, "needs at least 2 folds"),
        ({"cv": [(np.flatnonzero(Y == 1), np.flatnonzero(Y != 1))]}, "fold 1 has no rare row"),
    ],
)
def test_parameters_out_of_range_are_named(parameters, message):
    with pytest.raises(ValueError, match=message):
        OrdinalRankRCCV(**parameters).fit(X, Y)
