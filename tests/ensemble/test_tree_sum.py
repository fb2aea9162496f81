"""A sum of trees scores rows as walking through them does, and as the library that grew them."""

from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)

from draws import draws
from rareclass.ensemble import tree_sum
from rareclass.ensemble._tree_sum_jit import MASKED_LEAVES
from rareclass.ensemble.members.trees import (
    from_catboost,
    from_forest,
    from_histogram_boosting,
    from_lightgbm,
)
from rareclass.ensemble.tree_sum import Tree, TreeSum, before_rounding
from rareclass.model.model_file import check_parts

N_FEATURES = 3


def random_tree(random, n_leaves):
    """Leaves of a growing tree are split at random; nodes are numbered as they are made."""
    n = 2 * n_leaves - 1
    left, right = np.full(n, -1), np.full(n, -1)
    leaves = [0]
    for made in range(1, n, 2):
        node = leaves.pop(random.integers(len(leaves)))
        left[node], right[node] = random.permutation([made, made + 1])
        leaves += [made, made + 1]
    return Tree(
        random.integers(N_FEATURES, size=n),
        random.integers(-3, 4, size=n) / 2,
        left,
        right,
        random.random(n) < 0.5,
        random.normal(size=n),
    )


def level_tree(random, depth):
    """All splits of a level ask the same; nodes are numbered level by level."""
    level = np.repeat(np.arange(depth + 1), 2 ** np.arange(depth + 1))
    node, is_leaf = np.arange(len(level)), level == depth
    return Tree(
        random.integers(N_FEATURES, size=depth + 1)[level],
        (random.integers(-3, 4, size=depth + 1) / 2)[level],
        np.where(is_leaf, -1, 2 * node + 1),
        np.where(is_leaf, -1, 2 * node + 2),
        (random.random(depth + 1) < 0.5)[level],
        random.normal(size=len(level)),
    )


def with_edges(tree, random):
    n = len(tree.threshold)
    odd = np.array([np.inf, -np.inf, before_rounding(np.array([0.1]))[0]])
    edges = np.where(random.random(n) < 0.2, random.choice(odd, n), tree.threshold)
    return tree._replace(threshold=edges)


def walked(tree, x):
    node = 0
    while tree.left[node] >= 0:
        value = x[tree.feature[node]]
        if np.isnan(value):
            goes_left = tree.missing_goes_left[node]
        else:
            goes_left = value <= tree.threshold[node]
        node = (tree.left if goes_left else tree.right)[node]
    return tree.value[node]


def random_rows(random, n_rows, missing=0.1):
    X = random.integers(-4, 5, size=(n_rows, N_FEATURES)) / 2  # ties with the thresholds
    edge = before_rounding(np.array([0.1]))[0]
    odd = [np.inf, -np.inf, -0.0, edge, np.nextafter(edge, np.inf)]
    X = np.where(random.random(X.shape) < 0.1, random.choice(odd, X.shape), X)
    X[random.random(X.shape) < missing] = np.nan
    return X


leaf_counts = st.lists(
    st.sampled_from([1, 2, 3, 15, 16, 17, 33, 64, MASKED_LEAVES, MASKED_LEAVES + 1, 200]),
    max_size=5,
)
ALWAYS_PREPARED = {"_FEW_ROWS": 0, "_ROWS_A_TREE": 0, "_ROWS_A_SPLIT": 0}
limits = st.sampled_from(
    [{"_MOST_TILES": 1}, {"MOST_CUTS": 70}, {"MOST_SPLITS": 40}, {"MOST_FEATURES": 1}]
).map(lambda limit: limit | ALWAYS_PREPARED) | st.sampled_from([{"_FEW_ROWS": 70}])


@given(
    leaf_counts,
    st.lists(st.integers(1, 8), max_size=2),
    limits,
    st.integers(0, 2**32),
    st.sampled_from([0.0, 0.2]),
)
@draws(100)
def test_scores_are_the_values_of_leaves(counts, depths, limits, seed, missing):
    random = np.random.default_rng(seed)
    trees = [with_edges(random_tree(random, count), random) for count in counts]
    trees += [level_tree(random, depth) for depth in depths]
    random.shuffle(trees)
    X = random_rows(random, 70, missing)
    expected = [2.5 + sum(walked(tree, x) for tree in trees) for x in X]
    with mock.patch.multiple(tree_sum, **limits):
        scores = TreeSum.of(trees, 2.5).scores(X)
    np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_more_thresholds_and_splits_than_sixteen_bits_can_number():
    random = np.random.default_rng(0)
    trees = [level_tree(random, 15) for _ in range(4)] + [random_tree(random, 5)]
    trees = [
        tree._replace(feature=0 * tree.feature, threshold=random.normal(size=len(tree.left)))
        for tree in trees
    ]
    X = random.normal(size=(20, 1))
    expected = [sum(walked(tree, x) for tree in trees) for x in X]
    with mock.patch.multiple(tree_sum, **ALWAYS_PREPARED):
        np.testing.assert_allclose(TreeSum.of(trees).scores(X), expected, atol=1e-12)


@pytest.mark.parametrize(("n_calls", "is_prepared"), [(1, False), (20, True)])
def test_trees_are_prepared_once_many_rows_have_been_scored(n_calls, is_prepared):
    random = np.random.default_rng(0)
    function = TreeSum.of([random_tree(random, 9) for _ in range(3)])
    X = random_rows(random, 50, missing=0.0)
    for _ in range(n_calls):
        function.scores(X)
    assert ("_prepared" in vars(function)) == is_prepared


def test_rows_one_by_one_in_blocks_and_in_threads_score_the_same():
    random = np.random.default_rng(0)
    trees = [random_tree(random, count) for count in (2, 40, 64, 90, 300)]
    function = TreeSum.of([*trees, level_tree(random, 6)])
    X = random_rows(random, 9001)
    whole = function.scores(X)
    np.testing.assert_array_equal(whole, function.scores(X, n_jobs=2))
    np.testing.assert_array_equal(whole[4090:4100], function.scores(X[4090:4100]))
    np.testing.assert_array_equal(whole[:1], function.scores(X[:1]))
    assert function.scores(X[:0]).shape == (0,)
    complete = np.isfinite(X).all(axis=1)
    np.testing.assert_array_equal(whole[complete], function.scores(X[complete]))
    with mock.patch.multiple(tree_sum, _TILE_BYTES=1, _BLOCK_ROWS=1000):
        np.testing.assert_array_equal(whole, function.scores(X))


def test_rows_may_be_sparse_or_of_float32_or_stored_by_column():
    random = np.random.default_rng(0)
    function = TreeSum.of([random_tree(random, count) for count in (10, 90)])
    X = random_rows(random, 50)
    expected = function.scores(X)
    for other in (sparse.csr_array(X), X.astype(np.float32), np.asfortranarray(X)):
        np.testing.assert_array_equal(function.scores(other), expected)


@given(st.lists(leaf_counts, min_size=1, max_size=3), st.integers(0, 2**32))
@draws(20)
def test_mean_of_functions_scores_their_mean(counts, seed):
    random = np.random.default_rng(seed)
    functions = [
        TreeSum.of([random_tree(random, count) for count in each], random.normal())
        for each in counts
    ]
    X = random_rows(random, 30)
    expected = np.mean([function.scores(X) for function in functions], axis=0)
    np.testing.assert_allclose(TreeSum.mean_of(functions).scores(X), expected, atol=1e-12)


def test_splits_that_part_missing_values_from_all_others_are_sound():
    """scikit-learn writes them with an infinite threshold: a model file that holds one is whole."""
    random = np.random.default_rng(0)
    X = random.normal(size=(400, 2))
    X[random.random(400) < 0.3, 0] = np.nan
    model = HistGradientBoostingClassifier(max_iter=3).fit(X, np.isnan(X[:, 0]))
    function = from_histogram_boosting(model)
    assert np.isinf(function.threshold).any()
    check_parts(function)
    np.testing.assert_allclose(function.scores(X), model.decision_function(X))
    function.threshold[0] = np.nan
    with pytest.raises(ValueError, match="a threshold is not a number"):
        check_parts(function)


def test_a_split_or_leaf_of_two_parents_is_refused():
    for node in (0, -1):
        function = TreeSum.of([level_tree(np.random.default_rng(0), 3)])
        function.check_parts()
        function.left[node] = function.right[node]
        with pytest.raises(ValueError, match="exactly one split"):
            function.check_parts()


@given(st.floats(-1e38, 1e38) | st.floats(-(2.0**120), 2.0**120, width=32), st.integers(-3, 3))
@draws(200)
def test_thresholds_before_rounding_split_as_after_it(threshold, steps):
    with np.errstate(over="ignore"):
        near = np.float32(threshold)
        half_way = (float(near) + float(np.nextafter(near, np.float32(np.inf)))) / 2
    for x in (threshold, half_way, float(near)):
        for _ in range(abs(steps)):
            x = float(np.nextafter(x, np.inf if steps > 0 else -np.inf))
        rounded = np.float32(x)
        assert (x <= before_rounding(np.array([threshold]))[0]) == (float(rounded) <= threshold)


@st.composite
def tables(draw):
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
