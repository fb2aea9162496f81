"""Pair losses of the margin with every pair formed, and rows that hit where their pieces meet."""

import numpy as np
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
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


# Value, first and second derivative of a pair's margin, by the width of the smoothed corner.
PAIRS = {
    "smoothed_hinge": lambda z, eps: (
        pair_loss(z, eps), pair_slope(z, eps), pair_curvature(z, eps)
    ),
    "squared_hinge": lambda z, eps: (
        np.maximum(1 - z, 0) ** 2, -2 * np.maximum(1 - z, 0), 2.0 * (z < 1)
    ),
}  # fmt: skip


def power(r, unit, p):
    """Outer function of the p-norm push, with its first and second derivative."""
    x = r / unit
    return unit / p * x**p, x ** (p - 1), (p - 1) / unit * x ** (p - 2)


# Quarters make ties, and pairs exactly where the pieces of the hinges meet.
score = st.integers(-16, 16).map(lambda k: k / 4)
weight = st.one_of(st.integers(0, 3).map(float), st.floats(1e-2, 1e2))


@st.composite
def rows(draw, most=12):
    n, m = draw(st.integers(1, most)), draw(st.integers(1, most))
    columns = ((n, score), (m, score), (n, weight), (m, weight))
    return [draw(arrays(np.float64, size, elements=values)) for size, values in columns]


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


def split_minimum(objective, thresholds, n):
    """The minimum by L-BFGS-B over beta = u - v with u and v at or above zero."""

    def split(uv):
        beta = uv[:n] - uv[n:]
        value, gradient = objective(beta)
        value += thresholds @ (uv[:n] + uv[n:] - np.abs(beta))
        return value, np.concatenate([gradient + thresholds, thresholds - gradient])

    bounds = [(0.0, None)] * (2 * n)
    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-11}
    found = optimize.minimize(
        split, np.zeros(2 * n), jac=True, method="L-BFGS-B", bounds=bounds, options=options
    )
    return found.fun


# The minimum of the whole objective by penalty, to which a solver must come.
PENALTY_MINIMA = {"l2": ranking_minimum, "l1": split_minimum}
