"""Paths of solutions: in step or one by one, from a part of the rows or from the one before."""

import tracemalloc

import numpy as np
import pytest

from oracles import rare_mixture
from rareclass import RankRC, RankRCCV, rankrc_path
from rareclass.ranking import path as module
from rareclass.ranking.newton import Status, minimize
from rareclass.ranking.part import PartDirection, part_stride
from rareclass.ranking.path import solve_path, solve_paths
from rareclass.ranking.preconditioner import SampledHessian
from rareclass.ranking.preparation import prepare
from rareclass.ranking.questions import answer, solve, solve_in_step

LAMS = [2.0**-4, 2.0**2, 2.0**-10]
X, Y = rare_mixture(3000, 40)


def prepared_problem(weight=None, held_out=None, block_rows=32, dtype=np.float64, **parameters):
    prepared = prepare(RankRC(**parameters), X.astype(dtype), Y, weight)
    rows = type(prepared.rows)(
        prepared.rows._source,
        prepared.labels.majority,
        prepared.labels.majority_weight,
        block_rows=block_rows,
        budget=prepared.rows.budget,
        n_jobs=1,
    )
    prepared = type(prepared)(**{**prepared.__dict__, "rows": rows})
    return prepared.problem(1.0, held_out)


@pytest.fixture
def from_parts(monkeypatch):
    """Make every path start from a part, however few the rows."""
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 4)


def test_questions_of_many_problems_are_answered_as_each_alone():
    problem = prepared_problem()
    rng = np.random.default_rng(0)
    others = [problem.with_lam(lam) for lam in LAMS]
    points = rng.normal(size=(3, problem.size))
    together = answer([p.value_at(w) for p, w in zip(others, points, strict=True)])
    alone = [p.evaluate(w) for p, w in zip(others, points, strict=True)]
    for a, b in zip(together, alone, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-13)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)
    mixed = answer([others[0].product(alone[0], points[1]), others[1].value_at(points[2])])
    product = others[0].hessian_product(alone[0], points[1])
    np.testing.assert_allclose(mixed[0], product, rtol=1e-10, atol=1e-12)
    assert mixed[1].value == pytest.approx(others[1].evaluate(points[2]).value, rel=1e-13)


@pytest.mark.parametrize("at_once", [1, 2, 5])
def test_solvers_in_step_are_solved_as_alone(at_once):
    problem = prepared_problem()
    slots = []

    def start(lam, slot):
        slots.append(slot)
        here = problem.with_lam(lam)
        at = here.evaluate(np.zeros(here.size))
        return minimize(here, at, 1.0, 1e-7, 50)

    alone = [solve(start(lam, 0)) for lam in LAMS]
    slots.clear()
    solutions = solve_in_step([lambda slot, lam=lam: start(lam, slot) for lam in LAMS], at_once)
    assert set(slots) == set(range(min(at_once, len(LAMS))))
    for found, wanted in zip(solutions, alone, strict=True):
        np.testing.assert_allclose(found.at.w, wanted.at.w, rtol=1e-6, atol=1e-9)


def test_solvers_that_ask_nothing_are_done():
    def silent(value):
        return value
        yield

    assert solve_in_step([lambda _, k=k: silent(k) for k in range(5)], 2) == [0, 1, 2, 3, 4]
    assert solve_in_step([], 2) == []


def test_a_tilt_adds_a_linear_function():
    problem = prepared_problem()
    rng = np.random.default_rng(0)
    w, tilt = rng.normal(size=(2, problem.size))
    plain, tilted = problem.evaluate(w), problem.tilted(tilt).evaluate(w)
    assert tilted.value == pytest.approx(plain.value + tilt @ w, rel=1e-12)
    np.testing.assert_allclose(tilted.gradient, plain.gradient + tilt, rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_is_the_problem_of_its_rows_alone(weighted):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float) if weighted else None
    held_out = np.arange(len(Y)) % 3 == 0
    part = prepared_problem(weight, held_out, width=2.0).on_part(4)
    assert part.scale == pytest.approx(1 / (part.rare_weight.sum() * part.majority_weight.sum()))
    labels = prepare(RankRC(), X, Y, weight).labels
    numbers = labels.majority[part.rows.numbers]
    wanted = np.ones(len(numbers)) if weight is None else weight[numbers] / weight.max()
    np.testing.assert_allclose(part.majority_weight, wanted * ~held_out[numbers])
    # The value is that of the rows in the part, all others at weight zero.
    only = np.zeros(len(Y))
    only[numbers] = 1
    only[labels.rare] = 1
    only *= 1.0 if weight is None else weight
    alone = prepared_problem(only, held_out, width=2.0)
    w = np.random.default_rng(1).normal(size=part.size)
    assert part.evaluate(w).value == pytest.approx(alone.evaluate(w).value, rel=1e-10)


def test_the_direction_of_the_whole_leads_to_its_minimum():
    problem = prepared_problem().with_lam(0.01)
    at = problem.evaluate(np.ones(problem.size))
    direction, passes = PartDirection(problem.on_part(1), 1.0)(at, 1e-8)
    end = problem.evaluate(at.w + direction)
    assert np.linalg.norm(end.gradient) < 2e-8
    assert passes > 1


def test_the_direction_of_a_part_descends_and_nears_the_minimum():
    problem = prepared_problem().with_lam(0.01)
    at = problem.evaluate(np.ones(problem.size))
    direction, _ = PartDirection(problem.on_part(3), 1 / 3)(at, 1e-6)
    assert direction @ at.gradient < 0
    end = problem.evaluate(at.w + direction)
    assert np.linalg.norm(end.gradient) < 0.3 * np.linalg.norm(at.gradient)


def test_a_poor_shortcut_is_dropped():
    problem = prepared_problem().with_lam(0.01)
    start = problem.evaluate(np.ones(problem.size))
    reference = np.linalg.norm(start.gradient)
    calls = []

    def crawl(at, wanted):
        calls.append(1)
        return -1e-3 * at.gradient, 0.0

    def climb(at, wanted):
        calls.append(1)
        return at.gradient, 0.0

    for shortcut in (crawl, climb):
        calls.clear()
        solution = solve(minimize(problem, start, reference, 1e-8, 50, shortcut=shortcut))
        assert solution.status is Status.CONVERGED
        assert len(calls) == 1


@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_path_from_a_part_ends_where_the_path_of_all_rows_ends(weighted, at_once, monkeypatch):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float) if weighted else None
    held_out = np.arange(len(Y)) % 3 == 0
    problem = prepared_problem(weight, held_out)
    reported = []
    plain = solve_path(problem, LAMS, 1e-9, 100)
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 4)
    found = solve_path(
        problem, LAMS, 1e-9, 100, at_once, lambda lam, step: reported.append((lam, step))
    )
    for a, b in zip(found, plain, strict=True):
        assert a.status is Status.CONVERGED
        np.testing.assert_allclose(a.at.w, b.at.w, rtol=1e-5, atol=1e-7)
        assert a.at.value == pytest.approx(b.at.value, rel=1e-12)
    assert {lam for lam, _ in reported} == set(LAMS)


def test_several_problems_keep_their_order(from_parts):
    folds = [np.arange(len(Y)) % 3 == k for k in range(3)]
    problems = [prepared_problem(held_out=fold) for fold in folds]
    rows = problems[0].rows
    shared = [type(p)(**{**p.__dict__, "rows": rows}) for p in problems]
    done = []
    found = solve_paths(
        [lambda p=p: p for p in shared], LAMS, 1e-8, 100, 4, done=lambda: done.append(1)
    )
    assert len(done) == 9
    for problem, path in zip(problems, found, strict=True):
        for lam, solution in zip(LAMS, path, strict=True):
            here = problem.with_lam(lam)
            at = here.evaluate(solution.at.w)
            reference = np.linalg.norm(here.evaluate(np.zeros(here.size)).gradient)
            assert np.linalg.norm(at.gradient) <= 1.01e-8 * reference
            assert solution.inverse is None


def test_estimators_from_parts_are_those_without(monkeypatch):
    parameters = {"tol": 1e-9, "random_state": 0}
    plain = rankrc_path(X, Y, LAMS, **parameters)
    search = RankRCCV(LAMS, cv=3, **parameters).fit(X, Y)
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 2)
    for a, b in zip(rankrc_path(X, Y, LAMS, **parameters), plain, strict=True):
        np.testing.assert_allclose(a.score_samples(X), b.score_samples(X), atol=1e-6)
        assert a.history_[-1].passes > 0
    again = RankRCCV(LAMS, cv=3, **parameters).fit(X, Y)
    np.testing.assert_allclose(
        again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=1e-6
    )


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-10)])
def test_memory_and_threads_do_not_change_a_path_from_a_part(from_parts, dtype, tolerance):
    first = None
    for memory, n_jobs in [("1GiB", 1), ("1GiB", 2), ("400kB", 1), ("200 kB", 3)]:
        models = rankrc_path(X.astype(dtype), Y, LAMS, memory=memory, n_jobs=n_jobs)
        scores = np.column_stack([model.score_samples(X.astype(dtype)) for model in models])
        first = scores if first is None else first
        np.testing.assert_allclose(scores, first, rtol=tolerance, atol=tolerance)


def test_what_fit_holds_does_not_grow_with_the_rows(from_parts):
    peaks = []
    for copies in (10, 40):
        wide, y = np.tile(X, (copies, 1)), np.tile(Y, copies)
        y[len(Y) :] = 0
        RankRC(memory="3MiB", n_jobs=1).fit(wide[:3000], y[:3000])
        tracemalloc.start()
        RankRC(memory="3MiB", n_jobs=1).fit(wide, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    by_row = (peaks[1] - peaks[0]) / (30 * len(Y))
    assert by_row < 60  # bytes: row numbers, labels, training scores; a kernel row has 40 x 8


def test_a_part_is_a_small_share_of_the_rows():
    assert part_stride(10_000, 100) is None
    assert part_stride(1_000_000, 1000) == 25
    assert part_stride(4_000_000, 1000) == 100


def test_the_hessian_sampled_from_a_part_is_near_that_of_the_whole():
    problem = prepared_problem().with_lam(0.05)
    at = problem.evaluate(np.zeros(problem.size))
    inverse = SampledHessian(problem, problem.on_part(2))(at)
    H = np.column_stack([problem.hessian_product(at, e) for e in np.eye(problem.size)])
    eigenvalues = np.linalg.eigvals(np.column_stack([inverse(column) for column in H.T])).real
    assert eigenvalues.max() / eigenvalues.min() < 3


def test_a_fold_that_holds_out_the_whole_part_is_solved_without_it(from_parts):
    labels = prepare(RankRC(), X, Y, None).labels
    problem = prepared_problem()
    held_out = np.zeros(len(Y), dtype=bool)
    held_out[labels.majority[problem.on_part(4).rows.numbers]] = True
    problem = prepared_problem(held_out=held_out)
    (solution,) = solve_path(problem, [0.01], 1e-8, 50)
    assert solution.status is Status.CONVERGED
