"""Every loss by name through the estimator: weights are copies, rows in parts, the whole path."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from made_tables import rare_mixture
from rareclass import RankRC, rankrc_path
from rareclass.ranking.losses import LOSSES
from rareclass.ranking.problem import ProductQuestion, answer, solve
from rareclass.ranking.solvers import newton
from rareclass.ranking.solvers.newton import Objective, line_search

X, Y = rare_mixture(400, 30)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def model(loss, **parameters):
    return RankRC(**{"loss": loss, "lam": 2.0**-6, "tol": 1e-9, "pos_label": 1, **parameters})


@pytest.mark.parametrize("penalty", ["l2", "l1"])
@every_loss
@draws(4)
@given(seed=st.integers(0, 10**6))
def test_weights_are_copies(loss, penalty, seed):
    rng = np.random.default_rng(seed)
    few = np.r_[0:80, np.flatnonzero(Y)[-8:]]
    weight = rng.integers(0, 4, len(few))
    weight[-2:] = 1
    weight[0:2] = 2
    copies = np.repeat(few, weight)
    weighted = model(loss, penalty=penalty).fit(X[few], Y[few], weight)
    repeated = model(loss, penalty=penalty).fit(X[copies], Y[copies])
    assert weighted.width_ == pytest.approx(repeated.width_, rel=1e-12)
    assert weighted.offset_ == pytest.approx(repeated.offset_, abs=1e-4)
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-9)
    np.testing.assert_allclose(
        weighted.score_samples(X), repeated.score_samples(X), rtol=1e-4, atol=1e-5
    )


@every_loss
def test_threads_blocks_and_the_order_of_rows_do_not_matter(loss):
    shuffle = np.random.default_rng(0).permutation(len(X))
    wanted = model(loss).fit(X, Y).score_samples(X)
    found = model(loss, memory="40 kB", n_jobs=2).fit(X[shuffle], Y[shuffle]).score_samples(X)
    np.testing.assert_allclose(found, wanted, atol=1e-6 * np.abs(wanted).max())


@every_loss
def test_the_whole_path_converges(loss):
    lams = 2.0 ** np.arange(10, -21, -2)
    for fitted in rankrc_path(X, Y, lams, loss=loss, pos_label=1):
        assert fitted.status_ == "converged"
        assert fitted.optimality_ <= 1e-6


@every_loss
def test_a_tiny_lam_from_zero_converges(loss):
    fitted = model(loss, lam=2.0**-20, tol=1e-6).fit(1e3 * X, Y)
    assert fitted.status_ == "converged"


def test_the_line_search_comes_back_from_where_the_loss_overflows():
    steep = model("pnorm_push", loss_params={"power": 40.0})
    problem = steep._prepare(X, Y, None).problem(2.0**-6)
    at = problem.evaluate(np.zeros(problem.rank))
    direction = -1e10 * at.gradient
    assert problem.evaluate(direction).value == np.inf
    length, trial, _ = solve(line_search(Objective(problem), at, direction))
    assert 0.0 < length < 1.0
    assert trial.value < at.value


@pytest.mark.parametrize("loss", ["smoothed_hinge", "squared_hinge"])
@pytest.mark.parametrize("rare_rows", [7, 4096])
def test_the_sampled_hessian_of_all_rows_is_the_hessian(loss, rare_rows, monkeypatch):
    monkeypatch.setattr(newton, "_RARE_ROWS", rare_rows)
    weight = np.random.default_rng(0).uniform(0.5, 2, len(Y))
    problem = model(loss)._prepare(X, Y, weight).problem(0.01)
    rng = np.random.default_rng(1)
    at = problem.evaluate(0.3 * rng.normal(size=problem.rank))
    inverse = newton.SampledHessian(problem)(at)
    v = rng.normal(size=problem.rank)
    found = inverse(answer([ProductQuestion(problem, at, v)])[0])
    np.testing.assert_allclose(found, v, atol=1e-6 * np.abs(v).max())


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("loss", LOSSES)
def test_rows_that_are_all_equal_are_solved_without_a_warning(loss, dtype):
    y = (np.random.default_rng(0).random(300) < 0.1).astype(int)
    model = RankRC(loss=loss, width=1.0).fit(np.ones((300, 4), dtype=dtype), y)
    assert model.status_ == "converged"
    np.testing.assert_allclose(model.dual_coef_, 0.0, atol=1e-6)
    assert model.score(np.ones((4, 4)), [0, 1, 0, 1]) == 0.5
