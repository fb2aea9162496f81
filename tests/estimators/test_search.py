"""The one search: scorings, the best of many, and what is handed on to the best model."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.base import clone
from sklearn.metrics import average_precision_score, roc_auc_score
from sklearn.model_selection import RepeatedStratifiedKFold, StratifiedKFold, StratifiedShuffleSplit

from oracles.ordinal import mauc_by_pairs
from rareclass import MIBCCV, RACHCV, OrdinalRankRCCV, RankRCCV
from rareclass.estimators.search import TieBreaker, best_of, score_table
from rareclass.metrics import vus

SEARCHES = [RankRCCV, OrdinalRankRCCV, MIBCCV]


def rare_rows(seed=0, n_rows=120):
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) < n_rows // 8).astype(int)
    return rng.normal(size=(n_rows, 3)) + 1.2 * y[:, None], y


def small(search, **more):
    grid = {MIBCCV: {"Cs": [0.1, 1.0]}, RACHCV: {"C1s": [1.0]}}.get(search, {"lams": [1.0, 0.1]})
    return search(**grid, cv=3, **more)


X, Y = rare_rows(1, 240)
LAMS, CS = [1.0, 2.0**-6, 2.0**-12], [0.003, 0.1, 3.0]
COVARIANCES = [
    {"covariance": "full"},
    {"covariance": "diagonal"},
    {"covariance": "factor", "n_factors": 2},
]
FOUND = [
    RankRCCV(LAMS, tol=1e-9),
    RankRCCV(LAMS, tol=1e-9, landmarks="all"),
    RankRCCV([0.03, 0.003], tol=1e-9, penalty="l1"),
    OrdinalRankRCCV(LAMS, tol=1e-9),
    *(MIBCCV(CS, **each, tol=1e-12, max_iter=10_000) for each in COVARIANCES),
    *(MIBCCV(CS, ridges=[0.5, 2.0], **each, tol=1e-12, max_iter=10_000) for each in COVARIANCES),
]
LEVELS = 1 + Y * np.where(X[:, 0] > np.median(X[Y == 1, 0]), 1, -1)
WEIGHT = np.random.default_rng(0).choice([0.5, 1.0, 4.0], len(Y))
SPLITTERS = [
    StratifiedKFold(4, shuffle=True, random_state=1),
    RepeatedStratifiedKFold(n_splits=3, n_repeats=2, random_state=0),
    StratifiedShuffleSplit(4, test_size=0.4, train_size=0.3, random_state=0),
]


def mauc_score(y, scores, sample_weight=None):
    return mauc_by_pairs(y, scores, np.ones(len(y)) if sample_weight is None else sample_weight)


def mean_of(model):
    return model.cv_results_["mean_test_score"]


def one_by_one(model, tried, splits, rows, y, weight, score):
    """Scores of a fit of its own for each fold and candidate; widths are those of all rows."""
    own = {"width": model.width_} if hasattr(model, "width_") else {}
    found = np.empty((len(splits), len(tried)))
    for k, (train, test) in enumerate(splits):
        for j, candidate in enumerate(tried):
            w, v = (None, None) if weight is None else (weight[train], weight[test])
            alone = clone(model).set_params(**candidate, **own).fit(rows[train], y[train], w)
            found[k, j] = score(y[test], alone.score_samples(rows[test]), sample_weight=v)
    return found


@pytest.mark.sampled(3)
@pytest.mark.parametrize("search", FOUND, ids=str)
@pytest.mark.parametrize("container", [np.asarray, sparse.csr_array])
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize("splitter", SPLITTERS, ids=lambda each: type(each).__name__)
def test_fold_scores_are_those_of_separate_fits(search, container, weight, splitter):
    has_levels, of_moments = (isinstance(search, kind) for kind in (OrdinalRankRCCV, MIBCCV))
    y = LEVELS if has_levels else Y
    rows, splits = container(X), list(splitter.split(X, y))
    model = clone(search).set_params(cv=iter(splits) if weight is None else splits)
    results = model.fit(rows, y, weight).cv_results_
    names = [name for name in ("lam", "C", "ridge") if name in results]
    tried = [
        dict(zip(names, own, strict=True)) for own in zip(*map(results.get, names), strict=True)
    ]
    score = mauc_score if has_levels else roc_auc_score
    wanted = one_by_one(model.best_estimator_, tried, splits, rows, y, weight, score)
    found = np.array([results[f"split{k}_test_score"] for k in range(model.n_splits_)])
    atol = 1e-10 if of_moments else 2e-4
    np.testing.assert_allclose(found, wanted, atol=atol)
    mean = wanted.mean(axis=0)
    np.testing.assert_allclose(results["mean_test_score"], mean, atol=atol)
    np.testing.assert_allclose(results["std_test_score"], wanted.std(axis=0), atol=atol)
    assert model.best_score_ == results["mean_test_score"].max()
    best = tried[model.best_index_]
    assert {name: getattr(model, f"best_{name}_") for name in best} == best
    assert {len(figures) for figures in results.values()} == {len(tried)}
    alone = clone(model.best_estimator_).set_params(**best).fit(rows, y, weight)
    np.testing.assert_allclose(model.score_samples(rows), alone.score_samples(rows), atol=1e-6)
    assert model.score(rows, y) == pytest.approx(alone.score(rows, y))
    by_splitter = clone(search).set_params(cv=splitter).fit(rows, y, weight)
    np.testing.assert_array_equal(by_splitter.cv_results_["mean_test_score"], mean_of(model))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("search", SEARCHES)
def test_another_measure_chooses_where_it_is_named_or_given(search):
    name, y, score = "average_precision", Y, average_precision_score
    if search is OrdinalRankRCCV:
        name, y, score = "vus", LEVELS, vus

    def given(y, scores, weight):
        return score(y, scores, sample_weight=weight)

    model, by_function, usual = (
        mean_of(small(search, random_state=0, tol=1e-9, **scoring).fit(X, y, WEIGHT))
        for scoring in ({"scoring": name}, {"scoring": given}, {})
    )
    np.testing.assert_allclose(model, by_function, atol=1e-12)
    assert not np.allclose(model, usual, atol=1e-4)


@pytest.mark.parametrize("search", SEARCHES)
def test_rows_without_weight_are_in_no_fold(search):
    weight = np.where(np.arange(240) % 7 == 0, 0.0, np.random.default_rng(0).random(240) + 0.1)
    kept = weight > 0
    weighted = small(search, tol=1e-9).fit(X, Y, weight)
    without = small(search, tol=1e-9).fit(X[kept], Y[kept], weight[kept])
    np.testing.assert_allclose(mean_of(weighted), mean_of(without), atol=1e-4)
    np.testing.assert_allclose(weighted.score_samples(X), without.score_samples(X), atol=1e-4)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("search", [RankRCCV, MIBCCV])
def test_whole_numbers_make_stratified_folds_and_no_more_than_there_are_rare_rows(search):
    models = [
        small(search, random_state=seed).set_params(cv=10).fit(X, Y)  # all rare rows come first
        for seed in (0, 0, 1)
    ]
    assert models[0].n_splits_ == 10
    assert np.isfinite(mean_of(models[0])).all()
    np.testing.assert_array_equal(mean_of(models[1]), mean_of(models[0]))
    assert not np.array_equal(mean_of(models[2]), mean_of(models[0]))
    few = np.r_[:4, np.flatnonzero(Y == 0)]
    with pytest.warns(UserWarning, match="4 folds in place of 10") as told:
        model = small(search).set_params(cv=10).fit(X[few], Y[few])
    assert (model.n_splits_, told[0].filename) == (4, __file__)
    with pytest.raises(ValueError, match=r"(lam|MIBC with a C) of your choice"):
        small(search).fit(X[few[3:]], Y[few[3:]])


@pytest.mark.parametrize("search", SEARCHES)
@pytest.mark.parametrize(
    ("train", "test", "text"),
    [
        (slice(120), slice(120, None), "no rare row in its training part"),
        (slice(120, None), slice(120), "no rare row in its test part"),
        (slice(225, None), slice(None), "no majority row in its training part"),
    ],
)
def test_folds_without_a_class_are_refused_by_number(search, train, test, text):
    last, numbers = X[::-1], np.arange(240)
    model = small(search).set_params(cv=[(numbers[train], numbers[test])])
    with pytest.raises(ValueError, match=f"fold 1 has {text}"):
        model.fit(last, Y[::-1])


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_keeps_the_same_results(search):
    X, y = rare_rows()
    model = small(search).fit(X, y)
    assert model.cv_results_["rank_test_score"][model.best_index_] == 1
    best = model.best_estimator_
    np.testing.assert_array_equal(model.score_samples(X), best.score_samples(X))
    assert model.n_iter_ == best.n_iter_
    assert best.n_features_in_ == model.n_features_in_ == 3
    shared = set(best.get_params()) & set(model.get_params()) - {"lam", "C", "ridge", "loss"}
    assert all(best.get_params()[name] == model.get_params()[name] for name in shared)


@pytest.mark.parametrize("search", [*SEARCHES, RACHCV])
def test_without_refit_there_is_no_model(search):
    X, y = rare_rows()
    model = small(search, refit=False).fit(X, y)
    assert 0.0 <= model.best_score_ <= 1.0
    with pytest.raises(AttributeError, match=rf"this {search.__name__} has no .*refit=True"):
        model.score_samples(X)
    for name in ("best_estimator_", "n_iter_", "transduction_"):
        assert not hasattr(model, name)


@pytest.mark.parametrize("search", SEARCHES)
def test_a_scoring_is_named_or_a_function(search):
    X, y = rare_rows()
    for unknown in ("f1", ["mauc"]):
        with pytest.raises(ValueError, match=rf"scoring={re.escape(repr(unknown))} is not"):
            small(search, scoring=unknown).fit(X, y)
    for cv, said in (([], r"cv=\[\] holds no folds"), (1, "needs at least 2 folds")):
        with pytest.raises(ValueError, match=said):
            small(search).set_params(cv=cv).fit(X, y)
    seen = []

    def scoring(y, scores, weight):
        seen.append((y.shape, scores.shape))
        return 0.5

    # Where all are as good, the simplest is taken.
    model = small(search, scoring=scoring).fit(X, y)
    assert len(seen) == 3 * 2
    assert all(rows == columns for rows, columns in seen)
    assert model.best_index_ == 0


@given(
    st.lists(
        st.tuples(
            st.sampled_from([0.1, 0.5, 0.8, 0.9]), st.sampled_from([0.2, 0.3]), st.integers(0, 3)
        ),
        min_size=1,
        max_size=8,
    ),
    st.sampled_from([0.0, 0.15, 1.0]),
)
def test_the_best_is_the_simplest_of_the_highest_by_the_other_measure_where_given(tried, within):
    means, beside, order = (np.array(column, dtype=float) for column in zip(*tried, strict=True))
    best = best_of(means, order)
    assert means[best] == means.max()
    assert order[best] == order[means == means.max()].min()
    best = best_of(means, order, TieBreaker("", beside, within))
    near = [k for k in range(len(means)) if means[k] >= means.max() - within]
    assert best in near
    assert beside[best] == max(beside[k] for k in near)
    assert order[best] == min(order[k] for k in near if beside[k] == beside[best])


@given(st.integers(1, 4), st.integers(1, 5), st.integers(0, 100))
def test_ranks_are_places_in_the_order_of_means(n_folds, n_tried, seed):
    scores = np.random.default_rng(seed).integers(0, 3, (n_folds, n_tried)) / 2
    table = score_table(scores)
    wanted = [
        1 + sum(other > mean for other in scores.mean(axis=0)) for mean in scores.mean(axis=0)
    ]
    assert table["rank_test_score"].tolist() == wanted


@pytest.mark.parametrize("values", [[], [1.0, -1.0], [1.0, np.nan], "many", [0.0], [True], ["1"]])
@pytest.mark.parametrize("search", [*SEARCHES, RACHCV])
def test_what_is_no_list_of_numbers_to_try_is_refused_by_name(search, values):
    for name in {MIBCCV: ["Cs"], RACHCV: ["widths"]}.get(search, ["lams", "widths"]):
        with pytest.raises(ValueError, match=rf"^{name}=.* must be a list of .*numbers above 0"):
            small(search).set_params(**{name: values}).fit(X, Y)
