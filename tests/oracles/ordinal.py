"""Slow answers for rows of two classes or of several levels: every pair formed."""

import itertools

import numpy as np
from hypothesis import strategies as st
from scipy import optimize

from oracles.pairs import pair_curvature, pair_loss, pair_slope


def cost_matrix(n_levels, pair_cost=None):
    if pair_cost == "distance":
        return np.abs(np.subtract.outer(np.arange(n_levels), np.arange(n_levels))).astype(float)
    return np.ones((n_levels, n_levels)) if pair_cost is None else np.asarray(pair_cost, float)


TWO_CLASSES = cost_matrix(2)


def pair_weights(codes, weight, costs):
    """Weight of every pair (i, j) in which row i has the higher level; zero elsewhere."""
    higher = codes[:, None] > codes[None, :]
    return np.where(higher, costs[codes[None, :], codes[:, None]], 0.0) * np.outer(weight, weight)


def ordinal_loss(scores, codes, weight, costs, eps):
    """Value, gradient and Hessian by row of the loss over all pairs; not normalised."""
    high, low = np.nonzero(codes[:, None] > codes)
    w, n = costs[codes[low], codes[high]] * weight[high] * weight[low], len(codes)
    z, hessian = scores[high] - scores[low], np.zeros((n, n))
    slope = w * pair_slope(z, eps)
    hessian[high, low] = hessian[low, high] = -w * pair_curvature(z, eps)
    hessian -= np.diag(hessian.sum(axis=1))
    gradient = np.bincount(high, slope, n) - np.bincount(low, slope, n)
    return w @ pair_loss(z, eps), gradient, hessian


def ordinal_minimum(K, K_landmarks, lam, eps, codes, weight, costs):
    """The minimum of problem (48) by L-BFGS on all pairs, and scores; two classes: (13)."""
    values, vectors = np.linalg.eigh(K_landmarks)
    use = values > 1e-12 * values.max()
    F = K @ (vectors[:, use] / np.sqrt(values[use]))
    scale = 1 / pair_weights(codes, weight, costs).sum()

    def objective(w):
        value, by_row, _ = ordinal_loss(F @ w, codes, weight, costs, eps)
        return scale * value + 0.5 * lam * w @ w, scale * (F.T @ by_row) + lam * w

    options = {"maxiter": 20000, "maxfun": 40000, "ftol": 1e-16, "gtol": 1e-12}
    found = optimize.minimize(
        objective, np.zeros(F.shape[1]), jac=True, method="L-BFGS-B", options=options
    )
    return found.fun, F @ found.x


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
PENALTY_MINIMA = {"l2": ordinal_minimum, "l1": split_minimum}


def mauc_by_pairs(codes, scores, weight):
    higher = codes[:, None] > codes[None, :]
    w = higher * np.outer(weight, weight)
    wins = (scores[:, None] > scores[None, :]) + 0.5 * (scores[:, None] == scores[None, :])
    return float((w * wins).sum() / w.sum())


def vus_by_tuples(codes, scores, weight):
    """Every tuple of a row of each level: 1 over the orders of its rows that its scores allow."""
    levels = [np.flatnonzero((codes == code) & (weight > 0)) for code in np.unique(codes)]
    levels = [rows for rows in levels if len(rows)]
    in_order = total = 0.0
    for rows in map(list, itertools.product(*levels)):
        w = np.prod(weight[rows])
        total += w
        orders = itertools.permutations(scores[rows])
        allowed = [order for order in orders if (np.diff(order) >= 0).all()]
        in_order += w / len(allowed) if (np.diff(scores[rows]) >= 0).all() else 0.0
    return float(in_order / total)


@st.composite
def ordinal_samples(draw, max_rows=30, max_levels=5):
    """Scores with ties, codes of two levels or more, weights with zeros; and their number."""
    n = draw(st.integers(2, max_rows))
    n_levels = draw(st.integers(2, max_levels))
    value = st.one_of(st.integers(-4, 4).map(float), st.floats(-20, 20, allow_subnormal=False))
    scores = np.array(draw(st.lists(value, min_size=n, max_size=n)))
    codes = np.array(draw(st.lists(st.integers(0, n_levels - 1), min_size=n, max_size=n)))
    codes[:2] = draw(st.permutations(range(n_levels)))[:2]
    one = st.one_of(st.integers(0, 3).map(float), st.floats(1e-3, 1e3))
    weight = np.array(draw(st.lists(one, min_size=n, max_size=n)))
    weight[:2] = np.maximum(weight[:2], 0.5)
    return scores, codes, weight, n_levels


@st.composite
def costs(draw, n_levels):
    one = st.one_of(st.just(0.0), st.just(1.0), st.floats(0.01, 100))
    entries = draw(st.lists(one, min_size=n_levels**2, max_size=n_levels**2))
    return np.array(entries).reshape(n_levels, n_levels)
