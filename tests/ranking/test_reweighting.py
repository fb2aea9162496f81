"""Losses concave in the rare rows' own sums: sums against all pairs, tangents, rounds."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from made_tables import rare_mixture
from oracles.pairs import PAIRS, RARE_OUTER, pair_loss, ranking_loss, rows
from rareclass import RankRC
from rareclass.findings import Status
from rareclass.ranking.losses import make_loss
from rareclass.ranking.solvers import path as path_module
from rareclass.ranking.solvers.path import solve_paths

LAM, EPS = 2.0**-8, 0.5
X, Y = rare_mixture(400, 30)


@pytest.mark.parametrize("name", sorted(PAIRS))
@draws(40)
@given(data=rows(), n_blocks=st.integers(1, 3))
def test_rare_totals_equal_all_pairs(name, data, n_blocks):
    rare, majority, w_rare, w_majority = data
    loss = make_loss(name, 0.25)
    side = loss.rare(rare, w_rare)
    parts = np.array_split(np.arange(len(majority)), n_blocks)
    sums = sum(loss.rare_sums(side, majority[part], w_majority[part]) for part in parts)
    wanted = PAIRS[name](rare[:, None] - majority)[0] @ w_majority
    scale = np.abs(wanted).max() + w_majority.sum() * 10
    np.testing.assert_allclose(loss.rare_totals(side, sums), wanted, rtol=1e-10, atol=1e-10 * scale)


@pytest.mark.parametrize("name", ["smoothed_hinge", "squared_hinge", "logistic"])
def test_rare_totals_of_far_scores(name):
    rare = np.array([77.0, -1e6, -300.0, 0.5, 2.0])
    majority = np.array([-1e7, -400.0, -299.75, -100.0, 0.25, 0.75, 37.5, 50.0, 1e3, 1e5])
    weight = np.linspace(0.5, 2, len(majority))
    loss = make_loss(name, 0.25)
    side = loss.rare(rare, np.ones(5))
    found = loss.rare_totals(side, loss.rare_sums(side, majority, weight))
    wanted = PAIRS[name](rare[:, None] - majority)[0] @ weight
    np.testing.assert_allclose(found, wanted, rtol=1e-10)


def test_rare_totals_are_never_below_zero_whatever_rounding_does():
    """A logarithm is taken of them. Sums of 3,000 scores of 1e14 have no digit after the point."""
    rare, weight = np.array([-1e14, 0.25, 1e14]), np.full(3000, 0.7)
    loss = make_loss("smoothed_hinge", 0.25)
    side = loss.rare(rare, np.ones(3))
    sums = loss.rare_sums(side, np.full(3000, rare[2]), weight)
    assert (loss.rare_totals(side, sums) >= 0.0).all()


@given(st.floats(0.01, 10), st.floats(1e-3, 1), st.lists(st.floats(0, 5), min_size=2, max_size=2))
def test_the_outer_function_lies_below_its_tangents(depth, share, points):
    here, there = points
    loss = make_loss("top", 0.5, {"depth": depth})
    at = loss.outer(np.array([here, there]), share)
    assert at.value[1] <= at.value[0] + at.slope[0] * (there - here) + 1e-12


def problem_of(rounds, weight=None, **params):
    model = RankRC(loss="top", loss_params={"rounds": rounds, **params}, pos_label=1)
    prepared = model._prepare(X, Y, weight)
    return prepared, prepared.problem(LAM)


def objective_of(prepared, problem, coefficients, plain):
    """The whole objective with every pair formed, its unit from the plain solution."""
    labels, depth = prepared.target.labels, problem.loss.depth
    K = problem.expansion.kernel.block(X, problem.expansion.landmarks)
    w_rare = labels.rare_weight
    w_majority = problem.majority_weight
    reach = depth * w_rare.sum() / w_majority.sum()

    def means(beta):
        z = (K @ beta)[labels.rare][:, None] - (K @ beta)[labels.majority]
        return pair_loss(z, EPS) @ w_majority / w_majority.sum()

    unit = w_rare.sum() / (w_rare @ (1 / (means(plain) + reach)))
    q = means(coefficients)
    norm = coefficients @ prepared.landmark_kernel @ coefficients
    return unit * w_rare @ RARE_OUTER["top"](q, reach) / w_rare.sum() + 0.5 * LAM * norm


@pytest.mark.sampled(1)
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_never_rises_and_is_that_of_all_pairs(weighted):
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y)) if weighted else None
    prepared, problem = problem_of(1, weight)
    plain_problem = replace(problem, loss=make_loss("smoothed_hinge", EPS))
    plain = solve_paths([lambda: plain_problem], [LAM], 1e-9, 200)[0][0].at.coefficients
    values = [objective_of(prepared, problem, plain, plain)]
    for rounds in range(1, 9):
        _, problem = problem_of(rounds, weight)
        solution = solve_paths([lambda problem=problem: problem], [LAM], 1e-9, 200)[0][0]
        values.append(solution.at.value)
        wanted = objective_of(prepared, problem, solution.at.coefficients, plain)
        assert solution.at.value == pytest.approx(wanted, rel=1e-8)
        assert solution.status is Status.CONVERGED
        assert solution.n_iter == len(solution.history)
    assert (np.diff(values) <= 1e-12 * values[0]).all()
    assert values[1] < 0.999 * values[0]


def test_many_rounds_end_where_the_whole_objective_is_flat(monkeypatch):
    from rareclass.ranking.solvers import reweighting

    monkeypatch.setattr(reweighting, "_LEAST_FALL", 1e-14)
    prepared, problem = problem_of(400)
    start = problem.evaluate(np.zeros(problem.size))
    solution = solve_paths([lambda: problem], [LAM], 1e-10, 200)[0][0]
    plain_problem = replace(problem, loss=make_loss("smoothed_hinge", EPS))
    plain = solve_paths([lambda: plain_problem], [LAM], 1e-10, 200)[0][0].at
    T = problem.whitener

    def value(w):
        return objective_of(prepared, problem, T @ w, plain.coefficients)

    def slope(w):
        steps = 1e-5 * np.eye(len(w))[:8]
        return np.array([(value(w + s) - value(w - s)) / 2e-5 for s in steps])

    assert np.abs(slope(solution.at.w)).max() < 1e-3 * np.linalg.norm(start.gradient)
    assert np.abs(slope(plain.w)).max() > 1e-2 * np.linalg.norm(start.gradient)


@pytest.mark.sampled(0)
def test_from_a_part_of_the_rows_the_objective_is_that_of_all_rows(monkeypatch):
    from rareclass.kernels import expansion

    monkeypatch.setattr(expansion, "_MOST_BLOCK_ROWS", 32)
    monkeypatch.setattr("rareclass.rows.protocol.RUN_ROWS", 32)
    wanted = [
        solution.at.value
        for solution in solve_paths([lambda: problem_of(10)[1]], [LAM, 0.1], 1e-9, 200)[0]
    ]
    monkeypatch.setattr(path_module, "part_stride", lambda n_rows, n_landmarks: 3)
    found = solve_paths([lambda: problem_of(10)[1]], [LAM, 0.1], 1e-9, 200, at_once=2)[0]
    np.testing.assert_allclose([s.at.value for s in found], wanted, rtol=1e-6)


def test_a_great_depth_is_the_plain_loss():
    plain = RankRC(lam=LAM, tol=1e-9).fit(X, Y)
    deep = RankRC(lam=LAM, tol=1e-9, loss="top", loss_params={"depth": 1e9}).fit(X, Y)
    np.testing.assert_allclose(deep.score_samples(X), plain.score_samples(X), atol=1e-5)


def test_the_plain_loss_of_all_pairs_is_the_sum_of_the_rare_totals():
    rng = np.random.default_rng(0)
    rare, majority, w, v = (rng.normal(size=n) for n in (9, 40, 9, 40))
    loss, w, v = make_loss("smoothed_hinge", 0.5), np.abs(w), np.abs(v)
    side = loss.rare(rare, w)
    totals = loss.rare_totals(side, loss.rare_sums(side, majority, v))
    assert w @ totals == pytest.approx(ranking_loss(rare, majority, w, v, 0.5)[0], rel=1e-12)


@pytest.mark.parametrize("params", [{"depth": 0.0}, {"rounds": 0}, {"rounds": 1.5}])
def test_parameters_out_of_range_are_refused_by_name(params):
    with pytest.raises(ValueError, match=next(iter(params))):
        make_loss("top", 0.5, params)
