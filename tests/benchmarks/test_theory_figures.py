"""Figure 3 and the comparison of losses against plain answers."""

import numpy as np
import pytest

from benchmarks import labelling_losses, top_losses
from benchmarks.paper_tables import fig3
from rareclass.theory import subset_bound


@pytest.mark.parametrize("repeated", [False, True])
def test_spectral_norms_of_nystrom_errors(repeated):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 3))
    if repeated:  # equal rows: K_RR is singular
        X[1:40:2] = X[0:40:2]
    K = np.exp(-((X[:, None] - X[None]) ** 2).sum(-1) / 6)
    draws = [np.sort(rng.choice(80, 12, replace=False)) for _ in range(4)]
    wanted = []
    for R in draws:
        inverse = np.linalg.pinv(K[np.ix_(R, R)], rcond=1e-12, hermitian=True)
        wanted.append(np.linalg.norm(K - K[:, R] @ inverse @ K[R], 2))
    found, steps = fig3.spectral_norms(fig3.NystromErrors(K, draws), 80, 4, seed=0)
    np.testing.assert_allclose(found, wanted, rtol=1e-3)
    assert steps < 30


def test_rare_rows_go_first():
    found = fig3.rare_first(np.array([0, 3, 4, 9, 14]), n_rare=4, n_majority=10)
    shares = [(1, 1), (0.25, 1), (0, 1), (0, 0.5), (0, 0)]
    np.testing.assert_allclose(found, [subset_bound(a, b, 1.0) for a, b in shares])


def cell(differences):
    plain = {m: [0.5] * len(differences) for m in top_losses.METRICS}
    other = {m: [0.5 + d for d in differences] for m in top_losses.METRICS}
    return {"methods": {"plain": plain, "top": other}}


def test_verdicts_and_page():
    sets = {
        "up": cell([0.1, 0.11, 0.12]),
        "down": cell([-0.1, -0.11, -0.12]),
        "same": cell([0.0, 0.0, 0.0]),
        "unsure": cell([0.3, -0.1, 0.0]),
    }
    assert top_losses.verdicts(sets) == {"top": (["up"], ["down"])}
    how = {"splits": 3, "folds": 5, "log2_lam": [0], "candidates": {"plain": ["a"]}}
    page = top_losses.top_losses_page({"sets": sets, "parameters": how})
    assert "| up | 50.0 | +11.0* |" in page
    assert "| unsure | 50.0 | +6.7 |" in page
    assert "| top | 1: up | 1: down | **no** |" in page


def test_the_page_of_losses_of_labellings():
    methods = labelling_losses.CANDIDATES
    measures = [*labelling_losses.MEASURES, "seconds"]
    f1 = [0.599, 0.6, 0.601]
    cell = {m: {k: f1 if m == "f1" else [0.5] * 3 for k in measures} for m in methods}
    how = {"splits": 3, "folds": 3, "log2_lam": [0]}
    unfinished = {"plain": cell["plain"]}
    result = {"sets": {"a": cell, "b": unfinished}, "parameters": how}
    page = labelling_losses.labelling_losses_page(result)
    assert "| a | 50.0 | +0.0 | +10.0* | +0.0 | +0.0 |" in page
    assert "| b |" not in page
