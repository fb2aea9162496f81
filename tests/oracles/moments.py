"""Two passes in extended precision, dense inverses, and problem (3) by a general solver."""

from typing import NamedTuple

import numpy as np
from scipy.optimize import lsq_linear, minimize

from oracles.dual import nearest_in_hull

LONG = np.longdouble


class PlainMoments(NamedTuple):
    """What `Moments` holds, from its definition."""

    weight: float
    mean: np.ndarray
    scatter: np.ndarray


def plain_moments(X, weight=None):
    """Mean first, then sums of products around it, all in extended precision."""
    X = np.asarray(X, LONG)
    weight = np.ones(len(X), LONG) if weight is None else np.asarray(weight, LONG)
    base = X[np.argmax(weight > 0)]  # columns that are constant come out as that, exactly
    mean = base + weight @ (X - base) / weight.sum()
    Y = X - mean
    scatter = Y.T @ (weight[:, None] * Y)
    return PlainMoments(float(weight.sum()), mean.astype(float), scatter.astype(float))


def assert_moments(found, X, weight=None, rtol=1e-10):
    """All that was kept, against two passes; relative to the standard deviations."""
    wanted = plain_moments(X, weight)
    deviation = np.sqrt(wanted.scatter.diagonal() / wanted.weight)
    assert found.weight == np.float64(found.weight)
    np.testing.assert_allclose(found.weight, wanted.weight, rtol=1e-13)
    np.testing.assert_allclose(found.mean, wanted.mean, rtol=1e-14, atol=rtol * deviation.max())
    scale = wanted.weight * np.outer(deviation, deviation)
    np.testing.assert_allclose(found.variance_sum, wanted.scatter.diagonal(), rtol=rtol, atol=0)
    if found.scatter.size:
        assert (np.abs(found.scatter - wanted.scatter) <= rtol * scale).all()
        np.testing.assert_array_equal(found.scatter.diagonal(), found.variance_sum)
    if found.probes.size:
        wanted_sketch = wanted.scatter @ found.probes
        assert (np.abs(found.sketch - wanted_sketch) <= 10 * rtol * scale.max()).all()


def assert_same_moments(one, other, rtol=1e-10):
    """Two sums of the same rows, relative to the largest entry of each kind."""
    for name in ("weight", "mean", "variance_sum", "scatter", "sketch"):
        a, b = np.asarray(getattr(one, name)), np.asarray(getattr(other, name))
        assert a.shape == b.shape, name
        size = np.abs(b).max(initial=0.0)
        if name == "mean":  # may cancel: its digits are those of rows a deviation away
            size = max(
                size, np.sqrt(other.variance_sum.max(initial=0.0) / max(other.weight, 1e-300))
            )
        np.testing.assert_allclose(a, b, rtol=rtol, atol=rtol * size, err_msg=name)
    np.testing.assert_array_equal(one.probes, other.probes)


def primal_solution(X, mean, covariance, upper):
    """w of problem (3) by SLSQP over (w, slack), its last digits by the rows at the margin.

    The result is checked against the conditions that only the solution fulfils.
    """
    Y, n, d = X - mean, len(X), len(mean)
    unit = np.sqrt(np.diag(covariance))
    Y, S = Y / unit, covariance / unit / unit[:, None]  # scores stay as they are
    found = minimize(
        lambda z: 0.5 * z[:d] @ S @ z[:d] + upper @ z[d:],
        np.r_[np.zeros(d), np.ones(n)],
        jac=lambda z: np.r_[S @ z[:d], upper],
        method="SLSQP",
        bounds=[(None, None)] * d + [(0, None)] * n,
        constraints={
            "type": "ineq",
            "fun": lambda z: Y @ z[:d] + z[d:] - 1,
            "jac": lambda z: np.hstack([Y, np.eye(n)]),
        },
        options={"ftol": 1e-16, "maxiter": 2000},
    )
    scores = Y @ found.x[:d]
    for blur in (1e-5, 1e-6, 1e-4, 1e-7, 1e-3):
        free, below = np.abs(scores - 1) <= blur, scores < 1 - blur
        w = _polished(Y, S, upper, free, below)
        if _is_solution(Y, S, upper, w, free):
            return w / unit
    raise AssertionError("the reference did not find the solution")


def _polished(Y, S, upper, free, below):
    """Scores of 1 exactly for the rows at the margin; those below it pull with all they may."""
    pulled = Y[below].T @ upper[below]
    if free.any():
        G = Y[free] @ np.linalg.solve(S, Y[free].T)
        missing = 1 - Y[free] @ np.linalg.solve(S, pulled)
        pulled = pulled + Y[free].T @ np.linalg.lstsq(G, missing, rcond=1e-12)[0]
    return np.linalg.solve(S, pulled)


def _is_solution(Y, S, upper, w, free):
    """Whether rows beyond the margin do not pull, those below it do, and those at it may."""
    scores, size = Y @ w, 1e-9
    if (np.abs(scores[free] - 1) > size).any():
        return False
    left = S @ w - Y[~free].T @ np.where(scores[~free] < 1, upper[~free], 0.0)
    if free.any():
        A = Y[free].T * upper[free]
        left = left - A @ lsq_linear(A, left, (0, 1), method="bvls", tol=1e-15).x
    pull = np.abs(S @ w).max() + np.abs(Y.T * upper).max()
    return bool(np.abs(left).max() <= size * pull)


def hard_margin(X, mean, covariance):
    """w of the hard margin, and kappa: the point of the hull of X nearest to the mean."""
    L = np.linalg.cholesky(np.linalg.inv(covariance))
    nearest = nearest_in_hull((X - mean) @ L)
    return L @ nearest / (nearest @ nearest), float(np.linalg.norm(nearest))


def population(X, weight=None):
    """Mean and covariance, of constant columns exactly."""
    weight = np.ones(len(X)) if weight is None else weight
    moved = np.average(X - X[0], axis=0, weights=weight)
    Y = X - X[0] - moved
    return X[0] + moved, (Y * weight[:, None]).T @ Y / weight.sum()
