"""Several moment pairs: the primal as a quadratic programme, and the page."""

import json

import numpy as np
import pytest
from scipy.optimize import minimize

from benchmarks.mibc_pairs import CHOOSING, CS, FORMS, hyperplanes, lines, pairs_of
from benchmarks.pages.registry import PAGES

# Slow as a whole: `make test-rest` runs it.
pytestmark = pytest.mark.sampled(0)


def rows(seed, n=12):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 3)), rng.normal(loc=[1.0, 1.0, 0.0], size=(4, 3))


def primal(rare, pairs, mean, ridge, free, C):
    """(w, b) by a general solver: slacks of rare rows and of clusters as variables."""
    S = pairs.within + ridge * np.eye(3)
    n, K = len(rare), len(pairs.share)
    A, M = rare - mean, pairs.means - mean

    def cut(z):
        return z[:3], z[3], z[4 : 4 + n], z[4 + n :]

    def objective(z):
        w, b, xi, t = cut(z)
        return 0.5 * (w @ S @ w + (b / 3.0) ** 2 + pairs.share @ t**2) + C * xi.sum()

    def room(z):
        w, b, xi, t = cut(z)
        b = b if free else 0.0
        return np.concatenate([A @ w + b - 1.0 + xi, t - M @ w - b - float(free), xi, t])

    start = np.concatenate([np.zeros(4), np.ones(n), 2.0 * np.ones(K)])
    found = minimize(
        objective, start, constraints={"type": "ineq", "fun": room}, method="SLSQP",
        options={"maxiter": 500, "ftol": 1e-12},
    )  # fmt: skip
    assert found.success
    return found.x[:3]


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("n_pairs", [3, 12])
def test_pairs_solve_the_primal(n_pairs, free):
    X, rare = rows(n_pairs)
    pairs, mean = pairs_of(X, n_pairs, 0), X.mean(axis=0)
    ours = list(hyperplanes(rare, pairs, mean, 0.1, free))[4]
    assert CS[4] == 1.0
    np.testing.assert_allclose(ours, primal(rare, pairs, mean, 0.1, free, 1.0), atol=2e-3)


def test_the_page_tells_choosing_from_confirming_sets():
    cells = [
        {"set": name, "split": split, **{form: 0.8 + 0.01 * split for form in FORMS}}
        for name in (CHOOSING[0], "vowel0")
        for split in range(3)
    ]
    liblinear = [[c["set"], c["split"], 0.9 - 0.02 * c["split"]] for c in cells]
    table = lines(cells, {(name, split): auc for name, split, auc in liblinear})
    titles = [line[0] for line in table]
    assert titles == [CHOOSING[0], "vowel0", "choosing sets", "confirming sets"]
    assert table[0][1] == "81.0"
    result = json.loads(json.dumps({"splits": 3, "cells": cells, "liblinear": liblinear}))
    assert "confirming sets" in PAGES["mibc_pairs"].body(result)
