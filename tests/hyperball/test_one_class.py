"""The one-class ball against what is known of it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import OneClassSVM

from draws import draws
from rareclass.hyperball.problem import Points
from rareclass.hyperball.solver import one_class_center


def points_of(X, residual=None):
    X = np.asarray(X, float)
    return Points(X, np.zeros(len(X)) if residual is None else residual)


@draws(80)
@given(st.integers(0, 10**6), st.integers(1, 40), st.sampled_from([0.01, 0.2, 0.5, 0.9, 1.0]))
def test_at_most_nu_of_the_weight_is_outside_and_at_most_the_rest_inside(seed, n, nu):
    rng = np.random.default_rng(seed)
    points = points_of(np.round(rng.normal(size=(n, 2)), 1) + 50.0)
    weight = rng.choice([0.0, 1.0, 2.5], n)
    weight[0] = 1.0
    center, squared_radius = one_class_center(points, weight, nu)
    distances = points.squared_distances(center)
    blur = 1e-6 * (1 + squared_radius)
    assert weight[distances > squared_radius + blur].sum() <= nu * weight.sum() * (1 + 1e-9)
    assert weight[distances < squared_radius - blur].sum() <= (1 - nu) * weight.sum() + 1e-9
    assert 0.0 <= squared_radius <= distances.max() + blur


def test_all_rows_inside_is_the_smallest_enclosing_ball():
    rng = np.random.default_rng(0)
    angle = rng.uniform(0, 2 * np.pi, 30)
    inner = 0.9 * rng.uniform(-0.7, 0.7, (50, 2))
    X = np.vstack([np.column_stack([np.cos(angle), np.sin(angle)]), inner]) * 3 + [5.0, -2.0]
    center, squared_radius = one_class_center(points_of(X), np.ones(80), nu=0.001)
    np.testing.assert_allclose(center, [5.0, -2.0], atol=1e-6)
    np.testing.assert_allclose(squared_radius, 9.0, rtol=1e-6)


def test_nu_of_1_is_the_weighted_mean():
    X = np.array([[0.0, 1.0], [4.0, 0.0], [2.0, 8.0]])
    center, _ = one_class_center(points_of(X), np.array([1.0, 2.0, 1.0]), nu=1.0)
    np.testing.assert_allclose(center, [2.5, 2.25])


def test_weight_counts_like_copies_and_0_like_absence():
    rng = np.random.default_rng(1)
    X, weight = rng.normal(size=(20, 3)), rng.integers(0, 4, 20)
    center, squared_radius = one_class_center(points_of(X), weight, 0.3)
    copies = points_of(np.repeat(X, weight, axis=0))
    other, other_radius = one_class_center(copies, np.ones(weight.sum()), 0.3)
    np.testing.assert_allclose(other, center, atol=1e-6)
    np.testing.assert_allclose(other_radius, squared_radius, rtol=1e-6)


def test_single_row_is_its_own_ball():
    center, squared_radius = one_class_center(points_of([[3.0, 4.0], [9.0, 9.0]]), np.array([2, 0]))
    assert center.tolist() == [3.0, 4.0]
    assert squared_radius == 0.0


def test_with_a_kernel_it_is_the_one_class_support_vector_machine():
    rng = np.random.default_rng(2)
    X, nu = rng.normal(size=(40, 2)), 0.35
    K = np.exp(-((X[:, None] - X) ** 2).sum(axis=2) / 2)
    values, vectors = np.linalg.eigh(K)
    points = points_of(vectors * np.sqrt(np.maximum(values, 0)))
    center, squared_radius = one_class_center(points, np.ones(40), nu)
    machine = OneClassSVM(kernel="precomputed", nu=nu, tol=1e-10).fit(K)
    dual = np.zeros(40)
    dual[machine.support_] = machine.dual_coef_[0] / machine.dual_coef_.sum()
    np.testing.assert_allclose(points.features.T @ dual, center, atol=1e-4)
    depth = squared_radius - points.squared_distances(center)
    score = machine.decision_function(K)
    np.testing.assert_allclose(depth / np.abs(depth).max(), score / np.abs(score).max(), atol=1e-3)


@pytest.mark.parametrize(
    ("weight", "nu", "message"),
    [([1, 1], 0.0, "nu is 0"), ([1, 1], 1.5, "nu is 1.5"), ([0, 0], 0.5, "No row")],
)
def test_nothing_to_enclose_is_said(weight, nu, message):
    with pytest.raises(ValueError, match=message):
        one_class_center(points_of(np.eye(2)), np.array(weight), nu)
