"""Functions of plain arrays: the expansion, the line, their means, and rows that are far."""

import copy
from contextlib import nullcontext
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from draws import draws
from ensemble.test_tree_sum import random_tree
from rareclass.ensemble import score_functions
from rareclass.ensemble.score_functions import (
    KernelFunction,
    LinearFunction,
    MeanFunction,
    mean_function,
    scores_of,
)
from rareclass.ensemble.tree_sum import TreeSum
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import make_kernel


@st.composite
def expansions(draw):
    random = np.random.default_rng(draw(st.integers(0, 2**32)))
    n_landmarks, n_features = draw(st.integers(1, 12)), draw(st.integers(1, 5))
    kernel = draw(st.sampled_from(["gaussian", "laplace"]))
    width = float(random.uniform(0.5, 3.0))
    landmarks = random.normal(size=(n_landmarks, n_features))
    coefficients = random.normal(size=(2, n_landmarks)) * 10.0 ** random.integers(-3, 4)
    X = random.normal(size=(draw(st.integers(0, 300)), n_features))
    return kernel, width, landmarks, coefficients, X


def plain(kernel, width, landmarks, coefficients, X):
    return make_kernel(kernel, width).block(X, landmarks.astype(np.float32).astype(float)) @ (
        coefficients
    )


@given(expansions())
@draws(30)
def test_settings_of_one_member_share_their_kernel_matrix(parts):
    kernel, width, landmarks, coefficients, X = parts
    one, other = (KernelFunction(kernel, width, landmarks, each) for each in coefficients)
    other.least, other.most = 1.0, 0.0
    apart = KernelFunction(kernel, 2.0 * width, landmarks, coefficients[0])
    line = LinearFunction(np.ones(X.shape[1]))
    functions = [one, line, other, apart]
    with mock.patch.object(
        KernelExpansion, "matrix", autospec=True, side_effect=KernelExpansion.matrix
    ) as made:
        found = scores_of(functions, X)
    n_blocks = -(-len(X) // (score_functions._BLOCK_ENTRIES // len(landmarks)))
    assert made.call_count == 2 * n_blocks
    for function, scores in zip(functions, found, strict=True):
        np.testing.assert_array_equal(scores, function.scores(X))


@given(expansions())
@draws(60)
def test_a_kernel_function_is_its_expansion_in_any_number_of_threads(parts):
    kernel, width, landmarks, (coefficients, _), X = parts
    function = KernelFunction(kernel, width, landmarks, coefficients)
    expected = plain(kernel, width, landmarks, coefficients, X)
    # Beside a landmark the root of a squared distance that cancels has half of the digits.
    atol = (1e-5 if kernel == "gaussian" else 2e-3) * np.abs(coefficients).sum()
    scores = function.scores(X)
    assert scores.shape == (len(X),)
    np.testing.assert_allclose(scores, expected, atol=atol)
    with mock.patch.object(score_functions, "_BLOCK_ENTRIES", 64):
        np.testing.assert_array_equal(function.scores(X, 1), function.scores(X, 2))


@given(expansions(), st.booleans())
@draws(40)
def test_the_mean_of_kernel_functions_is_one(parts, same_landmarks):
    kernel, width, landmarks, coefficients, X = parts
    first = KernelFunction(kernel, width, landmarks, coefficients[0])
    second = KernelFunction(kernel, width, landmarks[::-1], coefficients[1])
    if same_landmarks:
        second = copy.copy(first)
        second.coefficients = coefficients[1]
    mean = KernelFunction.mean_of([first, second])
    assert len(mean.landmarks) == len(landmarks) * (1 if same_landmarks else 2)
    expected = (first.scores(X) + second.scores(X)) / 2
    np.testing.assert_allclose(mean.scores(X), expected, atol=1e-5 * np.abs(coefficients).sum())
    alone = KernelFunction.mean_of([first])
    np.testing.assert_array_equal(alone.scores(X), first.scores(X))


def test_functions_of_different_kernels_have_no_mean():
    one = KernelFunction("gaussian", 1.0, np.eye(2), np.ones(2))
    for other in (
        KernelFunction("gaussian", 2.0, np.eye(2), np.ones(2)),
        KernelFunction("laplace", 1.0, np.eye(2), np.ones(2)),
    ):
        with pytest.raises(ValueError, match="no common expansion"):
            KernelFunction.mean_of([one, other])
        X = np.random.default_rng(0).normal(size=(9, 2))
        mean = mean_function([one, other])
        assert isinstance(mean, MeanFunction)
        np.testing.assert_array_equal(mean.scores(X), (one.scores(X) + other.scores(X)) / 2)
        with_others = mean_function([mean, MeanFunction([one, one])])
        expected = (3 * one.scores(X) + other.scores(X)) / 4
        np.testing.assert_allclose(with_others.scores(X), expected, rtol=1e-6)


def functions_of(kind, n_features, random):
    if kind == "linear":
        return [LinearFunction(random.normal(size=n_features), 0.3) for _ in range(2)]
    if kind == "trees":
        trees = [random_tree(random, 5) for _ in range(6)]
        trees = [each._replace(feature=each.feature % n_features) for each in trees]
        return [TreeSum.of(trees[:3], 0.3), TreeSum.of(trees[3:])]
    landmarks = (random.normal(size=(4, n_features)) for _ in range(2))
    return [KernelFunction("laplace", 1.0, Z, random.normal(size=4), 0.1) for Z in landmarks]


@given(st.sampled_from(["linear", "trees", "kernel"]), st.integers(0, 2**32))
@draws(60)
def test_a_function_at_some_features_of_rows_of_more(kind, seed):
    """By a function of the features alone, whatever the others are."""
    random = np.random.default_rng(seed)
    n_features = random.integers(1, 4)
    wide = n_features + random.integers(0, 4)
    places = [random.permutation(wide)[:n_features] for _ in range(2)]
    functions = functions_of(kind, n_features, random)
    X = random.normal(size=(20, wide))
    within = [each.at(own, wide) for each, own in zip(functions, places, strict=True)]
    expected = [each.scores(X[:, own]) for each, own in zip(functions, places, strict=True)]
    rows = X.copy()
    rows[:, np.setdiff1d(np.arange(wide), places[0])] *= -7.0
    np.testing.assert_allclose(within[0].scores(rows), expected[0], rtol=1e-6, atol=1e-9)
    for function, scores in zip(within, expected, strict=True):
        np.testing.assert_allclose(function.scores(X), scores, rtol=1e-6, atol=1e-9)
        function.check_parts()
    # The mean of functions at other features, and such a mean at features of yet wider rows.
    mean = mean_function(within)
    assert isinstance(mean, MeanFunction) == (kind == "kernel")
    np.testing.assert_allclose(mean.scores(X), np.mean(expected, axis=0), rtol=1e-5, atol=1e-6)
    for function, scores in zip(within, scores_of(within, X), strict=True):
        np.testing.assert_allclose(scores, function.scores(X), rtol=1e-6)
    if kind != "kernel":
        return
    plain = MeanFunction(functions)
    own = places[0]
    np.testing.assert_array_equal(plain.at(own, wide).scores(X), plain.scores(X[:, own]))


def test_kernel_functions_at_the_same_features_stay_one_expansion():
    random = np.random.default_rng(0)
    features, X = np.array([2, 0]), random.normal(size=(9, 4))
    one, other = (each.at(features, 4) for each in functions_of("kernel", 2, random))
    mean = mean_function([one, other])
    assert isinstance(mean, KernelFunction)
    np.testing.assert_allclose(mean.scores(X), (one.scores(X) + other.scores(X)) / 2, rtol=1e-5)


def test_a_row_that_is_far_from_all_landmarks_scores_no_more_than_the_majority():
    landmarks = np.array([[0.0], [1.0]])
    function = KernelFunction("gaussian", 0.5, landmarks, np.array([-1.0, -1.0]))
    far = np.array([[9.0], [-9.0], [1e30]])
    np.testing.assert_array_equal(function.scores(far), 0.0)  # more than any row that is near
    function.least, function.most = 0.5, -0.9
    np.testing.assert_allclose(function.scores(far), -0.9)
    np.testing.assert_allclose(function.scores(np.array([[0.0]])), -1.0 - np.exp(-4.0), rtol=1e-6)
    # A row between the two scores less than that anyway.
    function.coefficients = np.array([-90.0, -90.0])
    assert function.scores(np.array([[1.9]]))[0] < -0.9
    mean = KernelFunction.mean_of([function, copy.copy(function)])
    np.testing.assert_allclose(mean.scores(far), -0.9)
    apart = KernelFunction("gaussian", 0.5, landmarks, np.array([-1.0, -1.0]), 0.5, -0.7)
    np.testing.assert_allclose(KernelFunction.mean_of([function, apart]).scores(far), -0.8)


def test_a_linear_function_takes_dense_and_sparse_rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(20, 4)) * (random.random((20, 4)) < 0.5)
    one, two = LinearFunction(random.normal(size=4), 0.5), LinearFunction(random.normal(size=4))
    for rows in (X, sparse.csr_array(X), sparse.csr_matrix(X)):
        np.testing.assert_allclose(one.scores(rows), X @ one.weights + 0.5)
        mean = LinearFunction.mean_of([one, two])
        np.testing.assert_allclose(mean.scores(rows), (one.scores(X) + two.scores(X)) / 2)
    assert isinstance(mean.intercept, float)


@pytest.mark.parametrize(
    ("part", "value", "is_sound"),
    [
        ("width", 1e-9, True),
        ("width", 0.0, False),
        ("width", -1.0, False),
        ("width", np.nan, False),
        ("coefficients", np.ones(3), True),
        ("coefficients", np.ones(2), False),
        ("coefficients", np.ones(3, int), False),
        ("features", np.array([4, 0]), True),
        ("features", np.array([1, 0, 2]), False),
    ],
)
def test_parts_that_do_not_fit_each_other_are_refused(part, value, is_sound):
    function = KernelFunction("gaussian", 1.0, np.zeros((3, 2)), np.zeros(3))
    setattr(function, part, value)
    with nullcontext() if is_sound else pytest.raises(ValueError, match=part):
        function.check_parts()
