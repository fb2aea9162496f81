"""Every pair loss against all pairs, and by name through the estimator: weights, parts, paths."""

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from draws import draws
from made_tables import rare_mixture
from oracles.pairs import PAIRS, power, rows
from rareclass import RankRC, rankrc_path
from rareclass.ranking.losses import LOSSES, SmoothedHinge, make_loss
from rareclass.ranking.problem import ProductQuestion, answer, solve
from rareclass.ranking.solvers import newton
from rareclass.ranking.solvers.newton import Objective, line_search


@dataclass
class Case:
    """A loss by its pair; `p` that of the p-norm push, None for the pair loss itself."""

    pair: str
    p: float | None = None
    eps: float = 0.25

    @property
    def loss(self):
        if self.p is None:
            return make_loss(self.pair, self.eps)
        return make_loss("pnorm_push", self.eps, {"power": self.p, "pair_loss": self.pair})


CASES = [Case("smoothed_hinge", eps=eps) for eps in (0.5, 0.125)]
CASES += [Case(pair, p) for pair in PAIRS for p in (None, 3.0)]
every_case = pytest.mark.parametrize("case", CASES, ids=str)


def all_pairs(case, rare, majority, w_rare, w_majority):
    """Value, gradient and Hessian over (rare, majority), every pair formed."""
    total = w_rare.sum() or 1.0
    value, slope, curvature = PAIRS[case.pair](rare[:, None] - majority, case.eps)
    row = (w_rare[:, None] * value).sum(axis=0)
    # Jacobian of each majority row's own sum over (rare, majority).
    by_rare = w_rare[:, None] * slope
    jacobian = np.concatenate([by_rare, np.diag(-by_rare.sum(axis=0))])  # (n + m, m)
    if case.p is None:
        answer, force, bend = w_majority @ row, w_majority, 0 * row
    else:
        at_zero = float(PAIRS[case.pair](np.zeros(1), case.eps)[0][0])
        outer = power(row / total, at_zero, case.p)
        answer, force = total * w_majority @ outer[0], w_majority * outer[1]
        bend = w_majority * outer[2] / total
    c = w_rare[:, None] * curvature * force
    hessian = np.block([[np.diag(c.sum(axis=1)), -c], [-c.T, np.diag(c.sum(axis=0))]])
    return answer, jacobian @ force, hessian + (jacobian * bend) @ jacobian.T


def found_by(loss, rare, majority, w_rare, w_majority, d, n_blocks):
    """The same from the loss, over blocks: value, gradient, Hessian times d."""
    n, parts = len(rare), np.array_split(np.arange(len(majority)), n_blocks)
    side = loss.rare(rare, w_rare)
    terms = [loss.block(side, majority[part], w_majority[part]) for part in parts]
    of_rare = loss.finish(side, sum(t.sums for t in terms))
    value = sum(t.value for t in terms) + of_rare.value
    gradient = np.concatenate([of_rare.gradient, *(t.gradient for t in terms)])
    prefix = loss.rare_direction(side, d[:n])
    products = [
        loss.curvature(side, prefix, t.zone, d[n:][part], w_majority[part])
        for t, part in zip(terms, parts, strict=True)
    ]
    last = loss.finish_curvature(side, prefix, d[:n], sum(more for _, more in products))
    return value, gradient, np.concatenate([last, *(by_row for by_row, _ in products)])


def assert_near(found, wanted, scale):
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10 * scale)


def with_all_pairs(case, data, d, n_blocks):
    """Value, gradient and Hessian times d, found and of all pairs; and sizes of the Hessian."""
    value, gradient, hessian = all_pairs(case, *data)
    found = found_by(case.loss, *data, d, n_blocks)
    return found, (value, gradient, hessian @ d), np.abs(hessian)


def test_every_loss_has_its_oracle():
    assert LOSSES.keys() == {*PAIRS, "pnorm_push"}


@every_case
@draws(100)
@given(data=rows(), n_blocks=st.integers(1, 3), seed=st.integers(0, 2**32 - 1))
def test_value_gradient_and_hessian_equal_all_pairs(case, data, n_blocks, seed):
    rare, majority, *weights = data
    # The mean of the rare scores, which centres them, off the grid moves pairs by a rounding error
    # across the border of a zone: all margins are kept off the borders.
    majority = majority + 0.0625
    d = np.random.default_rng(seed).normal(size=len(rare) + len(majority))
    found, wanted, hessian = with_all_pairs(case, (rare, majority, *weights), d, n_blocks)
    sizes = (abs(wanted[0]), np.abs(wanted[1]).max(), 4 * hessian.sum(axis=1).max())
    pairs = weights[0].sum() * weights[1].sum()
    for f, w, size in zip(found, wanted, sizes, strict=True):
        assert_near(f, w, size + pairs)


@draws(50)
@given(data=rows())
def test_value_and_gradient_where_pieces_meet(data):
    rare, majority, *weights = data
    case, d = Case("smoothed_hinge", eps=0.5), np.zeros(len(rare) + len(majority))
    found, wanted, _ = with_all_pairs(case, data, d, 1)
    scale = weights[0].sum() * weights[1].sum() * 10
    for f, w in zip(found[:2], wanted[:2], strict=True):
        assert_near(f, w, scale)


@pytest.mark.parametrize("name", PAIRS)
@draws(40)
@given(data=rows())
def test_the_curvature_of_single_pairs(name, data):
    rare, majority, w_rare, _ = data
    majority = majority + 0.0625  # off the borders of zones, as above
    loss = make_loss(name, 0.25)
    side = loss.rare(rare, w_rare)
    margins = rare[:, None] - majority
    wanted = w_rare[:, None] * PAIRS[name](margins, 0.25)[2]
    values = loss.pair_curvature(side, slice(0, len(rare)), majority)
    assert_near(values, wanted, np.abs(wanted).max())
    np.testing.assert_array_equal(values[wanted == 0.0], 0.0)
    np.testing.assert_array_equal(loss.pair_curvature(side, slice(1, 3), majority), values[1:3])


@every_case
def test_many_rows_equal_all_pairs_to_1e_10_of_the_numbers_themselves(case):
    rng = np.random.default_rng(0)
    rare, majority = rng.normal(1, 2, 120), rng.normal(0, 2, 700)
    rare[::3] = np.round(rare[::3])
    weights, d = (rng.uniform(0.1, 3, 120), rng.uniform(0.1, 3, 700)), rng.normal(size=820)
    found, wanted, _ = with_all_pairs(case, (rare, majority, *weights), d, 3)
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    for f, w in zip(found[1:], wanted[1:], strict=True):
        assert_near(f, w, 0.1 * np.abs(w).max())


@every_case
def test_far_scores_equal_all_pairs(case):
    rare = np.array([-1e6, -300.0, -299.5, 0.5, 2.0, 77.0, 1e4])
    majority = np.array([-1e7, -400.0, -299.75, -100.0, 0.25, 0.75, 37.5, 50.0, 1e3, 1e5])
    rng = np.random.default_rng(0)
    weights, d = (rng.uniform(0.5, 2, 7), rng.uniform(0.5, 2, 10)), rng.normal(size=17)
    found, wanted, hessian = with_all_pairs(case, (rare, majority, *weights), d, 2)
    sizes = (0.0, np.abs(wanted[1]).max(), hessian.max())
    for f, w, size in zip(found, wanted, sizes, strict=True):
        assert_near(f, w, size)


@pytest.mark.parametrize("far", [1e80, 1e120])
def test_an_outer_function_that_overflows_says_that_it_is_too_far(far):
    """At 1e80 the value overflows and its slope does not."""
    loss = make_loss("pnorm_push", 0.25, {"power": 4.0})
    side = loss.rare(np.array([0.0, 1.0]), np.ones(2))
    terms, near = (loss.block(side, np.array([-5.0, t]), np.ones(2)) for t in (far, 1.0))
    assert terms.value == np.inf
    assert np.isnan(terms.gradient).all()
    assert np.isnan(terms.sums).all()
    assert terms.sums.shape == near.sums.shape


@pytest.mark.parametrize(
    ("loss", "params", "message"),
    [
        ("hinge", None, "smoothed_hinge"),
        ("smoothed_hinge", {"eps": 0.0}, "eps"),
        ("smoothed_hinge", {"eps": 0.6}, "eps"),
        ("smoothed_hinge", {"eps": np.nan}, "eps"),
        ("smoothed_hinge", {"eps": "x"}, "eps='x'.*above 0.*at most 0.5"),
        ("pnorm_push", {"power": 0.5}, "power"),
        ("pnorm_push", {"power": "4"}, "power='4'.*at least 1"),
        ("pnorm_push", {"pair_loss": "pnorm_push"}, "pair_loss"),
        ("pnorm_push", {"pair_loss": ["squared_hinge"]}, "pair_loss=.*is not one of"),
        ("pnorm_push", {"eps": 0.7}, "eps"),
        ("pnorm_push", {"depth": 1.0}, "has no parameter 'depth'; it has eps, pair_loss, power"),
        ("pnorm_push", 4, "loss_params=4"),
        (LOSSES["smoothed_hinge"], None, "the class itself"),
        (SmoothedHinge(), {"eps": 0.1}, "belongs to a loss given by name"),
    ],
)
def test_what_is_no_loss_or_out_of_range_is_refused_by_name(loss, params, message):
    with pytest.raises(ValueError, match=message):
        make_loss(loss, 0.5, params)


def test_a_loss_of_ones_own_is_itself():
    own = SmoothedHinge(0.1)
    assert make_loss(own, 0.5) is own


X, Y = rare_mixture(400, 30)
every_loss = pytest.mark.parametrize("loss", LOSSES)


def model(loss, **parameters):
    return RankRC(**{"loss": loss, "lam": 2.0**-6, "tol": 1e-9, "pos_label": 1, **parameters})


@pytest.mark.sampled(4)
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
    from_zero = model(loss, lam=2.0**-20, tol=1e-6).fit(1e3 * X, Y)
    assert from_zero.status_ == "converged"


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
