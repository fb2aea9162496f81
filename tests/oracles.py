"""Slow, plain answers that the fast code is held against: every pair, every matrix formed."""

import numpy as np
from scipy import optimize


def pair_loss(z, eps):
    """Smoothed hinge of every entry of z, from its definition."""
    return np.where(z < 1 - 2 * eps, (1 - eps) - z, np.where(z < 1, (1 - z) ** 2 / (4 * eps), 0.0))


def pair_slope(z, eps):
    """Its derivative."""
    return np.where(z < 1 - 2 * eps, -1.0, np.where(z < 1, -(1 - z) / (2 * eps), 0.0))


def pair_curvature(z, eps):
    """Its second derivative, taken from the right where it jumps."""
    return np.where((z >= 1 - 2 * eps) & (z < 1), 1 / (2 * eps), 0.0)


def ranking_loss(rare, majority, rare_weight, majority_weight, eps):
    """Value, gradient by rare row and by majority row, Hessian over (rare, majority)."""
    z = rare[:, None] - majority[None, :]
    w = rare_weight[:, None] * majority_weight[None, :]
    value = (w * pair_loss(z, eps)).sum()
    slope = w * pair_slope(z, eps)
    curvature = w * pair_curvature(z, eps)
    hessian = np.block(
        [
            [np.diag(curvature.sum(axis=1)), -curvature],
            [-curvature.T, np.diag(curvature.sum(axis=0))],
        ]
    )
    return value, slope.sum(axis=1), -slope.sum(axis=0), hessian


def ranking_minimum(K_rare, K_majority, K_landmarks, lam, eps, rare_weight, majority_weight):
    """The minimum of problem (11) by L-BFGS on all pairs; returns (value, scores by row)."""
    values, vectors = np.linalg.eigh(K_landmarks)
    use = values > 1e-12 * values.max()
    T = vectors[:, use] / np.sqrt(values[use])
    F_rare, F_majority = K_rare @ T, K_majority @ T
    scale = 1 / (rare_weight.sum() * majority_weight.sum())

    def objective(w):
        value, by_rare, by_majority, _ = ranking_loss(
            F_rare @ w, F_majority @ w, rare_weight, majority_weight, eps
        )
        gradient = scale * (F_rare.T @ by_rare + F_majority.T @ by_majority) + lam * w
        return scale * value + 0.5 * lam * w @ w, gradient

    start = np.zeros(T.shape[1])
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12}
    found = optimize.minimize(objective, start, jac=True, method="L-BFGS-B", options=options)
    return found.fun, np.concatenate([F_rare @ found.x, F_majority @ found.x])


def rare_mixture(n_rows, n_rare, n_features=4, seed=0):
    """A small table: rare rows around two points, the majority spread out."""
    rng = np.random.default_rng(seed)
    y = np.zeros(n_rows, dtype=int)
    y[rng.choice(n_rows, n_rare, replace=False)] = 1
    X = rng.normal(size=(n_rows, n_features))
    centres = np.array([np.full(n_features, 1.0), np.full(n_features, -0.8)])
    X[y == 1] = centres[rng.integers(2, size=n_rare)] + 0.7 * X[y == 1]
    return X, y
