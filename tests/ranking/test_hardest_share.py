"""Two-way partial AUC: the share of the rare rows that score lowest, and the minimum over it."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from draws import draws
from made_tables import rare_mixture
from oracles.pairs import pair_loss
from rareclass import RankRC
from rareclass.findings import Status
from rareclass.ranking.losses import make_loss
from rareclass.ranking.solvers import reweighting as hardest_share
from rareclass.ranking.solvers.path import solve_paths
from rareclass.ranking.solvers.reweighting import lowest_share

LAM, SHARE = 2.0**-6, 0.5
X, Y = rare_mixture(300, 20)


@draws(60)
@given(st.integers(1, 8), st.floats(0.05, 1.0), st.data())
def test_lowest_share_is_the_heaviest_loss_under_the_caps(n, share, data):
    scores = data.draw(arrays(float, n, elements=st.integers(-3, 3).map(float)))
    weight = data.draw(arrays(float, n, elements=st.integers(0, 3).map(float)))
    found = lowest_share(scores, weight, share)
    caps = [(0.0, w / share) for w in weight]
    best = linprog(scores, A_eq=np.ones((1, n)), b_eq=[weight.sum()], bounds=caps)
    assert found.sum() == pytest.approx(weight.sum())
    assert (found <= weight / share * (1 + 1e-12)).all()
    assert scores @ found == pytest.approx(best.fun, abs=1e-9)
    # Rows that tie have the same share of their weights.
    for score in np.unique(scores):
        tied = (scores == score) & (weight > 0)
        if tied.any():
            assert np.ptp(found[tied] / weight[tied]) < 1e-12


def solved(loss, params, lam=LAM, weight=None):
    model = RankRC(loss=loss, loss_params=params, pos_label=1)
    prepared = model._prepare(X, Y, weight)
    problem = prepared.problem(lam)
    return prepared, problem, solve_paths([lambda: problem], [lam], 1e-8, 200)[0][0]


def loss_at(prepared, problem, w, level):
    """The two-way objective with every pair formed, from its definition."""
    labels, loss = prepared.target.labels, problem.loss
    K = problem.expansion.kernel.block(X, problem.expansion.landmarks)
    scores = K @ problem.whitener @ w
    rare, majority = scores[labels.rare], scores[labels.majority]
    lowest = np.sort(rare)[: round(SHARE * len(rare))]
    r = pair_loss(lowest[:, None] - majority, 0.5).mean(axis=0)
    eta = float(loss.thresholds(np.array([level]))[0])
    x, delta = r - eta, loss.softness * 0.5
    excess = ((x + np.sqrt(x**2 + 4 * delta**2)) / 2).mean()
    return eta + excess / loss.beta + 0.5 * problem.lam * w @ w


@pytest.mark.sampled(1)
@pytest.mark.parametrize("lam", [1.0, LAM, 2.0**-10])
def test_the_minimum_is_within_its_gap_of_every_other_point(lam):
    prepared, problem, solution = solved("partial_auc", {"rare_share": SHARE}, lam)
    assert solution.status is Status.CONVERGED
    assert 0.0 <= solution.optimality <= 2e-3
    w, levels = np.split(solution.at.w, [problem.rank])
    value = loss_at(prepared, problem, w, levels[0])
    assert solution.at.value == pytest.approx(value, rel=1e-9)
    bound = value * (1 - solution.optimality)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 0.1, 1.0):
        for _ in range(20):
            other = w + size * rng.normal(size=len(w)) * np.abs(w).mean()
            level = levels[0] + size * rng.normal() * 0.1
            assert loss_at(prepared, problem, other, level) >= bound
    one_way = solved("partial_auc", {}, lam)[2].at.w
    assert value < loss_at(prepared, problem, one_way[: problem.rank], one_way[-1])


def test_weights_are_copies():
    few = np.r_[0:100, np.flatnonzero(Y)[-8:]]
    weight = np.random.default_rng(0).integers(0, 4, len(few))
    copies = np.repeat(few, weight)
    params = {"loss": "partial_auc", "loss_params": {"rare_share": SHARE}, "lam": LAM}
    weighted = RankRC(**params, tol=1e-9, pos_label=1).fit(X[few], Y[few], weight)
    repeated = RankRC(**params, tol=1e-9, pos_label=1).fit(X[copies], Y[copies])
    assert weighted.objective_ == pytest.approx(repeated.objective_, rel=1e-6)
    np.testing.assert_allclose(
        weighted.score_samples(X), repeated.score_samples(X), rtol=1e-3, atol=1e-4
    )


@pytest.mark.parametrize("share", [0.0, 1.5])
def test_a_share_out_of_range_is_refused(share):
    with pytest.raises(ValueError, match="rare_share"):
        make_loss("partial_auc", 0.5, {"rare_share": share})


def overlapping(seed):
    """300 rows, 8 percent rare, shifted by one; some weights are zero."""
    rng = np.random.default_rng(seed)
    rare = (rng.random(300) < 0.08).astype(int)
    return rng.normal(size=(300, 4)) + rare[:, None], rare, rng.integers(0, 4, 300)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("share", "beta", "lam"), [(0.3, 0.1, 0.01), (0.2, 0.1, 1e-4)])
def test_the_gap_is_reached_where_classes_overlap(share, beta, lam, seed):
    rows, rare, weight = overlapping(seed)
    params = {"rare_share": share, "beta": beta}
    model = RankRC(loss="partial_auc", loss_params=params, lam=lam, width=2.0)
    model.fit(rows, rare, sample_weight=weight)
    assert model.optimality_ <= 2e-3
    assert model.status_ == str(Status.CONVERGED)


def test_a_gap_that_is_not_reached_is_told_with_its_goal_and_a_remedy(monkeypatch):
    monkeypatch.setattr(hardest_share, "_ROUNDS", 3)
    rows, rare, _ = overlapping(0)
    model = RankRC(loss="partial_auc", loss_params={"rare_share": 0.3}, lam=1e-4, width=2.0)
    with pytest.warns(ConvergenceWarning, match=r"wanted 0\.20%\. Raise lam or rare_share"):
        model.fit(rows, rare)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4])
def test_steps_do_not_depend_on_the_unit_of_the_loss(unit):
    """The bound falls by a 200th, five times what is taken for a step that went too far."""
    random, weight = np.random.default_rng(0), np.array([1.0, 2.0, 0.5, 1.0])
    scores = random.normal(size=(3, 4))
    steps, scaled = (hardest_share._Steps(weight, 0.5) for _ in range(2))
    for each, bound in zip(scores, (2.0, 1.99, 1.98), strict=True):
        found = scaled.next(unit * each, unit * bound)
        np.testing.assert_allclose(found, steps.next(each, bound), rtol=1e-9)
