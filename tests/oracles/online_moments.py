"""OPAUC, its low-rank form and AdaOAM from their definitions: all rows kept, every pair formed."""

import numpy as np

from rareclass.online.ranker import SparseRows


def opposite_rows(X, sign, t):
    """Rows of the other class before row t."""
    return np.flatnonzero(sign[:t] == -sign[t])


def pair_objective(w, x, y, others, weight, lam):
    """lam/2 |w|^2 + mean over the other rows of (1 - y w.(x - x_i))^2 / 2, and its gradient."""
    share = weight / weight.sum()
    gaps = y * (x - others)
    loss = 1.0 - gaps @ w
    value = 0.5 * lam * w @ w + 0.5 * share @ loss**2
    return value, lam * w - (share * loss) @ gaps


def pair_curvature(x, others, weight, lam):
    """Second derivative of that objective."""
    gaps = x - others
    return lam * np.eye(len(x)) + (gaps.T * (weight / weight.sum())) @ gaps


def safe_step(eta, direction, gradient, curvature):
    """eta, or the way to the minimum where eta is more than twice that."""
    slope, curve = gradient @ direction, direction @ curvature @ direction
    return slope / curve if eta * curve > 2.0 * slope else eta


def learn(X, sign, step, eta, slope, delta=None):
    """Weights, scores before each row, and how many steps were shortened; AdaOAM with delta.

    `slope` is the gradient and the curvature at the weights, of a row beside those near.
    """
    w, squares = np.zeros(X.shape[1]), np.zeros(X.shape[1])
    scores, shortened = np.empty(len(X)), 0
    for t, x in enumerate(X):
        scores[t] = w @ x
        near = opposite_rows(X, sign, t)
        if sign[t] == 0 or not len(near):
            continue
        gradient, curvature = slope(w, x, sign[t], near)
        direction = gradient
        if delta is not None:
            squares += gradient**2
            direction = gradient / (delta + np.sqrt(squares))
        size = safe_step(eta * step[t], direction, gradient, curvature)
        shortened += size != eta * step[t]
        w = w - size * direction
    return w, scores, shortened


def learn_from_pairs(X, sign, step, eta, lam, delta=None):
    def slope(w, x, y, near):
        others = X[near], step[near], lam
        return pair_objective(w, x, y, *others)[1], pair_curvature(x, *others)

    return learn(X, sign, step, eta, slope, delta)


def projected_covariance(X, weight, drawn):
    """Centre c of the rows, and Z Z' / (k n) with Z = sum over rows of sqrt(weight) (x - c) r'."""
    n = weight.sum()
    centre = weight @ X / n
    Z = ((X - centre) * np.sqrt(weight)[:, None]).T @ drawn
    return centre, Z @ Z.T / (drawn.shape[1] * n)


def learn_from_projections(X, sign, step, drawn, eta, lam):
    """OPAUCr: the covariance of each row's other class formed from the stored rows."""

    def slope(w, x, y, near):
        centre, covariance = projected_covariance(X[near], step[near], drawn[near])
        gap = x - centre
        curvature = lam * np.eye(len(x)) + np.outer(gap, gap) + covariance
        return curvature @ w - y * gap, curvature

    return learn(X, sign, step, eta, slope)


def as_sparse_rows(X):
    """CSR arrays of a dense matrix."""
    rows, indices = np.nonzero(X)
    indptr = np.searchsorted(rows, np.arange(len(X) + 1))
    return SparseRows(indptr.astype(np.int64), indices.astype(np.int64), X[rows, indices])
