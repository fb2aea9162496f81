"""The papers' tables on tiny data: verdicts by hand, and two baselines beside other solvers."""

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.paired_test import paired
from benchmarks.paper_tables import (
    cbr_figures,
    cbr_tables,
    manifold_ranking,
    mibc_figures,
    real_cells,
    transductive_svm,
)
from benchmarks.paper_tables.fits import bare
from benchmarks.paper_tables.mibc_methods import COST, UNDER
from benchmarks.paper_tables.transductive_svm import CORNER, Problem, fit

pytestmark = pytest.mark.sampled(0)
UNEVEN = np.array([0.0, 0.02, -0.01, 0.01, -0.02])


def cbr_fits(table):
    return [
        {"set": name, "method": learner, "run": run, "step": 2, "scaling": "unit", "code": "",
         "auc": [auc - 0.01, auc + 0.01], "accuracy": [auc] * 2, "fit_ms": [1.0, 3.0]}
        for name, cells in table.items() for learner, auc in cells.items() for run in range(2)
    ]  # fmt: skip


def test_reaching_the_paper_by_hand():
    # german, CBR fifo: 0.780 - 2 x 0.019 / sqrt(10) = 0.76798; heart: 0.909 - 2 x 0.021 / sqrt(10)
    # = 0.89572; cod_rna: 0.984 - 0.0005
    table = {"german": {"CBR fifo": 0.7681}, "cod_rna": {"CBR fifo": 0.9834},
             "glass": {"CBR fifo": 0.5}, "heart": {"CBR fifo": 0.8956}}  # fmt: skip
    found = cbr_figures.cells(cbr_fits(table), "benchmark", "auc")
    held = cbr_figures.reached(found, "benchmark")
    assert {name: value for (name, _), value in held.items()} == {
        "german": True, "cod_rna": False, "heart": False
    }  # fmt: skip
    words = "\n".join(cbr_tables.verdicts(found, "benchmark", "auc"))
    assert "1 of 3 (33%); below: cod_rna, heart" in words
    apart = (0.780 - 0.7681 + 0.984 - 0.9834 + 0.909 - 0.8956) / 3  # glass has other classes
    assert cbr_figures.distance(found) == pytest.approx(apart)


@pytest.mark.parametrize("words", ["  # why", '\n    """Words."""', '\n    "Words"', "\n"])
def test_code_of_a_fit_is_told_without_words_and_layout(words):
    same = f'"""Of a file."""\ndef f(x):{words}\n    return (x + 1)'
    assert bare("def f(x):\n    return x + 1") == bare(same) != bare(same.replace("1", "2"))


def test_moments_are_tested_on_the_splits_of_both():
    one, other = 0.8 + UNEVEN, 0.9 + UNEVEN[::-1]
    fits = [
        {"problem": "a", "method": method, "split": split, "auc": auc}
        for method, values in {"MIBC": one, COST: other}.items()
        for split, auc in enumerate(values)
    ]
    methods = mibc_figures.by_problem(fits)["a"]
    assert mibc_figures.against(methods, "MIBC", COST) == paired(100.0 * (one - other), 5, 3)
    assert mibc_figures.against(methods, "MIBC", UNDER) is None


def test_a_step_of_the_transductive_svm_is_solved_by_a_general_solver():
    rng = np.random.default_rng(5)
    y = np.where(np.arange(8) % 3 == 0, 1.0, -1.0)
    sides = np.where(np.arange(9) % 3 == 0, 1.0, -1.0)
    X, others = (rng.normal(size=(len(s), 2)) + s[:, None] for s in (y, sides))
    one = Problem(X, y, rng.choice([0.3, 1.0, 3.0], 8), others, 0.3, float(y.mean()))
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
    assert [*machine.weights, machine.bias] == pytest.approx(found.x[: p + 1], abs=1e-3)


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


def test_cells_compare_with_the_paper_and_with_rankrc():
    aucs = {"RankRC": [90.0, 91.0, 92.0], "SVM": [80.0, 81.5, 82.0], "KNN": [90.0, 93.0, 90.5]}
    about = {"set": "ecoli", "status": "ok", "size": 10, "seconds": 1.0, "date": "2026-11-28"}
    runs = [
        about | {"method": method, "repeat": number, "auc": value}
        for method, values in aucs.items()
        for number, value in enumerate(values)
    ]
    row = real_cells.cells_of(runs)["ecoli"]
    assert list(row) == ["KNN", "SVM", "RankRC"]
    assert row["RankRC"].figure == (91.0, pytest.approx(1.0 / np.sqrt(3.0)))
    assert row["SVM"].ahead == paired(np.subtract(aucs["RankRC"], aucs["SVM"]), 3.0, 1.0)
    assert real_cells.counts({"ecoli": row}, "SVM") == {"above": 1, "level": 0, "below": 0}
    with_precision = [run | {"ap": run["auc"] / 2.0} if run["repeat"] else run for run in runs]
    page = real_cells.table4_page({"runs": with_precision})
    assert "| SVM | 1 | 81.2 / 91.0 | 94.6 / 94.5 | 1 / 0 / 0 | +9.8 points (p = 1) | 1.0 |" in page
    assert "| SVM | 1 | 2 to 2 | 40.9 / 45.8 | 1 / 0 / 0 | +4.9 points (p = 1) |" in page
