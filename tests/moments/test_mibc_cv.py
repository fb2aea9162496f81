"""MIBCCV against its folds fitted one by one."""

import warnings

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import average_precision_score, balanced_accuracy_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, StratifiedShuffleSplit

from moments.mibc_cases import (
    COVARIANCES,
    EXACT,
    assert_same_hyperplane,
    each_covariance,
    moments_of_array,
    rare_rows,
)
from oracles.moments import assert_same_moments
from rareclass.moments import MIBC, MIBCCV, mibc_cv
from rareclass.moments.moments import MomentSettings
from rareclass.rows import from_parquet

X, Y = rare_rows(300, 30, shift=0.7)
CS = [0.003, 0.1, 3.0]
FOLDS = StratifiedKFold(4, shuffle=True, random_state=1)


def fold_scores(model):
    return np.array([model.cv_results_[f"split{k}_test_score"] for k in range(model.n_splits_)])


def one_by_one(splits, X=X, weight=None, score=roc_auc_score, **parameters):
    """Scores of separate fits, shape (folds, candidates), and the models."""
    ridges, scores, models = parameters.pop("ridges", None), [], []
    choices = [{}] if ridges is None else [{"ridge": ridge} for ridge in ridges]
    for train, test in splits:
        w, v = (None, None) if weight is None else (weight[train], weight[test])
        row = [
            MIBC(C=C, **{**parameters, **chosen}, **EXACT).fit(X[train], Y[train], w)
            for chosen in choices
            for C in CS
        ]
        models.append(row)
        scores.append([score(Y[test], m.score_samples(X[test]), sample_weight=v) for m in row])
    return np.array(scores), models


@pytest.mark.sampled(3)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_fold_scores_are_those_of_separate_fits(given, container):
    splits = list(FOLDS.split(X, Y))
    data = container(X)
    model = MIBCCV(CS, cv=splits, **given, **EXACT).fit(data, Y)
    wanted, _ = one_by_one(splits, data, **given)
    np.testing.assert_allclose(fold_scores(model), wanted, atol=1e-10)
    mean = wanted.mean(axis=0)
    assert model.best_C_ == CS[int(np.argmax(mean))]
    assert model.best_score_ == pytest.approx(mean.max(), abs=1e-10)
    np.testing.assert_allclose(model.cv_results_["mean_test_score"], mean, atol=1e-10)
    np.testing.assert_allclose(model.cv_results_["std_test_score"], wanted.std(axis=0), atol=1e-10)
    np.testing.assert_array_equal(model.cv_results_["C"], CS)
    assert (model.cv_results_["largest_gap"] <= 1e-9).all()
    assert {len(figures) for figures in model.cv_results_.values()} == {len(CS)}
    best = MIBC(C=model.best_C_, **given, **EXACT).fit(data, Y)
    rtol = 1e-5 if "sparse_i" in str(given) else 1e-8
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=rtol, atol=rtol)
    np.testing.assert_allclose(model.score_samples(data), best.score_samples(data), rtol=100 * rtol)


def watched(monkeypatch):
    """The hyperplanes of each fold, and the moments that they come from."""
    seen = []
    original = mibc_cv._TrainingTable.solve

    def solve(self, moments, *rest):
        found = original(self, moments, *rest)
        seen.append((moments, found))
        return found

    monkeypatch.setattr(mibc_cv._TrainingTable, "solve", solve)
    return seen


@pytest.mark.sampled(3)
@each_covariance
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
def test_moments_by_removal_are_fresh_ones(given, container, monkeypatch):
    seen, splits = watched(monkeypatch), list(FOLDS.split(X, Y))
    weight = np.random.default_rng(0).random(300) + 0.5
    far = X + np.array([1e4, 0.0, -1e4, 0.0, 0.0])
    MIBCCV(CS, cv=splits, **given, **EXACT).fit(container(far), Y, weight)
    _, models = one_by_one(splits, container(far), weight, **given)
    for (train, _), (moments, hyperplanes), row in zip(splits, seen, models, strict=True):
        assert_same_moments(moments, row[0].moments_, rtol=1e-8)
        common = train[Y[train] == 0]
        plain = moments_of_array(far[common], MomentSettings(), weight[common])
        np.testing.assert_allclose(moments.variance, plain.variance, rtol=1e-9)
        for hyperplane, model in zip(hyperplanes, row, strict=True):
            scale = np.abs(model.coef_).max()
            rtol = 1e-4 if "sparse_i" in str(given) else 1e-7
            np.testing.assert_allclose(hyperplane.coef, model.coef_, atol=rtol * scale)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "splitter",
    [
        RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
        StratifiedShuffleSplit(4, test_size=0.4, train_size=0.3, random_state=0),
    ],
    ids=["repeated", "overlapping"],
)
def test_folds_that_repeat_overlap_or_leave_rows_out(splitter):
    splits = list(splitter.split(X, Y))
    wanted, _ = one_by_one(splits)
    for cv in (splitter, splits, iter(splits)):
        model = MIBCCV(CS, cv=cv, **EXACT).fit(X, Y)
        np.testing.assert_allclose(fold_scores(model), wanted, atol=1e-10)
        assert model.n_splits_ == len(splits)
        best = MIBC(model.best_C_, **EXACT).fit(X, Y)
        np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-8)


def test_rows_without_weight_are_in_no_fold():
    weight = np.where(np.arange(300) % 7 == 0, 0.0, np.random.default_rng(0).random(300) + 0.1)
    kept = weight > 0
    weighted = MIBCCV(CS, cv=3, **EXACT).fit(X, Y, weight)
    without = MIBCCV(CS, cv=3, **EXACT).fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_allclose(fold_scores(weighted), fold_scores(without), atol=1e-12)
    assert_same_hyperplane(weighted.best_estimator_, without.best_estimator_)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("scoring", ["roc_auc", "average_precision"])
def test_weights_count_in_moments_rare_rows_and_scores(scoring):
    weight = np.random.default_rng(0).choice([0.5, 1.0, 4.0], 300)
    splits = list(FOLDS.split(X, Y))
    score = {"roc_auc": roc_auc_score, "average_precision": average_precision_score}[scoring]
    wanted, _ = one_by_one(splits, weight=weight, score=score)
    model = MIBCCV(CS, cv=splits, scoring=scoring, **EXACT).fit(X, Y, weight)
    np.testing.assert_allclose(fold_scores(model), wanted, atol=1e-10)
    assert not np.allclose(wanted, one_by_one(splits, score=score)[0], atol=1e-4)
    best = MIBC(model.best_C_, **EXACT).fit(X, Y, weight)
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-8)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("name", ["full", "diagonal", "factor"])
def test_ridges_are_tried_with_every_price(name):
    splits, ridges = list(FOLDS.split(X, Y)), [0.5, 2.0]
    given = {**COVARIANCES[name]}
    model = MIBCCV(CS, ridges=ridges, cv=splits, **given, **EXACT).fit(X, Y)
    wanted, _ = one_by_one(splits, ridges=ridges, **given)
    np.testing.assert_allclose(fold_scores(model), wanted, atol=1e-10)
    np.testing.assert_array_equal(model.cv_results_["C"], CS * 2)
    assert model.cv_results_["ridge"].tolist() == [0.5, 0.5, 0.5, 2.0, 2.0, 2.0]
    best = MIBC(model.best_C_, **{**given, "ridge": model.best_ridge_}, **EXACT).fit(X, Y)
    np.testing.assert_allclose(model.coef_, best.coef_, rtol=1e-5, atol=1e-6)
    assert (model.best_C_, model.best_ridge_) == (
        model.cv_results_["C"][model.best_index_],
        model.cv_results_["ridge"][model.best_index_],
    )


def test_among_equals_the_simplest_is_best():
    easy = np.r_[np.random.default_rng(0).normal(size=(80, 2)), 9 + np.zeros((8, 2))]
    y = np.r_[np.zeros(80), np.ones(8)]
    model = MIBCCV([10.0, 1.0, 100.0], ridges=[0.1, "auto", 1.0, 0.5], cv=4).fit(easy, y)
    assert (model.cv_results_["mean_test_score"] == 1.0).all()
    assert (model.best_C_, model.best_ridge_) == (1.0, 1.0)
    assert (model.cv_results_["rank_test_score"] == 1).all()


def test_what_cannot_be_tried_is_refused():
    for parameters, text in (
        ({"Cs": []}, "Cs is empty"),
        ({"Cs": [1.0, -1.0]}, r"C=-1\.0 must be a number above 0"),
        ({"Cs": [1.0, np.nan]}, "must be a number above 0"),
        ({"Cs": "many"}, "Cs='many' must be numbers above 0"),
        ({"Cs": None}, "Cs=None must be numbers above 0"),
        ({"ridges": []}, "ridges is empty"),
        ({"ridges": [0.1, -2]}, "ridge=-2 is not 'auto'"),
        ({"ridges": "each"}, "ridge='each' is not 'auto'"),
        ({"covariance": mibc_cv.MIBC, "ridges": [0.1]}, "covariance=<class"),
        ({"cv": None}, "cv=None"),
        ({"cv": 1}, "cv=1 .* needs at least 2 folds"),
    ):
        with pytest.raises(ValueError, match=text):
            MIBCCV(**{"cv": 3, **parameters}).fit(X, Y)


@pytest.mark.parametrize("ridges", [0.1, "auto"])
def test_one_ridge_need_not_be_in_a_list(ridges):
    model = MIBCCV(CS, ridges=ridges, cv=3).fit(X, Y)
    assert model.cv_results_["ridge"].tolist() == [ridges] * 3


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_threshold_is_the_best_on_held_out_scores(weighted):
    weight = np.random.default_rng(2).choice([0.5, 1.0, 4.0], 300) if weighted else np.ones(300)
    splits = list(FOLDS.split(X, Y))
    model = MIBCCV([0.1], cv=splits, **EXACT).fit(X, Y, weight)
    scores = np.empty(len(X))
    for train, test in splits:
        alone = MIBC(0.1, **EXACT).fit(X[train], Y[train], weight[train])
        scores[test] = alone.score_samples(X[test]) - alone.coef_ @ alone.moments_.mean
    threshold = model.offset_ - model.coef_ @ model.best_estimator_.moments_.mean

    def balanced(t):
        return balanced_accuracy_score(Y, scores > t, sample_weight=weight)

    assert balanced(threshold) == pytest.approx(max(balanced(t) for t in scores), abs=1e-6)
    kappa = threshold / np.sqrt(np.cov(X[Y == 0] @ model.coef_, aweights=weight[Y == 0], ddof=0))
    assert model.specificity_bound_ == pytest.approx(kappa**2 / (1 + kappa**2), rel=1e-6)
    assert model.intercept_ == -model.offset_ == model.best_estimator_.intercept_
    np.testing.assert_array_equal(model.predict(X), model.best_estimator_.predict(X))


def test_the_hard_margin_among_the_prices():
    data, y = rare_rows(200, 10, 3, seed=1, shift=9.0)
    model = MIBCCV([np.inf, 0.01], cv=3).fit(data, y)
    assert model.cv_results_["C"].tolist() == [0.01, np.inf]
    alone = MIBCCV([np.inf], cv=3).fit(data, y)
    np.testing.assert_allclose(model.coef_ if model.best_C_ == np.inf else alone.coef_, alone.coef_)
    with pytest.raises(ValueError, match="convex hull"):
        MIBCCV([np.inf], cv=3).fit(*rare_rows(200, 60, 2, shift=0.0))


def test_rows_on_disk_and_names(tmp_path):
    columns = {name: X[:, j] for j, name in enumerate("abcde")}
    table = pa.table({**columns, "label": np.where(Y == 1, "bad", "good")})
    pq.write_table(table, tmp_path / "t.parquet", row_group_size=90)
    wanted = MIBCCV(CS, cv=3, **EXACT).fit(X, Y)
    with from_parquet(tmp_path / "t.parquet", target="label") as rows:
        model = MIBCCV(CS, cv=3, **EXACT).fit_rows(rows)
    np.testing.assert_allclose(fold_scores(model), fold_scores(wanted), atol=1e-12)
    assert list(model.feature_names_in_) == list("abcde")
    assert list(model.best_estimator_.feature_names_in_) == list("abcde")
    assert (model.pos_label_, model.classes_.tolist()) == ("bad", ["bad", "good"])
    assert_same_hyperplane(model.best_estimator_, wanted.best_estimator_)


def test_integers_make_stratified_folds_of_rows_in_any_order():
    order = np.argsort(-Y, kind="stable")
    model = MIBCCV(CS).fit(X[order], Y[order])
    assert model.n_splits_ == 10
    again = MIBCCV(CS, random_state=0).fit(X[order], Y[order])
    np.testing.assert_array_equal(fold_scores(model), fold_scores(again))
    other = MIBCCV(CS, random_state=1).fit(X[order], Y[order])
    assert not np.array_equal(fold_scores(model), fold_scores(other))


def test_fewer_rare_rows_than_folds_make_fewer_folds():
    few = np.r_[np.flatnonzero(Y == 0), np.flatnonzero(Y == 1)[:4]]
    with pytest.warns(UserWarning, match="4 folds in place of 10") as told:
        model = MIBCCV(CS).fit(X[few], Y[few])
    assert model.n_splits_ == 4
    assert told[0].filename == __file__
    with pytest.raises(ValueError, match="MIBC with a C of your choice"):
        MIBCCV(CS).fit(X[few[:-3]], Y[few[:-3]])


@pytest.mark.parametrize(
    ("folds", "text"),
    [
        ([(0, 150), (150, 300)], "fold 1 has no rare row in its training part"),
        ([(150, 300), (0, 150)], "fold 1 has no rare row in its test part"),
        ([(270, 300), (0, 300)], "fold 1 has no majority row in its training part"),
    ],
)
def test_folds_without_a_class_are_refused_by_number(folds, text):
    order = np.argsort(Y, kind="stable")
    (start, stop), (first, last) = folds
    cv = [(np.arange(start, stop), np.arange(first, last))]
    with pytest.raises(ValueError, match=text):
        MIBCCV(CS, cv=cv).fit(X[order], Y[order])


def test_folds_that_stop_short_and_singular_ones_are_told_once():
    with pytest.warns(ConvergenceWarning) as told:
        MIBCCV([1e-4, 1e5], cv=3, max_iter=1, tol=1e-14, refit=False).fit(X, Y)
    assert len(told) == 1
    assert "of 6 solutions stopped at max_iter=1" in str(told[0].message)
    assert told[0].filename == __file__
    with warnings.catch_warnings(record=True) as all_told:
        warnings.simplefilter("always")
        model = MIBCCV(CS, cv=3).fit(np.c_[X, np.ones(300)], Y)
    assert len(all_told) == 1
    assert "column 5 constant" in str(all_told[0].message)
    assert all_told[0].filename == __file__
    assert np.isfinite(model.coef_).all()


def test_an_interrupt_leaves_nothing_half_fitted(monkeypatch):
    def interrupted(self, *rest):
        raise KeyboardInterrupt

    monkeypatch.setattr(mibc_cv._TrainingTable, "score", interrupted)
    model = MIBCCV(CS, cv=3)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, Y)
    assert not hasattr(model, "best_C_")
