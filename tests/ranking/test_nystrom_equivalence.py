"""A subset of kernel functions is the Nystroem kernel is the projected map (Tayal et al., 2014)."""

import numpy as np
import pytest
from scipy import optimize
from scipy.special import expit, log_expit, softmax

from made_tables import rare_mixture, small_table
from oracles.newton import minimise
from oracles.pairs import ranking_loss
from rareclass import RankRC, RankSVM

# --- Losses of all scores at once: value, gradient, Hessian. Rare rows are those with y = 1. ---


def squared(s, y):
    return ((s - y) ** 2).sum() / 2, s - y, np.eye(len(s))


def logistic(s, y):
    t = 2 * y - 1
    return -log_expit(t * s).sum(), -t * expit(-t * s), np.diag(expit(s) * expit(-s))


def pairs_of(y):
    """One row a (rare, majority) pair: +1 at the rare row, -1 at the other."""
    rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    D = np.zeros((len(rare), len(rest), len(y)))
    D[np.arange(len(rare)), :, rare] = 1
    D[:, np.arange(len(rest)), rest] = -1
    return D.reshape(-1, len(y))


def ranking_logistic(s, y):
    D = pairs_of(y)
    z = D @ s
    n = len(z)
    return (
        -log_expit(z).sum() / n,
        -D.T @ expit(-z) / n,
        D.T @ ((expit(z) * expit(-z))[:, None] * D) / n,
    )


def ranking_squared_hinge(s, y):
    D = pairs_of(y)
    short = np.maximum(1 - D @ s, 0)
    n = len(short)
    return (short**2).sum() / n, -2 * D.T @ short / n, 2 * D.T @ ((short > 0)[:, None] * D) / n


def ranking_smoothed_hinge(s, y):
    rare, rest = np.flatnonzero(y == 1), np.flatnonzero(y == 0)
    value, by_rare, by_rest, hessian = ranking_loss(
        s[rare], s[rest], np.ones(len(rare)), np.ones(len(rest)), 0.4
    )
    order, n = np.argsort(np.concatenate([rare, rest])), len(rare) * len(rest)
    gradient = np.concatenate([by_rare, by_rest])[order]
    return value / n, gradient / n, hessian[np.ix_(order, order)] / n


def listwise(s, y):
    """Of no pairs and no rows: minus the mean log share that the rare rows have of exp(s)."""
    p, target = softmax(s), y / y.sum()
    return -(target * np.log(p)).sum(), p - target, np.diag(p) - np.outer(p, p)


LOSSES = [
    squared,
    logistic,
    ranking_logistic,
    ranking_squared_hinge,
    ranking_smoothed_hinge,
    listwise,
]


def polynomial_map(X):
    """The features of the kernel (1 + u.v)^2 in two dimensions."""
    a, b = X.T
    r = np.sqrt(2)
    return np.column_stack([np.ones(len(X)), r * a, r * b, a * a, r * a * b, b * b])


@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.__name__)
@pytest.mark.parametrize("subset", ["rare", "mixed", "repeated"])
def test_a_subset_is_the_nystrom_kernel_is_the_projected_map(loss, subset):
    X, y, rng = small_table(len(subset))
    R = np.flatnonzero(y == 1) if subset == "rare" else rng.choice(14, 5, replace=False)
    if subset == "repeated":  # K_RR is singular: the pseudo-inverses are meant
        X[R[1]] = X[R[0]]
    new = rng.normal(size=(6, 2))
    F, F_new, lam = polynomial_map(X), polynomial_map(new), 0.1

    def of_all(s):
        return loss(s, y)

    K, k_new = F @ F.T, F_new @ F.T
    b = minimise(of_all, K[:, R], K[np.ix_(R, R)], lam)
    by_subset = k_new[:, R] @ b  # problem (41)
    inverse = np.linalg.pinv(K[np.ix_(R, R)], rcond=1e-10, hermitian=True)
    K_nystrom = K[:, R] @ inverse @ K[R]
    by_nystrom = k_new[:, R] @ inverse @ K[R] @ minimise(of_all, K_nystrom, K_nystrom, lam)
    basis = np.linalg.svd(F[R], full_matrices=False)
    basis = basis[2][basis[1] > 1e-9]
    P = basis.T @ basis
    w = minimise(of_all, F @ P, np.eye(6), lam)  # problem (15)
    np.testing.assert_allclose(by_nystrom, by_subset, atol=1e-7)
    np.testing.assert_allclose(F_new @ P @ w, by_subset, atol=1e-7)
    np.testing.assert_allclose(F_new @ w, by_subset, atol=1e-7)  # equation (20): w lies in S_R
    # It is no trifle: all rows give another function.
    full = minimise(of_all, F, np.eye(6), lam)
    assert np.abs(F_new @ full - by_subset).max() > 1e-3


def hinge_program(A, B, y, lam):
    """Problem (41) or (40) with the plain hinge, as a quadratic program in (b, slacks)."""
    D, k = pairs_of(y), A.shape[1]
    n, rows = len(D), np.hstack([D @ A, np.eye(len(D))])
    found = optimize.minimize(
        lambda u: u[k:].sum() / n + lam / 2 * u[:k] @ B @ u[:k],
        np.concatenate([np.zeros(k), np.ones(n)]),
        jac=lambda u: np.concatenate([lam * B @ u[:k], np.full(n, 1 / n)]),
        method="SLSQP",
        bounds=[(None, None)] * k + [(0, None)] * n,
        constraints={"type": "ineq", "fun": lambda u: rows @ u - 1, "jac": lambda u: rows},
        options={"maxiter": 1000, "ftol": 1e-14},
    )
    return A @ found.x[:k]


def test_the_equivalence_holds_for_the_hinge_itself():
    X, y, _ = small_table(3, n=9, n_rare=3)
    F, R, lam = polynomial_map(X), [0, 3, 5], 0.2
    K = F @ F.T
    by_subset = hinge_program(K[:, R], K[np.ix_(R, R)], y, lam)
    basis = np.linalg.qr(F[R].T)[0]
    projected = F @ basis @ basis.T
    np.testing.assert_allclose(hinge_program(projected, np.eye(6), y, lam), by_subset, atol=1e-5)
    K_nystrom = projected @ projected.T
    np.testing.assert_allclose(hinge_program(K_nystrom, K_nystrom, y, lam), by_subset, atol=1e-5)


@pytest.mark.parametrize("kernel", ["gaussian", "polynomial"])
def test_rankrc_is_ranksvm_on_the_nystrom_features(kernel):
    X, y = rare_mixture(60, 8)
    new = rare_mixture(20, 3, seed=1)[0]
    own = {"lam": 0.01, "tol": 1e-10, "verbose": False}
    for landmarks in ("rare", [0, 5, 7, 20, 41]):
        model = RankRC(kernel=kernel, width=2.0, landmarks=landmarks, **own).fit(X, y)
        # The linear kernel of these features is K'.
        nystrom = RankSVM(kernel="linear", **own).fit(model.transform(X), y)
        found = nystrom.score_samples(model.transform(new))
        np.testing.assert_allclose(found, model.score_samples(new), atol=1e-6)
        assert nystrom.objective_ == pytest.approx(model.objective_, rel=1e-9)
