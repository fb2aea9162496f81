"""Figure 3 against plain answers."""

import numpy as np
import pytest

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
