"""The objective in whitened coordinates against its formula, wherever its blocks live."""

import traceback
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import rareclass
from made_tables import rare_mixture
from oracles.ordinal import TWO_CLASSES, ordinal_loss, ordinal_minimum, pair_weights
from rareclass import RankRC
from rareclass.findings import Status
from rareclass.kernels.kernels import Gaussian
from rareclass.ranking.problem import ProductQuestion, answer, solve
from rareclass.ranking.solvers.newton import (
    NewtonDirections,
    Objective,
    PathSettings,
    SampledHessian,
    minimize,
)
from rareclass.rows import ArrayRows, Budget, as_source

LAM, EPS = 0.01, 0.25


def problem_of(X, y, weight=None, block_rows=64, budget=10**8, n_jobs=1, **parameters):
    prepared = RankRC(eps=EPS, **parameters)._prepare(X, y, weight)
    problem = prepared.problem(LAM)
    rows = ArrayRows(
        as_source(X),
        prepared.data.target.labels.majority,
        prepared.data.target.labels.majority_weight,
        block_rows=block_rows,
        budget=Budget(budget),
        n_jobs=n_jobs,
    )
    return prepared, replace(problem, rows=rows)


def formula(problem, X, y, weight, w):
    """Value, gradient and Hessian with every pair formed."""
    weight = np.ones(len(y)) if weight is None else weight
    K = problem.expansion.kernel.block(X, problem.expansion.landmarks)
    F = K @ problem.whitener
    scale = 1 / pair_weights(y, weight, TWO_CLASSES).sum()
    value, by_row, hessian = ordinal_loss(F @ w, y, weight, TWO_CLASSES, EPS)
    value, gradient = scale * value + 0.5 * LAM * w @ w, scale * F.T @ by_row + LAM * w
    return value, gradient, scale * F.T @ hessian @ F + LAM * np.eye(len(w))


@pytest.mark.parametrize("landmarks", ["rare", "all", "random", 7])
@pytest.mark.parametrize("kernel", ["gaussian", "laplace", "linear", "polynomial"])
@pytest.mark.parametrize("weighted", [False, True])
def test_value_gradient_and_hessian_equal_all_pairs(kernel, landmarks, weighted):
    X, y = rare_mixture(150, 20)
    weight = np.random.default_rng(2).integers(0, 4, 150).astype(float) if weighted else None
    _, problem = problem_of(
        X, y, weight, 16, kernel=kernel, landmarks=landmarks, random_state=0, pos_label=1
    )
    rng = np.random.default_rng(1)
    w, v = rng.normal(size=problem.rank), rng.normal(size=problem.rank)
    value, gradient, hessian = formula(problem, X, y, weight, w)
    at = problem.evaluate(w)
    assert at.value == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(at.gradient, gradient, rtol=1e-10, atol=1e-10)
    product = answer([ProductQuestion(problem, at, v)])[0]
    np.testing.assert_allclose(product, hessian @ v, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_blocks_threads_and_memory_do_not_change_the_answer(dtype):
    X, y = rare_mixture(700, 40)
    X = X.astype(dtype)
    answers = []
    for block_rows, budget, n_jobs in [
        (1000, 10**8, 1),
        (16, 10**8, 3),
        (64, 30_000, 2),
        (50, 0, 1),
    ]:
        _, problem = problem_of(X, y, None, block_rows, budget, n_jobs)
        w = np.random.default_rng(0).normal(size=problem.rank)
        at = problem.evaluate(w)
        curved = problem.curved_rows(at)
        product = answer([ProductQuestion(problem, at, w)])[0]
        answers.append((at.value, at.gradient, product, curved))
    rtol = 1e-10 if dtype == np.float64 else 1e-5
    for other in answers[1:]:
        for found, wanted in zip(other, answers[0], strict=True):
            atol = rtol * np.abs(wanted).max()
            np.testing.assert_allclose(found, wanted, rtol=rtol, atol=atol)


def test_a_hessian_product_belongs_to_its_point_after_other_evaluations():
    X, y = rare_mixture(200, 20)
    _, problem = problem_of(X, y)
    rng = np.random.default_rng(0)
    w, v = rng.normal(size=(2, problem.rank))
    at = problem.evaluate(w)
    before = answer([ProductQuestion(problem, at, v)])[0]
    problem.evaluate(3 * w)
    np.testing.assert_allclose(answer([ProductQuestion(problem, at, v)])[0], before, rtol=1e-12)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("preconditioned", [False, True])
@pytest.mark.parametrize("lam", [1.0, 2.0**-8, 2.0**-14])
def test_newton_finds_the_minimum_that_lbfgs_finds(lam, preconditioned):
    X, y = rare_mixture(300, 25)
    prepared, problem = problem_of(X, y)
    problem = replace(problem, lam=lam)
    start = problem.evaluate(np.zeros(problem.rank))
    reference = np.linalg.norm(start.gradient)
    precondition = SampledHessian(problem) if preconditioned else None
    ways, run = [NewtonDirections(problem, precondition)], PathSettings(1e-9, 200)
    solution = solve(minimize(Objective(problem), start, reference, run, ways))
    assert solution.status is Status.CONVERGED
    assert np.linalg.norm(solution.at.gradient) <= 1e-9 * reference
    K = prepared.expansion.kernel.block(X, prepared.landmarks.points)
    known = (y, np.ones(len(y)), TWO_CLASSES)
    wanted, _ = ordinal_minimum(K, prepared.landmark_kernel, lam, EPS, *known)
    assert solution.at.value == pytest.approx(wanted, rel=1e-7)
    assert solution.at.value <= wanted * (1 + 1e-9)
    objectives = [step.objective for step in solution.history]
    assert all(b <= a * (1 + 1e-12) for a, b in pairwise(objectives))


def test_the_preconditioner_saves_passes():
    X, y = rare_mixture(3000, 60)
    _, problem = problem_of(X, y, block_rows=4096)
    problem = replace(problem, lam=2.0**-18)
    start = problem.evaluate(np.zeros(problem.rank))
    reference = np.linalg.norm(start.gradient)
    run = PathSettings(1e-6, 200)
    plain, faster = (
        solve(minimize(Objective(problem), start, reference, run, [NewtonDirections(*given)]))
        for given in ((problem,), (problem, SampledHessian(problem)))
    )
    assert faster.history[-1].passes < 0.7 * plain.history[-1].passes
    assert faster.at.value == pytest.approx(plain.at.value, rel=1e-8)


@pytest.mark.parametrize("eps", [0.5, 0.25, 0.01])
def test_a_tiny_lam_from_zero_converges_though_no_pair_has_curvature_there(eps):
    X, y = rare_mixture(3000, 60)
    model = RankRC(lam=2.0**-18, eps=eps).fit(X, y)
    assert model.status_ == "converged"
    assert model.history_[-1].passes < 1000


def test_few_functions_and_files_lie_between_fit_and_the_kernel(monkeypatch):
    """For a reader: in a pass of the rows."""
    ways = []
    original = Gaussian.block

    def block(*args):
        package = str(Path(rareclass.__file__).parent)
        stack = [frame for frame in traceback.extract_stack() if frame.filename.startswith(package)]
        way = [(frame.filename, frame.name) for frame in stack]
        ways.append(way[[name for _, name in way].index("fit") :])
        return original(*args)

    monkeypatch.setattr(Gaussian, "block", block)
    rng = np.random.default_rng(0)
    # So many rows that a pass works out its kernel anew: none lies in memory.
    RankRC(n_jobs=1, memory="64KiB").fit(rng.normal(size=(4000, 3)), np.arange(4000) < 20)
    passes = [way for way in ways if any(name == "answer" for _, name in way)]
    assert passes
    assert max(len(way) for way in passes) <= 10
    assert max(len({file for file, _ in way}) for way in passes) <= 5
