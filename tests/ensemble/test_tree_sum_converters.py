"""What is made of a library's trees scores rows as the library does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from draws import draws
from rareclass.ensemble.members.trees import (
    from_catboost,
    from_forest,
    from_histogram_boosting,
    from_lightgbm,
)


@st.composite
def tables(draw):
    """Training rows of two classes and rows to score, with ties, constants and missing values."""
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, d = draw(st.integers(4, 120)), draw(st.integers(1, 5))
    X = random.normal(size=(n + 60, d))
    digits = draw(st.sampled_from([0, 1, 17]))
    X = np.round(X, digits) if digits < 17 else X * draw(st.sampled_from([1e-6, 1.0, 1e6]))
    is_rare = np.nan_to_num(X[:n, 0]) > np.quantile(X[:n, 0], 0.7)
    is_rare[:2] = True, False
    missing = draw(st.sampled_from(["none", "trained", "scored", "column"]))
    holes = random.random(X.shape) < 0.2
    if missing == "scored":
        holes[:n] = False
    if missing == "column":
        holes[:n, 0] = np.arange(n) > 0
    if missing != "none":
        X[holes] = np.nan
    if draw(st.booleans()):
        X[:, -1] = 1.0
    weight = None if draw(st.booleans()) else random.integers(1, 5, n).astype(float)
    return X[:n], is_rare, weight, np.concatenate([X[n:], X[:n]])


@given(tables(), st.integers(2, 31))
@draws(60)
def test_histogram_boosting(table, leaves):
    X, is_rare, weight, scored = table
    model = HistGradientBoostingClassifier(
        max_iter=5, max_leaf_nodes=leaves, min_samples_leaf=1, early_stopping=False
    ).fit(X, is_rare, sample_weight=weight)
    scores = from_histogram_boosting(model).scores(scored)
    np.testing.assert_allclose(scores, model.decision_function(scored), rtol=1e-9, atol=1e-9)


def test_a_split_by_category_is_refused():
    X = np.tile([[0.0], [1.0], [2.0]], (30, 1))
    model = HistGradientBoostingClassifier(max_iter=1, categorical_features=[0])
    model.fit(X, X[:, 0] == 1)
    with pytest.raises(ValueError, match="category"):
        from_histogram_boosting(model)


@given(tables(), st.sampled_from([ExtraTreesClassifier, RandomForestClassifier]))
@draws(60)
def test_forests(table, kind):
    X, is_rare, weight, scored = table
    model = kind(4, random_state=0).fit(X, is_rare, sample_weight=weight)
    # Half-way between two values of float32, and a step beyond: what rounding decides.
    near = scored.astype(np.float32)
    half_way = (near.astype(float) + np.nextafter(near, np.float32(np.inf)).astype(float)) / 2
    for rows in (scored, half_way, np.nextafter(half_way, np.inf)):
        scores = from_forest(model.estimators_).scores(rows)
        np.testing.assert_allclose(scores, model.predict_proba(rows)[:, 1], atol=1e-9)


@given(tables(), st.integers(2, 31))
@draws(60)
def test_lightgbm(table, leaves):
    lightgbm = pytest.importorskip("lightgbm")
    X, is_rare, weight, scored = table
    parameters = {"objective": "binary", "num_leaves": leaves, "min_data_in_leaf": 1}
    parameters |= {"min_data_in_bin": 1, "num_threads": 1, "verbosity": -1}
    rows = lightgbm.Dataset(X, is_rare.astype(float), weight=weight, params=parameters)
    booster = lightgbm.train(parameters, rows, 5)
    expected = booster.predict(scored, raw_score=True)
    np.testing.assert_allclose(from_lightgbm(booster).scores(scored), expected, rtol=1e-9)


@pytest.mark.parametrize("categories", ["auto", [0]])
def test_other_questions_of_lightgbm_are_refused(categories):
    lightgbm = pytest.importorskip("lightgbm")
    X = np.tile([[0.0], [1.0], [2.0]], (100, 1))
    parameters = {"objective": "binary", "num_threads": 1, "verbosity": -1}
    parameters |= {"min_data_per_group": 1, "cat_smooth": 0.0, "zero_as_missing": True}
    rows = lightgbm.Dataset(X, X[:, 0] == 1.0, params=parameters, categorical_feature=categories)
    with pytest.raises(ValueError, match="plain comparison"):
        from_lightgbm(lightgbm.train(parameters, rows, 2))


@given(tables(), st.integers(1, 7))
@draws(30)
def test_catboost(table, depth):
    catboost = pytest.importorskip("catboost")
    X, is_rare, weight, scored = table
    model = catboost.CatBoostClassifier(
        iterations=5, depth=depth, logging_level="Silent", allow_writing_files=False, thread_count=1
    )
    try:
        model.fit(X, is_rare.astype(int), sample_weight=weight)
    except catboost.CatBoostError:  # no column that varies
        return
    near = scored.astype(np.float32).astype(float)
    for each in (scored, np.nextafter(near, np.inf), np.nextafter(near, -np.inf)):
        expected = model.predict(each, prediction_type="RawFormulaVal")
        scores = from_catboost(model).scores(each)
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-9)
