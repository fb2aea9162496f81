"""The dual of MIBC against exact solutions, its own optimality conditions, and itself."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import sparse
from scipy.optimize import linprog

from draws import draws
from oracles.dual import box_qp_by_faces, box_qp_by_least_squares, dual_value, nearest_in_hull
from rareclass.errors import InputError
from rareclass.moments import box_qp, dual
from rareclass.moments.box_qp import BoxQP, interior_point, solve_box_qp, to_face
from rareclass.moments.dual import DualProblem, RareRows, dense_rows, solve_dual

CS = 10.0 ** np.arange(-4, 6)
EXACT = 1e-12


def overlapping(n, p, condition=1.0, shift=1.0, seed=0):
    """Rare rows around a mean not far from the majority's, of very different column scales."""
    rng = np.random.default_rng(seed)
    scales = np.logspace(0, -np.log10(condition), p)
    return rng.normal(size=(n, p)) * scales + shift / np.sqrt(p) * rng.normal(size=p)


def check_optimality(rows, Z, upper, solution, tol):
    """The gap, in extended precision, is the one reported; so are all the other parts."""
    alpha, long = solution.alpha, np.longdouble
    assert (alpha >= 0).all()
    assert (alpha <= upper).all()
    u = Z.astype(long).T @ alpha
    s = Z.astype(long) @ u
    primal = u @ u / 2 + upper @ np.maximum(1 - s, 0)
    gap = float((primal - (alpha.astype(long).sum() - u @ u / 2)) / primal)
    np.testing.assert_allclose(solution.objective, float(primal), rtol=1e-7)
    assert gap <= tol * (1 + 1e-6) + 1e-9
    assert abs(gap - solution.gap) <= 1e-8
    np.testing.assert_allclose(solution.dense_part, rows.left.T @ alpha, rtol=1e-9, atol=1e-9)


@st.composite
def small_problems(draw):
    """Up to six rows of few different numbers: zeros, duplicates, collinear and opposite ones."""
    n, p = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    numbers = st.lists(st.integers(-3, 4), min_size=n * p, max_size=n * p)
    Z = np.array(draw(numbers), float).reshape(n, p) / draw(st.sampled_from([1e-3, 1.0, 30.0]))
    weight = st.sampled_from([0.0, 1e-3, 0.3, 1.0, 1.0, 2.0, 1e3])
    weights = np.array(draw(st.lists(weight, min_size=n, max_size=n)))
    return Z, draw(st.sampled_from(list(CS))) * weights


def assert_same_objective_and_w(Z, solution, wanted, blur=0.0):
    """To 1e-8, and w to what the gap allows: half the square of its error is below the gap.

    ``blur`` is what rounding does to u, of sums of up to 1e8 that nearly cancel.
    """
    value, w = dual_value(Z, wanted), Z.T @ wanted
    length = np.linalg.norm(w)
    allowed = np.sqrt(2.0 * solution.gap * solution.objective)
    assert abs(dual_value(Z, solution.alpha) - value) <= 1e-8 * value + blur * (length + blur)
    assert np.linalg.norm(solution.dense_part - w) <= 1e-8 * length + allowed + blur


def problem(rows, upper):
    return np.array(rows, float), np.array(upper, float)


# Converged with a gap of 1e-14, which leaves w a relative error of 1e-7.
@pytest.mark.sampled(0)
@example(problem([[-2, -3, 1], [0, -1, -1]], [1, 1000]), 0)
@example(problem([[-1, 0], [-1, 2], [-1, 0], [-1, 2]], [100] * 4), 0)
@example(problem([[0], [-2000], [2000]], [3e3, 1e7, 1e7]), 0)
@example(problem([[2000, 2000, 3000], [-2000, -2000, -3000]], [1e6, 1e6]), 0)
@example(problem([[1e3, -3e3], [-1e3, 3e3], [0, 3e3], [0, 0]], [1e5, 2e5, 1e8, 1e8]), 0)
@draws(150)
@given(small_problems(), st.integers(0, 3))
def test_solution_is_the_best_of_all_faces(problem, seed):
    Z, upper = problem
    solution = solve_dual(dense_rows(Z), upper, EXACT, seed=seed)
    longest, total = np.linalg.norm(Z, axis=1).max(), solution.alpha.sum()
    wanted = box_qp_by_faces(Z, upper)
    assert_same_objective_and_w(Z, solution, wanted, 1e-15 * longest * total)
    # So much of the gap is rounding: of the scores, times the bounds.
    blur = 1e-15 * longest**2 * total * upper.sum()
    assert solution.gap * solution.objective <= 1e-10 * solution.objective + blur


@pytest.mark.parametrize(("n", "p"), [(40, 60), (80, 25)])
@pytest.mark.parametrize("C", CS[::3])
def test_solution_is_that_of_bounded_least_squares(n, p, C):
    Z = np.column_stack([overlapping(n, p, condition=30.0), np.full(n, 0.1)])
    upper = C * np.random.default_rng(1).choice([0.0, 0.5, 1.0, 3.0], n)
    solution = solve_dual(dense_rows(Z), upper, EXACT)
    assert_same_objective_and_w(Z, solution, box_qp_by_least_squares(Z, upper))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("n", "p"), [(300, 150), (400, 20)])
@pytest.mark.parametrize("condition", [1.0, 1e4])
def test_gap_is_reached_for_every_bound(n, p, condition):
    Z = overlapping(n, p, condition)
    rows = dense_rows(Z)
    for C in CS:
        upper = np.full(n, C)
        solution = solve_dual(rows, upper)
        assert solution.status == "converged"
        assert solution.gap <= 1e-6
        check_optimality(rows, Z, upper, solution, 1e-6)
        exact = solve_dual(rows, upper, EXACT)
        assert exact.status in ("converged", "stopped at rounding error")
        assert exact.gap <= 1e-8
        at_bound = np.isin(exact.alpha, (0.0, C))
        np.testing.assert_allclose((Z @ exact.dense_part)[~at_bound], 1.0, atol=1e-5)


@pytest.mark.parametrize(("n", "p"), [(30, 60), (200, 60), (100, 8), (1, 3)])
def test_hard_margin_is_the_projection_onto_the_hull(n, p):
    Z = overlapping(n, p)
    Z[:, 0] = np.abs(Z[:, 0]) + 0.05
    solution = solve_dual(dense_rows(Z), np.full(n, np.inf), EXACT)
    nearest = nearest_in_hull(Z)
    np.testing.assert_allclose(
        solution.dense_part, nearest / (nearest @ nearest), rtol=1e-8, atol=1e-8
    )
    assert (Z @ solution.dense_part).min() >= 1 - 1e-9
    assert solution.status == "converged"
    np.testing.assert_allclose(solution.objective, 0.5 / (nearest @ nearest), rtol=1e-9)


@draws(60)
@given(small_problems())
def test_hard_margin_of_small_problems(problem):
    Z, _ = problem
    nearest = nearest_in_hull(Z)
    upper = np.full(len(Z), np.inf)
    if np.linalg.norm(nearest) < 1e-6 * np.abs(Z).max(initial=1e-300):
        with pytest.raises(InputError, match="within the convex hull"):
            solve_dual(dense_rows(Z), upper)
    else:
        solution = solve_dual(dense_rows(Z), upper, 1e-15)
        wanted = nearest / (nearest @ nearest)
        # Within the root of the gap, relative to the length of w.
        assert np.linalg.norm(solution.dense_part - wanted) <= 1e-7 * np.linalg.norm(wanted)


def test_row_at_the_mean_is_in_the_hull():
    Z = np.array([[1.0, 0.0], [0.0, 0.0]])
    with pytest.raises(InputError, match="convex hull"):
        solve_dual(dense_rows(Z), np.array([np.inf, np.inf]))
    assert solve_dual(dense_rows(Z), np.array([np.inf, 0.0])).alpha.tolist() == [1.0, 0.0]


def near_miss(distance):
    """Rows whose hull comes this near to the mean."""
    Z = overlapping(200, 10)
    Z[:, 0] = np.abs(Z[:, 0]) * (np.arange(200) % 2) + distance
    return Z


@pytest.mark.parametrize("unit", [1e-9, 1e9])
def test_the_unit_of_the_rows_does_not_matter(unit):
    Z = near_miss(1e-2)
    for bound in (np.inf, 1e8):
        wanted = solve_dual(dense_rows(Z), np.full(200, bound)).dense_part
        found = solve_dual(dense_rows(unit * Z), np.full(200, bound / unit**2)).dense_part
        np.testing.assert_allclose(unit * found, wanted, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("bound", [np.inf, 10.0])
def test_rounding_errors_have_the_same_share_in_any_unit(bound):
    def blur(unit):
        problem = DualProblem(dense_rows(unit * near_miss(1e-2)), np.full(200, bound / unit**2))
        return problem.blur(problem.measure(np.full(200, 1.0 / unit**2)))

    assert 1e-16 < blur(1.0) < 1e-6
    np.testing.assert_allclose([blur(1e-5), blur(1e5)], blur(1.0), rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e3])
def test_a_score_that_rounding_leaves_below_the_margin_is_no_gap(unit):
    problem = DualProblem(dense_rows(np.diag([unit, 2.0 * unit])), np.full(2, 1e9 / unit**2))
    alpha = np.array([1.0, 0.25]) / unit**2 * (1.0 - 1e-12)
    assert problem.measure(alpha).gap > 1e-4
    assert problem.measure(alpha, lifted=True).gap <= 1e-11


@pytest.mark.parametrize("C", [1e5, 1e8, 1e11])
def test_a_huge_bound_leaves_no_gap(C):
    solution = solve_dual(dense_rows(overlapping(40, 60)), np.full(40, C), EXACT, max_iter=50)
    assert solution.status == "converged"
    assert solution.gap <= EXACT


@pytest.mark.parametrize("p", [1, 5, 20, 100])
def test_the_second_stage_takes_as_many_rows_as_are_affordable(p, monkeypatch):
    monkeypatch.setattr(dual, "_MOST_PRODUCTS", 1001.0)
    problem = DualProblem(dense_rows(overlapping(200, p)), np.ones(200))
    part = dual.MovableRows.of(problem, problem.measure(np.zeros(200)))
    assert len(part.rows) == {1: 200, 5: 40}.get(p, 10)
    assert part.products() <= 1001.0


@pytest.mark.parametrize("distance", [1e-2, 1e-4, 1e-5])
def test_near_miss_has_a_hard_margin(distance):
    solution = solve_dual(dense_rows(near_miss(distance)), np.full(200, np.inf))
    assert solution.gap <= 1e-4
    np.testing.assert_allclose(np.linalg.norm(solution.dense_part), 1 / distance, rtol=1e-4)


@pytest.mark.parametrize("unit", [1e-5, 1.0, 1e5])
def test_the_hull_is_found_without_a_start(unit):
    Z = unit * near_miss(1e-4)
    alpha = dual._nearest_in_hull(Z, np.zeros(200), np.linalg.norm(Z, axis=1).max())
    u = Z.T @ alpha
    np.testing.assert_allclose(np.linalg.norm(u), 1e4 / unit, rtol=1e-8)
    assert (Z @ u).min() >= 1.0 - 1e-5


def test_rows_without_length_take_all_they_may():
    Z = np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 0.0]])
    solution = solve_dual(dense_rows(Z), np.array([3.0, 3.0, 0.0]), EXACT)
    assert solution.alpha.tolist() == [3.0, 0.25, 0.0]
    np.testing.assert_allclose(solution.objective, 0.125 + 3.0)
    assert solution.gap <= EXACT
    assert solution.n_iter <= 2
    assert solve_dual(dense_rows(Z), np.full(3, 2.0), max_iter=1).alpha.tolist() == [2, 0.25, 2]


@pytest.mark.parametrize("upper", [[], [0.0, 0.0]])
def test_nothing_to_do(upper):
    solution = solve_dual(dense_rows(np.ones((len(upper), 2))), np.array(upper))
    assert solution.gap == 0.0
    assert solution.status == "converged"
    assert solution.dense_part.tolist() == [0.0, 0.0]


def sparse_rows(n, n_columns=400, seed=0):
    """Sparse rows centred implicitly, with their dense equals."""
    rng = np.random.default_rng(seed)
    A = sparse.random_array((n, n_columns), density=0.03, random_state=rng, format="csr")
    mean = 0.02 * rng.random(n_columns)
    left = np.column_stack([A @ mean, np.ones(n)])
    H = np.array([[0.0, -1.0], [-1.0, mean @ mean]])  # indefinite
    left, right = map(np.ascontiguousarray, (left, left @ H))
    rows = RareRows(A.indptr.astype(np.int64), A.indices, A.data, n_columns, left, right)
    return rows, A.toarray() - mean, mean


@pytest.mark.parametrize("C", [1e-2, 1.0, 1e5, np.inf])
@pytest.mark.parametrize("most", [2000, 30])
def test_sparse_form_equals_dense_form(C, most, monkeypatch):
    monkeypatch.setattr(dual, "_MOST_SPARSE", most)
    rows, Z, mean = sparse_rows(60)
    upper = np.full(60, C)
    dense = solve_dual(dense_rows(Z), upper, 1e-11)
    solution = solve_dual(rows, upper, 1e-11)
    assert solution.gap <= 1e-8
    assert len(solution.sparse_part) == 400
    w = solution.sparse_part - solution.dense_part[1] * mean
    np.testing.assert_allclose(w, dense.dense_part, atol=1e-7)


@pytest.mark.parametrize("C", [1e-2, 10.0, 1e5])
def test_warm_start_changes_the_way_and_not_the_end(C):
    Z = overlapping(200, 30)
    rows, upper = dense_rows(Z), np.full(200, C)
    cold = solve_dual(rows, upper, EXACT)
    for start in (cold.alpha, np.full(200, 1e9), -upper, solve_dual(rows, upper / 10).alpha):
        before = start.copy()
        warm = solve_dual(rows, upper, EXACT, start=start)
        np.testing.assert_allclose(warm.dense_part, cold.dense_part, rtol=1e-7, atol=1e-8)
        np.testing.assert_array_equal(start, before)
    assert solve_dual(rows, upper, start=cold.alpha).n_iter == 0


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_seeds_and_interrupts_of_passes_leave_the_answer_alone(C, monkeypatch):
    rows, upper = dense_rows(overlapping(150, 40)), np.full(150, C)
    first, again, other = (solve_dual(rows, upper, EXACT, seed=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(first.alpha, again.alpha)
    monkeypatch.setattr(dual, "_INTERRUPTIBLE", 0.0)
    for found in (other, solve_dual(rows, upper, EXACT)):
        np.testing.assert_allclose(found.dense_part, first.dense_part, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize(("max_iter", "first"), [(2, 1), (3, 2), (8, 4)])
def test_the_second_stage_begins_after_half_of_the_passes(max_iter, first, monkeypatch):
    begun, original = [], dual.finish

    def finish(*given):
        begun.append(given[-1])
        return original(*given)

    monkeypatch.setattr(dual, "finish", finish)
    rows = dense_rows(overlapping(300, 40, 1e4))
    solve_dual(rows, np.full(300, 10.0), EXACT, max_iter=max_iter)
    assert begun == [first]
    short = solve_dual(rows, np.full(300, 0.1), EXACT, max_iter=1)
    assert (short.n_iter, short.status) == (1, "reached max_iter")
    assert short.gap > EXACT


@pytest.mark.parametrize(
    ("C", "shift"), [(1.0, 1.0), (1e5, 1.0), (1.0, 12.0), (1e5, 12.0), (np.inf, 12.0)]
)
def test_more_rows_than_the_second_stage_takes(C, shift, monkeypatch):
    Z = overlapping(400, 10, 100.0, shift)
    rows, upper = dense_rows(Z), np.full(400, C)
    wanted = solve_dual(rows, upper, EXACT)
    monkeypatch.setattr(dual, "_MOST_PRODUCTS", 1e4)  # 100 rows
    found = solve_dual(rows, upper, 1e-10)
    np.testing.assert_allclose(found.dense_part, wanted.dense_part, rtol=1e-5, atol=1e-6)
    assert found.gap <= 1e-8
    assert found.status in ("converged", "stopped at rounding error")


@draws(60)
@given(small_problems(), st.lists(st.floats(-1, 2), min_size=6, max_size=6))
def test_interior_point_and_face_with_any_linear_part(problem, numbers):
    Z, upper = problem
    Z, upper, b = Z[upper > 0], upper[upper > 0], np.array(numbers)[: (upper > 0).sum()]
    if not len(Z):
        return
    best = dual_value(Z, box_qp_by_faces(Z, upper, b), b)
    qp = BoxQP(Z, b, upper)
    inside = solve_box_qp(qp)
    found = dual_value(Z, to_face(qp, inside), b)
    assert ((inside >= 0) & (inside <= upper)).all()
    assert abs(found - best) <= 1e-6 * best + 1e-9 * upper.sum()


@pytest.mark.parametrize("shift", [1.0, 12.0])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e3, 1e5])
def test_interior_point_finds_the_free_rows_in_few_steps(C, shift, monkeypatch):
    Z, upper = overlapping(200, 15, 1e3, shift), np.full(200, C)
    steps = []
    make = box_qp._NewtonSystem.__init__
    monkeypatch.setattr(
        box_qp._NewtonSystem, "__init__", lambda *args: (steps.append(1), make(*args))[1]
    )
    qp = BoxQP(Z, np.ones(200), upper)
    inside = solve_box_qp(qp)
    assert len(steps) <= 25
    alpha = to_face(qp, inside)
    np.testing.assert_array_equal((inside > 0) & (inside < upper), (alpha > 0) & (alpha < upper))
    s = Z @ (Z.T @ alpha)
    noise = 1e-12 * max(1.0, C)
    assert s[alpha == 0].min(initial=1.0) >= 1 - noise
    assert s[alpha == upper].max(initial=1.0) <= 1 + noise
    np.testing.assert_allclose(s[(alpha > 0) & (alpha < upper)], 1.0, atol=noise)


@st.composite
def programmes_with_a_sum(draw):
    """Rows of either sign, one of which may have no upper bound, and a sum that the box allows."""
    n, p = draw(st.integers(2, 40)), draw(st.integers(1, 6))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    upper, signs = rng.choice([0.05, 1.0, 30.0], n), rng.choice([1.0, -1.0], n)
    total = float(signs @ (upper * rng.uniform(0.1, 0.9, n)))
    if draw(st.booleans()):
        upper[0] = np.inf
    Z = rng.normal(size=(n, p)) * draw(st.sampled_from([0.1, 1.0, 10.0]))
    return BoxQP(Z, rng.normal(size=n), upper, signs, total, rng.normal(size=p))


@draws(200)
@given(programmes_with_a_sum())
def test_interior_point_with_a_sum(qp):
    """Nothing in the box with this sum lies higher along the gradient."""
    found = interior_point(qp, 1.0, np.full(len(qp.b), 1e-9), 1e-10, 60)
    assert found.arrived
    assert found.n_steps <= 30
    alpha = found.alpha
    assert ((alpha >= 0.0) & (alpha <= qp.upper)).all()
    u = qp.combined(alpha)
    gradient = qp.b - qp.Z @ u
    bounds = np.column_stack([-alpha, np.minimum(qp.upper, 1e3) - alpha])
    rise = -linprog(-gradient, A_eq=qp.signs[None], b_eq=[0.0], bounds=bounds).fun
    assert rise <= 1e-7 * (1.0 + u @ u + np.abs(qp.b) @ alpha)
    assert abs(qp.signs @ alpha - qp.total) <= 1e-8 * (1.0 + alpha.sum())


@draws(200)
@given(st.integers(1, 8), st.integers(0, 10_000))
def test_the_face_is_exact_after_its_walls(n, seed):
    """From any place: the free rows that are left have their scores, as far as walls allow."""
    rng = np.random.default_rng(seed)
    Z, b = rng.normal(size=(n, 9)), rng.normal(0.5, 1.0, n)
    upper = rng.choice([0.1, 1.0, np.inf], n)
    start = np.minimum(upper, 1.0) * rng.choice([0.0, 0.3, 0.9, 1.0], n)
    alpha = to_face(BoxQP(Z, b, upper), start)
    assert ((alpha >= 0.0) & (alpha <= upper)).all()
    was_free, is_free = ((a > 0.0) & (a < upper) for a in (start, alpha))
    assert (was_free | ~is_free).all()
    np.testing.assert_array_equal(alpha[~was_free], start[~was_free])
    np.testing.assert_allclose((Z @ (Z.T @ alpha))[is_free], b[is_free], rtol=1e-9, atol=1e-9)
    assert dual_value(Z, alpha, b) >= dual_value(Z, start, b) - 1e-12


def test_free_rows_far_from_a_huge_bound_stay_free():
    Z = np.array([[2000.0, -1000.0], [3000.0, -3000.0], [-3000.0, 4000.0]])
    alpha = solve_box_qp(BoxQP(Z, np.ones(3), np.array([1e-2, 1e4, 1e-2])))
    np.testing.assert_allclose(alpha, [0.0, 4.6 / 9e5, 3.9 / 9e5], rtol=1e-5)


def test_rows_outside_of_the_part_count_as_they_are(monkeypatch):
    Z, upper = overlapping(100, 5), np.full(100, 0.05)
    problem = DualProblem(dense_rows(Z), upper)
    point = problem.measure(upper * np.random.default_rng(0).random(100))
    monkeypatch.setattr(dual, "_MOST_PRODUCTS", 25.0 * 40)
    part = dual.MovableRows.of(problem, point)
    assert len(part.rows) == 40
    new = problem.measure(part.improved(part.factor(), point, interior=True))
    others = np.setdiff1d(np.arange(100), part.rows)
    np.testing.assert_array_equal(new.alpha[others], point.alpha[others])
    missing = 1 - new.scores[part.rows]
    room = np.where(missing > 0, upper[part.rows] - new.alpha[part.rows], new.alpha[part.rows])
    assert np.abs(missing * room).max() <= 1e-12


def test_rows_of_zeros_rise_to_their_bounds(capfd):
    alpha = to_face(BoxQP(np.zeros((3, 2)), np.ones(3), np.full(3, 2.0)), np.ones(3))
    assert alpha.tolist() == [2.0, 2.0, 2.0]
    assert capfd.readouterr().out == ""
