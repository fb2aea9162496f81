"""The ball against Problem 1, its dual, the paper's loop, itself moved about; one-class balls."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.svm import OneClassSVM

from draws import draws
from oracles.hyperball import (
    ball_problem,
    dual_of_problem_1,
    problem_1_on_a_grid,
    problem_1_value,
    problem_2_by_slsqp,
    random_problem,
)
from rareclass.findings import Status
from rareclass.hyperball import solver
from rareclass.hyperball.problem import BallDual, BallProblem, Points, ShiftedRows, best_radius
from rareclass.hyperball.solver import ascend, one_class_center, solve_ball

TOL = 1e-6
PRICES = 10.0 ** np.arange(-6, 7)


@st.composite
def problems(
    draw, most=24, prices=PRICES, scales=(-6, 6), offsets=(0.0, 0.0, 1.0, 100.0), stretched=True
):
    """Ties, duplicates, one rare row or none, no majority, no unlabelled, any prices and scale."""
    rng = np.random.default_rng(draw(st.integers(0, 10**6)))
    n, p = draw(st.integers(1, most)), draw(st.integers(1, 4))
    n_rare = draw(st.integers(0, min(3, n)))
    n_majority = draw(st.integers(0, n - max(n_rare, 1)))
    X = rng.normal(size=(n, p))
    if draw(st.booleans()):
        X = np.round(X)
    if draw(st.booleans()):
        X = X[rng.integers(0, n, n)]
    if stretched and draw(st.booleans()):
        X *= np.logspace(0, -draw(st.integers(1, 4)), p)
    signs = np.ones(n)
    signs[n_rare : n_rare + n_majority] = -1
    C1, C2 = draw(st.sampled_from(prices)), draw(st.sampled_from(prices))
    price = np.where(signs < 0, C1, C2) * rng.choice([0.5, 1.0, 1.0, 3.0], n)
    price[:n_rare] = np.inf
    worth = price[signs > 0].sum()
    if worth < 1:
        price[signs > 0] *= draw(st.sampled_from([1.0, 1.5])) / worth
    scale = 10.0 ** draw(st.integers(*scales))
    residual = rng.exponential(size=n) if draw(st.booleans()) else np.zeros(n)
    X = scale * (X + draw(st.sampled_from(offsets)))
    return BallProblem(Points(X, scale**2 * residual), signs, price)


def start_of(problem):
    return problem.points.features[problem.signs > 0].mean(axis=0)


def blur(problem, solution):
    """What rounding may make of the objective: the centre's digits, times the prices."""
    eps, finite = np.finfo(float).eps, np.isfinite(problem.price)
    size = problem.points.squared_distances(solution.center).max() + solution.center @ (
        solution.center
    )
    near = np.sqrt(max(solution.squared_radius, 0.0) * size) + 1e3 * eps * size
    return 50 * eps * (near * (1 + problem.price[finite].sum()) + size)


def assert_true(problem, solution, tol=TOL):
    """Objective, gap, bounds and path, all from scratch."""
    price, multipliers = problem.price, solution.multipliers
    assert ((multipliers >= 0) & (multipliers <= price)).all()
    off = blur(problem, solution)
    objective = problem_1_value(problem, solution.center, solution.squared_radius)
    assert abs(objective - solution.objective) <= 1e-8 * objective + off
    hard = np.isinf(price)
    if hard.any():
        outside = problem.points.squared_distances(solution.center)[hard].max()
        assert outside <= solution.squared_radius * (1 + 1e-8) + off
    value, total = dual_of_problem_1(problem, multipliers, solution.center)
    assert abs(total - 1) <= 1e-12 * (1 + multipliers.sum())
    assert value <= objective * (1 + 1e-9) + off
    if solution.status == Status.CONVERGED:
        assert solution.gap <= tol
        assert objective - value <= tol * (1 + 1e-3) * objective + off
    assert (np.diff(solution.objective_path) <= 0).all()
    assert len(solution.objective_path) == solution.n_outer + 1
    assert solution.objective_path[-1] == solution.objective


@pytest.mark.sampled(0)
@draws(300)
@given(problems())
def test_dual_meets_problem_1_whatever_the_rows_and_prices(problem):
    solution = solve_ball(problem, start_of(problem))
    assert solution.status == Status.CONVERGED
    assert_true(problem, solution)


# The best centres lie on a narrow ridge across the axes of the grid.
ON_A_RIDGE = BallProblem(
    Points(
        np.array(
            [
                [-1.63707949, -0.06084642, -0.02815841, -0.00173591],
                [1.64779656, -0.00800415, 0.02648523, 0.00263777],
                [-0.44737055, -0.22195513, -0.02491496, -0.01105775],
            ]
        ),
        np.array([0.15567218, 1.7730702, 0.06555889]),
    ),
    np.array([1.0, 1.0, -1.0]),
    np.array([np.inf, np.inf, 15.0]),
)


@draws(25)
@given(problems(most=6, prices=[1e-2, 0.3, 1.0, 5.0], scales=(0, 0), offsets=(0.0,)))
@example(ON_A_RIDGE)
def test_no_ball_on_a_grid_is_better(problem):
    points = problem.points
    if points.features.shape[1] > 2:
        problem = problem._replace(points=Points(points.features[:, :2], points.residual))
    solution = solve_ball(problem, start_of(problem), tol=1e-10)
    spread = np.ptp(problem.points.features, axis=0).max() + 1.0
    least, center = problem_1_on_a_grid(problem, 2 * spread)
    assert solution.objective <= least * (1 + 1e-9) + 1e-12
    if np.abs(solution.center - problem.points.features.mean(axis=0)).max() < 2 * spread:
        assert least <= solution.objective * (1 + 1e-3) + 1e-3
        np.testing.assert_allclose(center, solution.center, atol=0.1 * spread)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("seed", range(6))
def test_the_papers_loop_leads_to_the_same_ball(seed):
    """Algorithm 4: the problem linearised at the centre gives the next centre."""
    problem = random_problem(seed, 30, 2, n_majority=8, C1=0.05 * (1 + seed), C2=0.2)
    solution = solve_ball(problem, start_of(problem), tol=1e-10)
    center, path = start_of(problem), []
    for _ in range(40):
        _, center = problem_2_by_slsqp(problem, center)
        distances = problem.points.squared_distances(center)
        path.append(best_radius(distances, problem.signs, problem.price).objective)
    assert solution.objective <= min(path) * (1 + 1e-9)
    assert min(path) == pytest.approx(solution.objective, rel=1e-3)
    assert (np.diff(path) <= 1e-6 * path[0]).all()


@pytest.mark.parametrize("seed", range(4))
def test_start_does_not_matter(seed):
    problem = random_problem(seed)
    rng = np.random.default_rng(seed)
    one = solve_ball(problem, start_of(problem), tol=1e-10)
    far = solve_ball(problem, rng.normal(size=5) * 1e3, tol=1e-10)
    warm = solve_ball(problem, one.center, one.multipliers, tol=1e-10)
    wild = solve_ball(problem, one.center, rng.exponential(size=120), tol=1e-10)
    for other in (far, warm, wild):
        np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9)
        np.testing.assert_allclose(other.center, one.center, atol=1e-4)
        assert_true(problem, other)
    assert warm.n_inner == 0


@pytest.mark.parametrize("seed", range(3))
def test_residual_is_a_coordinate_of_its_own_for_each_row(seed):
    problem = random_problem(seed, n=40)
    residual = np.random.default_rng(seed).exponential(size=40)
    # The centre cannot go there: its own coordinates of this kind are held at 0 by no one, so a
    # reflected twin of each row, with half the price, does it.
    X = problem.points.features
    own = np.diag(np.sqrt(residual))
    twins = np.vstack([np.hstack([X, own]), np.hstack([X, -own])])
    doubled = ball_problem(twins, np.tile(problem.signs, 2), np.tile(problem.price / 2, 2))
    one = solve_ball(problem._replace(points=Points(X, residual)), start_of(problem), tol=1e-11)
    other = solve_ball(doubled, np.zeros(45), tol=1e-11)
    np.testing.assert_allclose(other.center[:5], one.center, atol=1e-4)
    np.testing.assert_allclose(other.center[5:], 0.0, atol=1e-4)
    np.testing.assert_allclose(other.objective, one.objective, rtol=1e-9)


def test_sparse_rows_give_the_ball_of_dense_ones():
    for p in (5, 300):  # fewer and more columns than rows
        rng = np.random.default_rng(p)
        X = rng.normal(size=(90, p)) * (rng.random((90, p)) < 0.3)
        signs, price = np.ones(90), np.full(90, 0.05)
        signs[60:], price[60:], price[:3] = -1, 1.0, np.inf
        problem = ball_problem(X, signs, price)
        thin = problem._replace(points=Points(sparse.csr_array(X), np.zeros(90)))
        one = solve_ball(problem, np.zeros(p), tol=1e-10)
        other = solve_ball(thin, np.zeros(p), tol=1e-10)
        assert one.status == other.status == Status.CONVERGED
        np.testing.assert_allclose(other.objective, one.objective, rtol=1e-8)
        np.testing.assert_allclose(other.center, one.center, atol=1e-4)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("thin", [False, True])
@pytest.mark.parametrize("p", [3, 60])
def test_interior_point_on_some_rows_leads_there_too(p, thin, monkeypatch):
    """Few rows at a time, in full and in reduced coordinates, and hardly any ascent."""
    monkeypatch.setattr(solver, "_ROWS", 40)
    monkeypatch.setattr(solver, "_TIMES", 0)
    monkeypatch.setattr(solver, "_FEW_PRODUCTS", 0.0)
    monkeypatch.setattr(solver, "_ASCENT_STEPS", 10)
    problem = random_problem(1, n=400, p=p, C1=3.0, C2=0.02)
    wanted = solve_ball(problem, start_of(problem), tol=1e-10)
    if thin:
        rows = sparse.csr_array(problem.points.features)
        problem = problem._replace(points=Points(rows, problem.points.residual))
    solution = solve_ball(problem, np.zeros(p), tol=1e-10)
    assert solution.n_outer <= 4
    assert solution.status == wanted.status == Status.CONVERGED
    np.testing.assert_allclose(solution.objective, wanted.objective, rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_like_rows_on_both_sides_of_the_sphere_at_high_prices(seed):
    """Their multipliers could grow together for ever."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(300, 10))[rng.integers(0, 40, 300)], 1) + 1.0
    X[:150] *= 100.0
    signs = np.where((np.arange(300) > 1) & (np.arange(300) < 152), -1.0, 1.0)
    price = np.where(signs < 0, 1e6, 0.1) * rng.choice([0.5, 1.0, 2.0], 300)
    price[:2] = np.inf
    problem = ball_problem(X, signs, price)
    solution = solve_ball(problem, X[0])
    assert solution.status == Status.CONVERGED
    assert_true(problem, solution)


def test_ascent_starts_anew_where_it_has_turned():
    """Momentum alone goes up and down the sides of a valley: 2,000 steps in place of 320."""
    problem = random_problem(1, n=300, p=20, C2=0.05, n_majority=60)
    dual = BallDual(ShiftedRows(problem), np.zeros(20))
    found = ascend(dual, dual.first_multipliers(), 1e-10, 700)
    assert found.optimality.gap <= 1e-10


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
def test_one_rare_row_alone_is_its_own_ball(scale):
    row = np.array([[3.0, -1.0]]) * scale
    solution = solve_ball(ball_problem(row, [1], [np.inf]), np.zeros(2))
    assert solution.status == Status.CONVERGED
    np.testing.assert_array_equal(solution.center, row[0])
    assert solution.squared_radius == 0.0


def test_of_several_best_radii_the_smallest_is_taken():
    value = best_radius(np.arange(1.0, 12.0), np.ones(11), np.full(11, 0.1))
    assert value.squared_radius == 1.0  # 0.1 times the ten others is the 1 that R^2 costs
    assert value.objective == pytest.approx(1.0 + 0.1 * np.arange(11).sum())
    hard = best_radius(np.array([1.0, 5.0, 2.0]), np.ones(3), np.array([0.6, np.inf, 0.6]))
    assert hard.squared_radius == 5.0


def test_steps_run_out_and_say_so():
    problem = random_problem(0, C1=50.0)
    solution = solve_ball(problem, np.full(5, 30.0), tol=1e-12, max_outer=1, max_inner=1)
    assert solution.status == Status.MAX_ITER
    assert solution.gap > 1e-12
    assert_true(problem, solution)


def test_gap_that_doubles_cannot_close_is_left_to_rounding():
    problem = random_problem(0)
    solution = solve_ball(problem, np.zeros(5), tol=0.0)
    assert solution.status in (Status.ROUNDING, Status.CONVERGED)
    assert solution.gap <= 1e-13


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


def test_nothing_to_enclose_is_said():
    with pytest.raises(ValueError, match="No row"):
        one_class_center(points_of(np.eye(2)), np.zeros(2))
