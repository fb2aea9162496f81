"""The one search: scorings, the best of many, and what is handed on to the best model."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rareclass import MIBCCV, OrdinalRankRCCV, RankRCCV
from rareclass.estimators.search import TieBreaker, as_scoring, best_of, score_table
from rareclass.metrics import average_precision, mauc

SEARCHES = [RankRCCV, OrdinalRankRCCV, MIBCCV]


def rare_rows(seed=0, n_rows=120):
    rng = np.random.default_rng(seed)
    y = (np.arange(n_rows) < n_rows // 8).astype(int)
    return rng.normal(size=(n_rows, 3)) + 1.2 * y[:, None], y


def small(search, **more):
    grid = {"Cs": [0.1, 1.0]} if search is MIBCCV else {"lams": [1.0, 0.1]}
    return search(**grid, cv=3, **more)


@pytest.mark.parametrize("search", SEARCHES)
def test_every_search_keeps_the_same_results(search):
    X, y = rare_rows()
    model = small(search).fit(X, y)
    results = model.cv_results_
    mean = np.mean([results[f"split{k}_test_score"] for k in range(model.n_splits_)], axis=0)
    np.testing.assert_array_equal(results["mean_test_score"], mean)
    assert model.best_score_ == mean[model.best_index_] == mean.max()
    assert results["rank_test_score"][model.best_index_] == 1
    best = model.best_estimator_
    np.testing.assert_array_equal(model.score_samples(X), best.score_samples(X))
    assert model.n_iter_ == best.n_iter_
    assert best.n_features_in_ == model.n_features_in_ == 3
    shared = set(best.get_params()) & set(model.get_params()) - {"lam", "C", "ridge", "loss"}
    assert all(best.get_params()[name] == model.get_params()[name] for name in shared)


@pytest.mark.parametrize("search", SEARCHES)
def test_without_refit_there_is_no_model(search):
    X, y = rare_rows()
    model = small(search, refit=False).fit(X, y)
    with pytest.raises(AttributeError, match=rf"this {search.__name__} has no best_estimator_"):
        model.score_samples(X)
    assert not hasattr(model, "n_iter_")


@pytest.mark.parametrize("search", SEARCHES)
def test_a_scoring_is_named_or_a_function(search):
    X, y = rare_rows()
    with pytest.raises(ValueError, match="scoring='f1' is not"):
        small(search, scoring="f1").fit(X, y)
    seen = []

    def scoring(y, scores, weight):
        seen.append((y.shape, scores.shape))
        return 0.5

    # Where all are as good, the simplest is taken.
    model = small(search, scoring=scoring).fit(X, y)
    assert len(seen) == 3 * 2
    assert all(rows == columns for rows, columns in seen)
    assert model.best_index_ == 0


def test_scorings_by_name():
    assert as_scoring("average_precision") is average_precision
    assert as_scoring("mauc", {"mauc": mauc}) is mauc
    with pytest.raises(ValueError, match="is not 'mauc' or a function"):
        as_scoring("roc_auc", {"mauc": mauc})
    with pytest.raises(ValueError, match=r"is not one of \['average_precision', 'roc_auc'\]"):
        as_scoring(["roc_auc"])


@given(
    st.lists(st.tuples(st.sampled_from([0.1, 0.5, 0.9]), st.integers(0, 3)), min_size=1, max_size=8)
)
def test_the_best_is_the_simplest_of_the_highest(tried):
    means, order = (np.array(column, dtype=float) for column in zip(*tried, strict=True))
    best = best_of(means, order)
    assert means[best] == means.max()
    assert order[best] == order[means == means.max()].min()


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
def test_between_means_as_good_as_equal_the_other_measure_decides(tried, within):
    means, beside, order = (np.array(column, dtype=float) for column in zip(*tried, strict=True))
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


@pytest.mark.parametrize("search", SEARCHES)
def test_a_list_of_no_folds_is_named(search):
    X, y = rare_rows()
    with pytest.raises(ValueError, match=r"cv=\[\] holds no folds"):
        small(search).set_params(cv=[]).fit(X, y)
