"""Paths of solutions: in step or one by one, from a part of the rows or from the one before."""

import tracemalloc
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from draws import quick
from made_tables import rare_mixture
from rareclass import RankRC, RankRCCV, rankrc_path
from rareclass.findings import Status
from rareclass.kernels import expansion
from rareclass.kernels.expansion import KernelExpansion
from rareclass.kernels.kernels import Gaussian
from rareclass.ranking import solve as module
from rareclass.ranking.problem import (
    Evaluation,
    ProductQuestion,
    ValueQuestion,
    answer,
    solve,
    solve_in_step,
)
from rareclass.ranking.solve import solve_paths
from rareclass.ranking.solvers.newton import (
    Direction,
    NewtonDirections,
    Objective,
    PathSettings,
    SampledHessian,
    minimize,
)
from rareclass.ranking.solvers.part import PartDirection, kernel_is_worth_keeping, part_stride
from rareclass.rows import ArrayRows, Budget, as_source

LAMS = [2.0**-4, 2.0**2, 2.0**-10]
X, Y = rare_mixture(3000, 40)
FEW = np.r_[np.flatnonzero(Y), np.flatnonzero(Y == 0)[:960]]


def prepared_problem(weight=None, held_out=None, block_rows=32, dtype=np.float64, **parameters):
    prepared = RankRC(**parameters)._prepare(X.astype(dtype), Y, weight)
    rows = type(prepared.rows)(
        as_source(X.astype(dtype)),
        prepared.data.target.labels.majority,
        prepared.data.target.labels.majority_weight,
        block_rows=block_rows,
        budget=prepared.rows.budget,
        n_jobs=1,
    )
    prepared = type(prepared)(**{**prepared.__dict__, "rows": rows})
    return prepared.problem(1.0, held_out)


@pytest.fixture(autouse=True)
def short_runs(monkeypatch):
    """Parts of 32 rows in a row, so that small tables have parts."""
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 32)


@pytest.fixture
def from_parts(monkeypatch):
    """Make every path start from a part, however few the rows."""
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 4)


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks of 32 rows, so that small tables have many and threads have work."""
    monkeypatch.setattr(expansion, "_MOST_BLOCK_ROWS", 32)


def test_questions_of_many_problems_are_answered_as_each_alone():
    problem = prepared_problem()
    rng = np.random.default_rng(0)
    others = [replace(problem, lam=lam) for lam in LAMS]
    points = rng.normal(size=(3, problem.rank))
    together = answer([ValueQuestion(p, w) for p, w in zip(others, points, strict=True)])
    alone = [p.evaluate(w) for p, w in zip(others, points, strict=True)]
    for a, b in zip(together, alone, strict=True):
        assert a.value == pytest.approx(b.value, rel=1e-13)
        np.testing.assert_allclose(a.gradient, b.gradient, rtol=1e-10, atol=1e-12)
    part = problem.on_part(2)  # of other rows: in a pass of its own
    of_both = answer([ValueQuestion(part, points[0]), ValueQuestion(problem, points[1])])
    assert [each.value for each in of_both] == [
        part.evaluate(points[0]).value,
        problem.evaluate(points[1]).value,
    ]
    mixed = answer(
        [ProductQuestion(others[0], alone[0], points[1]), ValueQuestion(others[1], points[2])]
    )
    product = answer([ProductQuestion(others[0], alone[0], points[1])])[0]
    np.testing.assert_allclose(mixed[0], product, rtol=1e-10, atol=1e-12)
    assert mixed[1].value == pytest.approx(others[1].evaluate(points[2]).value, rel=1e-13)


@pytest.mark.sampled(0)
@pytest.mark.parametrize("at_once", quick(1, [2, 1, 5]))
def test_solvers_in_step_are_solved_as_alone(at_once):
    problem = prepared_problem()
    slots = []

    def start(lam, slot):
        slots.append(slot)
        here = replace(problem, lam=lam)
        at = here.evaluate(np.zeros(here.rank))
        run, newton = PathSettings(1e-7, 50), NewtonDirections(here)
        return minimize(Objective(here), at, 1.0, run, [newton])

    alone = [solve(start(lam, 0)) for lam in LAMS]
    slots.clear()
    solutions = solve_in_step([lambda slot, lam=lam: start(lam, slot) for lam in LAMS], at_once)
    assert set(slots) == set(range(min(at_once, len(LAMS))))
    for found, wanted in zip(solutions, alone, strict=True):
        np.testing.assert_allclose(found.at.w, wanted.at.w, rtol=1e-6, atol=1e-9)


def test_a_pass_of_all_rows_waits_for_those_who_ask_a_part():
    problem = prepared_problem()
    part, passes = problem.on_part(2), []

    def watched(rows, name):
        ask = rows.sum

        def asked(fn, expansion, coefficients, questions):
            passes.append((name, len(questions)))
            return ask(fn, expansion, coefficients, questions)

        rows.sum = asked

    def solver(n_of_part, slot):
        for _ in range(n_of_part):
            yield ValueQuestion(replace(part, slot=slot), np.zeros(problem.rank))
        at = yield ValueQuestion(replace(problem, slot=slot), np.zeros(problem.rank))
        return at.value

    watched(problem.rows, "all")
    watched(part.rows, "part")
    values = solve_in_step([lambda slot, n=n: solver(n, slot) for n in (0, 2, 1)], 3)
    assert passes == [("part", 2), ("part", 1), ("all", 3)]
    assert len(set(values)) == 1


def test_solvers_that_ask_nothing_are_done():
    def silent(value):
        return value
        yield

    assert solve_in_step([lambda _, k=k: silent(k) for k in range(5)], 2) == [0, 1, 2, 3, 4]
    assert solve_in_step([], 2) == []


@pytest.mark.parametrize("weighted", [False, True])
def test_a_part_is_the_problem_of_its_rows_alone(weighted):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float) if weighted else None
    held_out = np.arange(len(Y)) % 3 == 0
    part = prepared_problem(weight, held_out, width=2.0).on_part(4)
    # Its rows stand for all: the total weight of the majority is that of the whole.
    assert part.scale == pytest.approx(1 / (part.rare_weight.sum() * part.majority_weight.sum()))
    labels = RankRC()._prepare(X, Y, weight).data.target.labels
    numbers = labels.majority[part.rows.numbers]
    wanted = np.ones(len(numbers)) if weight is None else weight[numbers] / weight.max()
    np.testing.assert_allclose(part.majority_weight, part.factor * wanted * ~held_out[numbers])
    # The value is that of the rows in the part, all others at weight zero.
    only = np.zeros(len(Y))
    only[numbers] = 1
    only[labels.rare] = 1
    only *= 1.0 if weight is None else weight
    alone = prepared_problem(only, held_out, width=2.0)
    w = np.random.default_rng(1).normal(size=part.rank)
    assert part.evaluate(w).value == pytest.approx(alone.evaluate(w).value, rel=1e-10)


@pytest.mark.parametrize(("stride", "left"), [(1, 2e-8), (3, 0.3)])
def test_the_direction_of_a_part_descends_and_nears_the_minimum(stride, left):
    """All rows as a part lead to it."""
    problem = replace(prepared_problem(), lam=0.01)
    at = problem.evaluate(np.ones(problem.rank))
    shortcut = PartDirection(problem.on_part(stride), 1 / stride)
    found = solve(shortcut.towards(at, 1e-8, 1e-8))
    assert found.foreseen is None
    assert found.cost > 1 / stride
    assert found.step @ at.gradient < 0
    end = problem.evaluate(at.w + found.step)
    assert np.linalg.norm(end.gradient) < left * np.linalg.norm(at.gradient)


def test_a_poor_shortcut_is_dropped():
    problem = replace(prepared_problem(), lam=0.01)
    start = problem.evaluate(np.ones(problem.rank))
    reference = np.linalg.norm(start.gradient)
    calls = []

    def along(share):
        def shortcut(at, optimality, tol):
            calls.append(1)
            yield from ()
            return Direction(share * at.gradient, 0.0)

        return shortcut

    def minimum(*ways):
        ways = [*ways, NewtonDirections(problem)]
        return solve(minimize(Objective(problem), start, reference, PathSettings(1e-8, 50), ways))

    without = minimum().passes
    for share, most in ((-1e-3, 10), (1.0, 0)):
        calls.clear()
        solution = minimum(along(share))
        assert solution.status is Status.CONVERGED
        assert len(calls) == 1
        assert solution.passes <= without + most  # a direction that climbs is not even tried


def test_secant_pairs_correct_a_step_as_in_bfgs():
    rng = np.random.default_rng(0)
    A = np.diag(rng.uniform(0.5, 2.0, 6))  # stands for the inverse curvature of the part

    class Linear(PartDirection):
        def _minimum(self, at, gradient, wanted):
            yield from ()
            return -A @ gradient, 1.0

    def point(w, gradient):
        return Evaluation(w, 0.0, gradient, w, None, None)

    B = rng.normal(size=(6, 6))
    B = B @ B.T + np.eye(6)  # the whole's curvature
    shortcut, H = Linear(None, 0.5), A
    w, before = rng.normal(size=6), None
    for _ in range(4):
        at = point(w, B @ w)
        if before is not None:
            s, y = at.w - before.w, at.gradient - before.gradient
            V = np.eye(6) - np.outer(s, y) / (s @ y)
            H = V @ H @ V.T + np.outer(s, s) / (s @ y)
        found = solve(shortcut(at, 1.0, 1.0))
        np.testing.assert_allclose(found.step, -H @ at.gradient, rtol=1e-9, atol=1e-12)
        assert found.cost == 0.5
        w, before = w + 0.7 * found.step, at


@pytest.mark.sampled(1)
@pytest.mark.parametrize("at_once", [1, 4])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_path_from_a_part_ends_where_the_path_of_all_rows_ends(weighted, at_once, monkeypatch):
    weight = np.random.default_rng(0).integers(0, 3, len(Y)).astype(float) if weighted else None
    held_out = np.arange(len(Y)) % 3 == 0
    problem = prepared_problem(weight, held_out)
    reported = []
    plain = solve_paths([lambda: problem], LAMS, PathSettings(1e-9, 100))[0]
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 4)
    found = solve_paths(
        [lambda: problem],
        LAMS,
        PathSettings(1e-9, 100),
        at_once,
        lambda _, lam, step: reported.append((lam, step)),
    )[0]
    for a, b in zip(found, plain, strict=True):
        assert a.status is Status.CONVERGED
        np.testing.assert_allclose(a.at.w, b.at.w, rtol=1e-5, atol=1e-7)
        assert a.at.value == pytest.approx(b.at.value, rel=1e-12)
        assert 1 < a.passes < 2 * b.passes  # those of the part count by its share
    assert {lam for lam, _ in reported} == set(LAMS)


@pytest.mark.sampled(0)
def test_several_problems_keep_their_order(from_parts):
    folds = [np.arange(len(Y)) % 3 == k for k in range(3)]
    problems = [prepared_problem(held_out=fold) for fold in folds]
    rows = problems[0].rows
    expansion = problems[0].expansion
    shared = [replace(p, rows=rows, expansion=expansion) for p in problems]
    done = []
    found = solve_paths(
        [lambda p=p: p for p in shared],
        LAMS,
        PathSettings(1e-8, 100, done=lambda: done.append(1)),
        4,
    )
    assert len(done) == 9
    for problem, path in zip(problems, found, strict=True):
        for lam, solution in zip(LAMS, path, strict=True):
            here = replace(problem, lam=lam)
            at = here.evaluate(solution.at.w)
            reference = np.linalg.norm(here.evaluate(np.zeros(here.rank)).gradient)
            assert np.linalg.norm(at.gradient) <= 1.01e-8 * reference
            assert solution.at.rare is None


@pytest.mark.sampled(0)
@pytest.mark.parametrize(
    "parameters",
    quick(
        1,
        [
            {"landmarks": ("rare", 12)},
            {},
            {"eps": 0.1},
            {"kernel": lambda X, Z: np.asarray(X @ Z.T) + 1.0},
        ],
    ),
)
def test_estimators_from_parts_are_those_without(parameters, small_blocks, monkeypatch):
    parameters = {"tol": 1e-9, "random_state": 0} | parameters
    rows, y = X[FEW], Y[FEW]
    plain = rankrc_path(rows, y, LAMS, **parameters)
    search = RankRCCV(LAMS, cv=3, **parameters).fit(rows, y)
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 3)
    for a, b in zip(rankrc_path(rows, y, LAMS, **parameters), plain, strict=True):
        np.testing.assert_allclose(a.score_samples(rows), b.score_samples(rows), atol=1e-6)
        assert a.history_[-1].passes > 0
    again = RankRCCV(LAMS, cv=3, **parameters).fit(rows, y)
    np.testing.assert_allclose(
        again.cv_results_["mean_test_score"], search.cv_results_["mean_test_score"], atol=1e-6
    )


@pytest.mark.sampled(1)
@pytest.mark.parametrize("parts", [False, True])
@pytest.mark.parametrize("memory", quick(1, ["200kB", "1GiB"]))
def test_a_pass_works_out_a_kernel_block_once(memory, parts, small_blocks, monkeypatch):
    monkeypatch.setattr(module, "part_stride", lambda n_rows, n_landmarks: 4 if parts else None)
    seen, kernel = [0, 0], Gaussian.block

    def counted(self, rows, points, *out):
        seen[0] += rows.shape[0]
        return kernel(self, rows, points, *out)

    def passes(self, fn, *broadcast):
        seen[1] += self.n_rows
        return total(self, fn, *broadcast)

    total = ArrayRows.sum
    prepared = RankRC(memory=memory, n_jobs=1)._prepare(X, Y, None, several=True)
    folds = [np.arange(len(Y)) % 3 == k for k in range(3)]
    monkeypatch.setattr(Gaussian, "block", counted)
    monkeypatch.setattr(ArrayRows, "sum", passes)
    solve_paths(
        [partial(prepared.problem, 1.0, fold) for fold in folds], LAMS, PathSettings(1e-6, 50), 4
    )
    if memory == "1GiB":
        assert seen[0] < 1.5 * len(Y) + 0.1 * seen[1]  # the sample of a preconditioner is extra
    else:
        assert seen[0] <= 1.1 * seen[1]


@pytest.mark.sampled(0)
def test_what_fit_holds_does_not_grow_with_the_rows(from_parts, monkeypatch):
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 1024)
    peaks = []
    for copies in (40, 120):  # more than 100,000 rows both: in float32
        wide, y = np.tile(X, (copies, 1)), np.tile(Y, copies)
        y[len(Y) :] = 0
        RankRC(memory="3MiB", n_jobs=1).fit(wide[:3000], y[:3000])
        tracemalloc.start()
        RankRC(memory="3MiB", n_jobs=1).fit(wide, y)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    by_row = (peaks[1] - peaks[0]) / (80 * len(Y))
    assert by_row < 10  # bytes: no score of every row is held; a kernel row has 40 x 4


def test_a_part_is_a_small_share_of_the_rows():
    assert part_stride(10_000, 100) is None
    assert part_stride(99_999, 1000) is None
    assert part_stride(100_000, 1000) == part_stride(179_999, 1000) == 5
    assert part_stride(1_000_000, 1000) == 33
    assert part_stride(4_000_000, 1000) == 133


def test_one_lam_on_many_rows_of_few_features_keeps_the_kernel_of_the_part_only(
    from_parts, monkeypatch
):
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 4)
    assert not kernel_is_worth_keeping(1_000_000, 1000, 40, several=False)
    assert kernel_is_worth_keeping(1_000_000, 1000, 40, several=True)
    assert kernel_is_worth_keeping(1_000_000, 1000, 500, several=False)
    assert kernel_is_worth_keeping(50_000, 1000, 40, several=False)
    assert kernel_is_worth_keeping(200_000, 300, 40, several=False)  # small
    rows = as_source(np.arange(64.0).reshape(32, 2))
    whole = ArrayRows(rows, block_rows=4, budget=Budget(10**6), n_jobs=1, keeps_arrays=False)
    expansion = KernelExpansion(Gaussian(1.0), np.zeros((3, 2)))
    first = whole.map(lambda block: expansion.matrix(block))
    assert whole.share_remembering("kernel") == 0.0
    whole.every(4).map(lambda block: expansion.matrix(block))
    assert whole.share_remembering("kernel") == 0.25
    np.testing.assert_array_equal(whole.map(lambda block: expansion.matrix(block)), first)


def test_the_hessian_sampled_from_a_part_is_near_that_of_the_whole():
    problem = replace(prepared_problem(), lam=0.05)
    at = problem.evaluate(np.zeros(problem.rank))
    inverse = SampledHessian(problem, problem.on_part(2))(at)
    H = np.column_stack(answer([ProductQuestion(problem, at, e) for e in np.eye(problem.rank)]))
    eigenvalues = np.linalg.eigvals(np.column_stack([inverse(column) for column in H.T])).real
    assert eigenvalues.max() / eigenvalues.min() < 3


def test_a_fold_that_holds_out_the_whole_part_is_solved_without_it(from_parts):
    labels = RankRC()._prepare(X, Y, None).data.target.labels
    problem = prepared_problem()
    held_out = np.zeros(len(Y), dtype=bool)
    held_out[labels.majority[problem.on_part(4).rows.numbers]] = True
    problem = prepared_problem(held_out=held_out)
    (solution,) = solve_paths([lambda: problem], [0.01], PathSettings(1e-8, 50))[0]
    assert solution.status is Status.CONVERGED
