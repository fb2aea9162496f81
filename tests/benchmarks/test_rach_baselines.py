"""What the RACH table compares with: transductive SVM, manifold ranking, the paper's own form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from benchmarks import rach_prices
from benchmarks.paper_tables import manifold_ranking, rach_paper, rach_protocol, transductive_svm
from benchmarks.paper_tables.rach_choice import folds
from benchmarks.paper_tables.transductive_svm import CORNER, Problem, fit, supervised
from hyperball.rach_cases import UNKNOWN, hidden_cluster, unwarned
from rareclass import RACHCV
from rareclass.findings import FindingKind
from rareclass.hyperball import RACH

SEEDS = st.integers(0, 10_000)
EXACT = {"most_steps": 12, "enough": 1e-7}


def problem(seed, unlabelled_price, labels=8, unlabelled=9, columns=2, mean_score=None):
    """Two overlapping classes, some rows without a label."""
    rng = np.random.default_rng(seed)
    y = np.where(np.arange(labels) % 3 == 0, 1.0, -1.0)
    X = rng.normal(size=(labels, columns)) + y[:, None]
    sides = np.where(np.arange(unlabelled) % 3 == 0, 1.0, -1.0)
    others = rng.normal(size=(unlabelled, columns)) + sides[:, None]
    price = rng.choice([0.3, 1.0, 3.0], labels)
    target = float(y.mean()) if mean_score is None else mean_score
    return Problem(X, y, price, others, unlabelled_price, target)


@pytest.mark.sampled(10)
@given(seed=SEEDS, price=st.sampled_from([0.01, 0.2, 2.0]))
def test_no_step_raises_the_objective_and_all_are_balanced(seed, price):
    one = problem(seed, price)
    machine = fit(one, **EXACT)
    assert machine.scores(one.unlabelled).mean() == pytest.approx(one.mean_score, abs=1e-9)
    path = np.array(machine.objectives)
    assert (np.diff(path) <= 1e-6 * path[:-1]).all()
    assert one.objective(machine) == pytest.approx(path[-1])


def test_without_a_price_of_unlabelled_rows_it_is_the_svm():
    free = problem(3, 0.0)
    svm = supervised(free)
    # The mean score is the SVM's own, so that the constraint changes nothing.
    machine = fit(free._replace(mean_score=float(svm.scores(free.unlabelled).mean())), **EXACT)
    assert machine.weights == pytest.approx(svm.weights, abs=1e-3)
    assert machine.bias == pytest.approx(svm.bias, abs=1e-3)


def test_a_step_is_the_convex_problem_solved_by_a_general_solver():
    one = problem(5, 0.3)
    start = transductive_svm.start(one)
    rows, signs = transductive_svm._copies(one)
    copies = np.arange(len(rows)) >= len(one.y)
    beta = np.where(copies & (signs * start.scores(rows) < CORNER), one.unlabelled_price, 0.0)
    price = np.append(one.price, np.full(2 * len(one.unlabelled), one.unlabelled_price))
    n, p = rows.shape  # variables: weights, bias, slacks
    edge = np.column_stack([signs[:, None] * rows, signs, np.eye(n)])
    linear = np.concatenate([(beta * signs) @ rows, [beta @ signs], price])
    half = np.concatenate([np.ones(p), np.zeros(n + 1)])
    middle = np.concatenate([one.unlabelled.mean(axis=0), [1.0], np.zeros(n)])
    found = minimize(
        lambda z: 0.5 * half @ z**2 + linear @ z, np.append(np.zeros(p + 1), np.full(n, 2.0)),
        jac=lambda z: half * z + linear, method="SLSQP", options={"maxiter": 500, "ftol": 1e-12},
        bounds=[(None, None)] * (p + 1) + [(0.0, None)] * n,
        constraints=[
            {"type": "ineq", "fun": lambda z: edge @ z - 1.0, "jac": lambda z: edge},
            {"type": "eq", "fun": lambda z: middle @ z - one.mean_score, "jac": lambda z: middle},
        ],
    )  # fmt: skip
    machine = fit(one, most_steps=1, enough=1e-9)
    assert machine.weights == pytest.approx(found.x[:p], abs=1e-3)
    assert machine.bias == pytest.approx(found.x[p], abs=1e-3)


def test_features_of_all_rows_are_the_kernel():
    X = np.random.default_rng(0).normal(size=(30, 3))
    Z = transductive_svm.gaussian_features(X, 0.3, 30, 0, np.array([4, 7]))
    squared = ((X[:, None] - X[None]) ** 2).sum(axis=2)
    assert pytest.approx(np.exp(-0.3 * squared)) == Z @ Z.T


def test_manifold_ranking_by_its_iteration():
    X = np.random.default_rng(1).normal(size=(25, 2))
    queries, alpha = np.array([3, 8]), 0.9
    S = manifold_ranking.similarities(X, 1.0)
    y = np.zeros(25)
    y[queries] = 0.5
    f = y
    for _ in range(400):
        f = alpha * S @ f + (1.0 - alpha) * y
    found = manifold_ranking.ranking(X, queries, 1.0, alpha)
    assert found * (1.0 - alpha) == pytest.approx(f, abs=1e-12)


def test_manifold_ranking_connects_until_the_graph_hangs_together():
    X = np.array([[0.0], [1.0], [2.0], [5.0], [6.0]])  # the longest edge that is needed is 3
    edges = manifold_ranking.similarities(X, 1.0) > 0.0
    assert edges.tolist() == ((abs(X - X.T) <= 3.0) & (X != X.T)).tolist()


def test_the_paper_form_is_judged_as_rach_cv_counts_left_out_rows(monkeypatch):
    monkeypatch.setattr(rach_paper, "GRID", rach_paper.GRID[1:4])
    rng = np.random.default_rng(2)
    y = (np.arange(90) < 24).astype(int)
    X = rng.normal(size=(90, 2)) * np.where(y, 0.5, 1.0)[:, None] + 1.5 * y[:, None]
    task = rach_protocol.labelled(X, y, 25, 0)
    balls = rach_paper._balls(task)
    one = balls.tried[0]
    search = RACHCV(
        C1s=[one.C1], C2s=[one.C2], widths=[one.width], margins=[0.0], radius="solved",
        learn_radius=False, n_balls=1, kernel="gaussian", refit=False, verbose=False,
        cv=folds(task, 0, rach_paper.FOLDS), n_landmarks=rach_paper.SEARCH_LANDMARKS,
    ).fit(task.X, task.y)  # fmt: skip
    alone = balls._replace(tried=[one])
    assert rach_paper.left_out_f1(task, 0, alone) == pytest.approx(search.cv_results_["f1"])
    found, chosen = rach_paper.guess(task, 0)
    assert chosen in rach_paper.GRID
    assert found[task.unknown].sum() > 0


def test_balls_beyond_the_share_are_counted_as_rach_reports_them():
    X, y, _ = hidden_cluster(n=2000, n_cluster=60, n_rare=20, n_cleared=600)
    known = y != UNKNOWN
    for C2, expected in ((0.1, True), (0.0, False)):
        with unwarned():
            model = RACH(C2=C2).fit(X, y)
        found = np.sum(model.transduction_[~known] == 1)
        cell = {"labels": [20, 600], "unlabelled": np.sum(~known), "rare": 40, "f1": [0.3]}
        counted = rach_prices.beyond_the_share(cell | {"found_per_rare": [found / 40]})
        said = {one.kind for one in model.findings_}
        assert (counted == [0.3]) == expected == (FindingKind.BEYOND_SHARE in said)
