"""penalty="l1" against all pairs, its certificate, and what a sparse model promises."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning

from draws import draws
from made_tables import rare_mixture
from oracles.ordinal import cost_matrix, ordinal_loss, pair_weights, split_minimum
from rareclass import OrdinalRankRC, OrdinalRankRCCV, RankRC, RankRCCV, RankSVM, rankrc_path
from rareclass.metrics import roc_auc
from rareclass.ranking.losses import LOSSES
from rareclass.ranking.problem import ProductQuestion, answer
from rareclass.ranking.solve import solve_paths as paths_of
from rareclass.ranking.solvers.newton import PathSettings
from rareclass.ranking.solvers.proximal_newton import (
    ActiveHessian,
    Penalized,
    QuadraticModel,
    _between,
    default_lams,
    duality_gap,
    largest_lam,
    unit_norm,
    violations,
)

X, Y = rare_mixture(400, 30)
solve_paths = partial(paths_of, penalty="l1")


def problem_of(X, y, weight=None, held_out=None, **parameters):
    prepared = RankRC(**parameters)._prepare(X, y, weight)
    return replace(prepared.problem(1.0, held_out, coordinates=unit_norm), lam=0.0)


def lam_max(problem):
    at = problem.evaluate(np.zeros(problem.rank))
    return largest_lam(at.gradient)


@draws(25)
@given(
    seed=st.integers(0, 10**6),
    pair_cost=st.sampled_from(["two classes", None, "distance"]),
    eps=st.sampled_from([0.5, 0.25, 0.02]),
    share=st.sampled_from([0.9, 0.3, 0.05, 0.003]),
    kernel=st.sampled_from(["gaussian", "linear", "polynomial"]),
    landmarks=st.sampled_from(["rare", "all"]),
    rounded=st.booleans(),
    weighted=st.booleans(),
)
def test_the_model_is_the_minimum_over_all_pairs(
    seed, pair_cost, eps, share, kernel, landmarks, rounded, weighted
):
    """Of two classes, or of four levels of which the second is frequent."""
    rng = np.random.default_rng(seed)
    common = {"kernel": kernel, "landmarks": landmarks, "width": 2.0, "eps": eps}
    if pair_cost == "two classes":
        y, costs, machine = np.zeros(50, dtype=int), cost_matrix(2), partial(RankRC, **common)
        y[rng.choice(50, 9, replace=False)] = 1
    else:
        y, costs = np.ones(50, dtype=int), cost_matrix(4, pair_cost)
        y[rng.choice(50, 12, replace=False)] = np.resize([0, 2, 3], 12)
        machine = partial(OrdinalRankRC, pair_cost=pair_cost, **common)
    rows = rng.normal(size=(50, 3)) + 0.8 * y[:, None]
    rows = np.round(rows) if rounded else rows  # ties and repeated rows
    weight = rng.integers(1, 5, 50).astype(float) if weighted else np.ones(50)
    prepared = machine()._prepare(rows, y, weight)
    points, k = prepared.landmarks.points, prepared.expansion.kernel.block
    smooth = replace(prepared.problem(1.0, coordinates=unit_norm), lam=0.0)
    K, sizes, lam = k(rows, points), np.sqrt(np.diag(k(points, points))), share * lam_max(smooth)
    scale = 1.0 / pair_weights(y, weight, costs).sum()

    def objective(beta):
        value, by_row, _ = ordinal_loss(K @ beta, y, weight, costs, eps)
        return scale * value + lam * sizes @ np.abs(beta), scale * (K.T @ by_row)

    model = machine(penalty="l1", lam=lam, tol=1e-9).fit(rows, y, weight)
    wanted = split_minimum(objective, lam * sizes, len(points))
    assert model.objective_ <= wanted + 1e-7 * abs(wanted)
    # What the model says of itself is so.
    beta = np.zeros(len(points))
    for point, coefficient in zip(model.landmarks_, model.dual_coef_, strict=True):
        beta[np.flatnonzero((points == point).all(axis=1))] = coefficient
    value, gradient = objective(beta)
    assert model.objective_ == pytest.approx(value, rel=1e-9)
    worst = violations(beta * sizes, gradient / np.where(sizes > 0, sizes, 1), lam)
    assert worst.max() <= 1e-8 * lam / share
    assert model.duality_gap_ >= value - wanted - 1e-9 * abs(value)
    assert model.duality_gap_ < 1e-5 * value / share


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", LOSSES)
def test_every_smooth_loss_is_minimised(name):
    few = np.r_[0:60, np.flatnonzero(Y)[-6:]]
    problem = problem_of(X[few], Y[few], loss=name)
    lam = 0.1 * lam_max(problem)
    ((solution,),) = solve_paths([lambda: problem], [lam], PathSettings(1e-8, 300))
    objective = Penalized(problem, lam)

    def everywhere(w):
        at = problem.evaluate(w)
        return objective.value(at), at.gradient

    wanted = split_minimum(everywhere, np.full(problem.rank, lam), problem.rank)
    assert solution.status == "converged"
    assert 0 < np.count_nonzero(solution.at.w) < problem.rank
    assert solution.at.value <= wanted + 1e-6 * abs(wanted)
    at = problem.evaluate(solution.at.w)
    assert objective.value(at) == pytest.approx(solution.at.value, rel=1e-10)
    assert objective.violations(at).max() <= 1.01e-8 * lam / 0.1


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_hessian_of_a_few_unknowns_is_part_of_the_whole(name, dtype):
    weight = np.random.default_rng(0).integers(0, 4, len(Y)).astype(float)
    problem = problem_of(X.astype(dtype), Y, weight, np.arange(len(Y)) % 5 == 0, loss=name)
    at = problem.evaluate(0.5 * np.random.default_rng(1).normal(size=problem.rank))
    active = np.r_[1, 4, 7, problem.rank - 1]
    H = answer([ActiveHessian(problem, at, active)])[0]
    columns = answer([ProductQuestion(problem, at, e) for e in np.eye(problem.rank)[active]])
    np.testing.assert_allclose(H, np.array(columns)[:, active], rtol=1e-9, atol=1e-12)


@draws(40)
@given(st.integers(0, 10**6), st.integers(1, 12), st.sampled_from([1e-9, 1e-4, 1.0]))
def test_the_model_of_a_step_is_minimised(seed, n, alike):
    rng = np.random.default_rng(seed)
    F = rng.normal(size=(20, 1)) + alike * rng.normal(size=(20, n))
    H = F.T @ F + 1e-8 * np.eye(n)
    w, lam = rng.normal(size=n) * (rng.random(n) < 0.5), rng.random()
    model = QuadraticModel(w, F.T @ rng.normal(size=20), H, lam)
    v = model.minimum(1e-8)
    slope = model.gradient + H @ (v - w)
    assert violations(v, slope, lam).max() <= 1.1e-8
    assert model.decrease(v) >= 0.0


@draws(30)
@given(st.integers(0, 10**6), st.floats(0.01, 2.0))
def test_no_point_is_lower_by_more_than_the_gap(seed, share):
    problem = problem_of(X[:150], Y[:150])
    rng = np.random.default_rng(seed)
    lam = share * lam_max(problem)
    ((best,),) = solve_paths([lambda: problem], [lam], PathSettings(1e-9, 100))
    w = rng.normal(size=problem.rank) * rng.choice([0.0, 0.1, 3.0])
    near = best.at.w * (1 + 0.1 * rng.normal())
    for point in (w, near, best.at.w):
        at = problem.evaluate(point)
        at = at._replace(value=at.value + lam * np.abs(point).sum())
        gap = duality_gap(at, lam)
        assert gap >= at.value - best.at.value - 1e-12
    assert gap <= 1e-6 * at.value / min(share, 1.0)


def test_from_the_largest_lam_on_no_landmark_is_used():
    largest = lam_max(problem_of(X, Y))
    K = RankRC().fit(X, Y)._expansion()
    K = K.kernel.block(X, K.landmarks)
    # The slope of the loss at zero is -1: means of the kernel over both classes differ by it.
    closed_form = np.abs(K[Y == 1].mean(axis=0) - K[Y == 0].mean(axis=0)).max()
    assert largest == pytest.approx(closed_form, rel=1e-12)
    with pytest.warns(UserWarning, match=f"below {largest:.3g}"):
        none = RankRC(penalty="l1", lam=1.0001 * largest).fit(X, Y)
    assert (none.n_landmarks_, none.landmarks_.shape, none.dual_coef_.shape) == (0, (0, 4), (0,))
    assert not none.score_samples(X).any()
    assert none.transform(X).shape == (400, 0)
    assert none.n_iter_ == 0
    one = RankRC(penalty="l1", lam=0.9999 * largest).fit(X, Y)
    assert one.n_landmarks_ >= 1


def test_along_the_path_the_loss_falls_and_the_penalty_grows():
    problem = problem_of(X, Y)
    lams = [lam_max(problem) * 2.0**-k for k in range(12)]
    (path,) = solve_paths([lambda: problem], lams, PathSettings(1e-9, 100))
    norms = np.array([np.abs(s.at.w).sum() for s in path])
    values = np.array([s.at.value for s in path])
    losses = values - lams * norms
    assert (np.diff(values) < 0).all()
    assert (np.diff(norms) > -1e-8).all()
    assert (np.diff(losses) < 1e-8).all()
    sizes = [np.count_nonzero(s.at.w) for s in path]
    assert sizes[0] == 0 < sizes[1] < sizes[-1]
    # The order in which lams are given does not matter, nor does it whether there are others.
    (again,) = solve_paths([lambda: problem], lams[::-1], PathSettings(1e-9, 100))
    for a, b in zip(path, again[::-1], strict=True):
        assert a.at.value == pytest.approx(b.at.value, rel=1e-9)
    alone = rankrc_path(X, Y, [lams[7]], penalty="l1", tol=1e-9)[0]
    assert alone.objective_ == pytest.approx(values[7], rel=1e-9)
    assert alone.n_landmarks_ == sizes[7]
    assert alone.history_[-1].passes > alone.n_iter_


def test_folds_are_solved_in_step_as_each_alone():
    problems = []
    prepared = RankRC()._prepare(X, Y, None, several=True)
    for k in range(3):
        problem = prepared.problem(1.0, np.arange(len(Y)) % 3 == k, coordinates=unit_norm)
        problems.append(problem)
    lams, told, done = [0.03, 0.001], [], []
    together = solve_paths(
        [lambda p=p: p for p in problems],
        lams,
        PathSettings(1e-9, 100, done=lambda: done.append(1)),
        2,
        lambda *about: told.append(about[:2]),
    )
    for problem, path in zip(problems, together, strict=True):
        (alone,) = solve_paths([lambda p=problem: p], lams, PathSettings(1e-9, 100))
        for a, b in zip(path, alone, strict=True):
            np.testing.assert_allclose(a.at.w, b.at.w, rtol=1e-7, atol=1e-9)
            held_out = problem.whitener.any(axis=1)
            assert not a.at.coefficients[~held_out].any()
    assert len(done) == 6
    assert set(told) == {(k, lam) for k in range(3) for lam in lams}


class Counting:
    """A kernel that keeps the number of entries it has worked out."""

    def __init__(self):
        self.entries = 0

    def __call__(self, A, B):
        self.entries += A.shape[0] * B.shape[0]
        return np.exp(-((A[:, None] - B[None]) ** 2).sum(-1))


def test_scoring_costs_what_the_landmarks_in_use_cost():
    kernel = Counting()
    cost = {}
    for penalty, lam in (("l2", 0.01), ("l1", 0.001), ("l1", 0.03)):
        model = RankRC(kernel=kernel, penalty=penalty, lam=lam, n_jobs=1).fit(X, Y)
        kernel.entries = 0
        scores = model.score_samples(X)
        cost[penalty, lam] = kernel.entries
        assert kernel.entries == len(X) * model.n_landmarks_
        assert model.landmarks_.shape[0] == len(model.dual_coef_) == model.n_landmarks_
        np.testing.assert_array_equal(X[model.landmark_rows_], model.landmarks_)
        np.testing.assert_allclose(
            kernel(X, model.landmarks_) @ model.dual_coef_, scores, rtol=1e-9
        )
        features = model.transform(X)
        assert features.shape == (400, model.whitener_.shape[1])
        assert model.get_feature_names_out().shape == (features.shape[1],)
        K = kernel(model.landmarks_, model.landmarks_)
        at_landmarks = model.transform(model.landmarks_)
        np.testing.assert_allclose(at_landmarks @ at_landmarks.T, K, atol=1e-6)
    assert cost["l1", 0.03] < cost["l1", 0.001] < cost["l2", 0.01] == 400 * 30


def test_a_solver_cut_short_says_so():
    with pytest.warns(ConvergenceWarning, match="reached max_iter after 1 iterations"):
        model = RankRC(penalty="l1", lam=1e-3, max_iter=1).fit(X, Y)
    best = RankRC(penalty="l1", lam=1e-3).fit(X, Y)
    assert model.status_ == "reached max_iter"
    assert model.optimality_ > 1e-6 >= best.optimality_
    assert model.duality_gap_ >= model.objective_ - best.objective_ > 0.0
    assert [step.iteration for step in best.history_] == list(range(1, best.n_iter_ + 1))
    assert best.history_[-1].objective == best.objective_
    assert (np.diff([step.objective for step in best.history_]) <= 1e-15).all()


def test_ranksvm_can_be_sparse_too():
    few = np.r_[0:90, np.flatnonzero(Y)[-10:]]
    model = RankSVM(penalty="l1", lam=0.01).fit(X[few], Y[few])
    assert 0 < model.n_landmarks_ < 60
    assert roc_auc(Y == 1, model.score_samples(X)) > 0.8
    assert RankRC(lam=0.01).fit(X, Y).n_landmarks_ == 30


@pytest.mark.sampled(0)
def test_cross_validation_goes_from_the_first_landmark_down():
    model = RankRCCV(penalty="l1", cv=3, random_state=0).fit(X, Y)
    results = model.cv_results_
    prepared = RankRC()._prepare(X, Y, None)
    lams = default_lams(prepared.problem(1.0, coordinates=unit_norm))
    np.testing.assert_allclose(results["lam"], lams, rtol=1e-12)
    exponents = np.array([1 / 32, 1 / 16, 1 / 8, 1 / 4, 1 / 2, *range(1, 33)])
    np.testing.assert_allclose(lams, lam_max(problem_of(X, Y)) * 2 ** (-exponents / 2), rtol=1e-12)
    counts = results["mean_n_landmarks"]
    assert counts[0] < 10 < counts[-1]
    assert "n_landmarks" not in results
    assert model.best_lam_ == lams[model.best_index_]
    alone = RankRC(penalty="l1", lam=model.best_lam_).fit(X, Y)
    np.testing.assert_allclose(model.score_samples(X), alone.score_samples(X), atol=1e-5)
    # The grids of ridge fits are the paper's as before.
    assert len(RankRCCV(cv=3).fit(X, Y).cv_results_["lam"]) == 16


def test_there_is_a_grid_of_lams_where_no_landmark_is_of_use():
    problem = RankRC()._prepare(X, Y, None).problem(1.0, coordinates=unit_norm)
    lams = np.array(default_lams(replace(problem, scale=0.0)))
    assert ((lams > 0.0) & (lams < 1.0)).all()


def test_lams_on_the_way_have_even_ratios():
    np.testing.assert_allclose(_between(2.0, 2.0 / 8**3.5), 2.0 / 8 ** (3.5 / 4 * np.arange(1, 4)))
    assert _between(2.0, 0.25) == _between(2.0, 3.0) == []


@pytest.mark.sampled(0)
def test_the_most_landmarks_are_kept_to():
    common = {"lams": [0.08, 0.04, 0.01, 0.002], "penalty": "l1", "cv": 3, "random_state": 0}
    free = RankRCCV(**common).fit(X, Y)
    for most in (2, 6, 10):
        model = RankRCCV(max_landmarks=most, **common).fit(X, Y)
        best, sizes = model.best_estimator_, model.cv_results_["n_landmarks"]
        assert best.n_landmarks_ == sizes[model.best_index_] <= most
        assert ((sizes > 0) & (sizes <= most)).all()
        means = model.cv_results_["mean_test_score"]
        tried = np.isin(free.cv_results_["lam"], model.cv_results_["lam"])
        assert tried.sum() == len(sizes) == {2: 1, 6: 2, 10: 3}[most]
        found = free.cv_results_["mean_test_score"][tried]
        np.testing.assert_allclose(means, found, atol=1e-4)
        assert model.best_score_ == means.max()
        alone = RankRC(penalty="l1", lam=model.best_lam_).fit(X, Y)
        np.testing.assert_allclose(model.score_samples(X), alone.score_samples(X), atol=1e-5)
    # The grid begins with models of one landmark or two.
    tiny = RankRCCV(penalty="l1", cv=3, max_landmarks=2).fit(X, Y)
    assert 1 <= tiny.best_estimator_.n_landmarks_ <= 2


def test_what_no_lam_can_do_is_refused():
    with pytest.raises(ValueError, match=r"lam=0.002 uses \d+, the fewest"):
        RankRCCV([0.002, 0.001], penalty="l1", cv=3, max_landmarks=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"even the lowest, 1e\+03, leaves none"):
        RankRCCV([1e4, 1e3], penalty="l1", cv=3, max_landmarks=1).fit(X, Y)
    with pytest.raises(ValueError, match=r"landmarks=\('rare', 5\)"):
        RankRCCV(max_landmarks=5).fit(X, Y)
    for bad in (0, 2.5, True, "3"):
        with pytest.raises(ValueError, match="max_landmarks="):
            RankRCCV(penalty="l1", max_landmarks=bad).fit(X, Y)
    with pytest.raises(ValueError, match="penalty='l0'"):
        RankRC(penalty="l0").fit(X, Y)


def test_a_fit_with_another_penalty_leaves_no_gap_behind():
    model = RankRC(penalty="l1", lam=0.01).fit(X, Y)
    assert np.isfinite(model.duality_gap_)
    assert not hasattr(model.set_params(penalty="l2").fit(X, Y), "duality_gap_")


def test_fewer_landmarks_of_levels_are_found_by_cross_validation():
    rng = np.random.default_rng(3)
    y = np.ones(300, dtype=int)
    y[rng.choice(300, 12, replace=False)] = np.resize([0, 2, 3], 12)
    X = rng.normal(size=(300, 3)) + 0.7 * y[:, None]
    full = OrdinalRankRCCV(lams=[2**-6], cv=3).fit(X, y)
    few = OrdinalRankRCCV(penalty="l1", max_landmarks=4, cv=3).fit(X, y)
    assert 1 <= few.best_estimator_.n_landmarks_ <= 4 < full.best_estimator_.n_landmarks_
    assert few.score(X, y) > full.score(X, y) - 0.05
    assert (few.cv_results_["n_landmarks"] <= 4).all()
    with pytest.raises(ValueError, match="needs penalty='l1'"):
        OrdinalRankRCCV(max_landmarks=4).fit(X, y)
