"""Losses of labellings from their definitions: every labelling and every table, and a slow QP."""

import itertools

import numpy as np
from scipy import optimize

from rareclass.ranking.losses import F1, PrecisionAtK


def as_function(loss, labels_rare, labels_majority, w_rare, w_majority):
    """A labelling as (delta, u, v), labels in [0, 1]; None where the loss does not allow it."""
    total = w_rare.sum()
    missed, wrong = w_rare * (1 - labels_rare), w_majority * labels_majority
    a, b = w_rare @ labels_rare, wrong.sum()
    if isinstance(loss, F1):
        return 1 - 2 * a / (2 * a + b + (total - a)), missed / (2 * total), wrong / (2 * total)
    k = loss.k if isinstance(loss, PrecisionAtK) and loss.k is not None else total
    if abs(a + b - k) > 1e-9:
        return None
    pairs = min(k, total) - a
    u, v = (pairs / k * x / x.sum() if x.sum() > 1e-12 else 0 * x for x in (missed, wrong))
    return 1 - a / k, u, v


def every_labelling(loss, w_rare, w_majority):
    """The functions of all labellings of rows, as arrays delta, U and V."""
    n = len(w_rare)
    found = []
    for labels in itertools.product([0.0, 1.0], repeat=n + len(w_majority)):
        rare, majority = np.array(labels[:n]), np.array(labels[n:])
        one = as_function(loss, rare, majority, w_rare, w_majority)
        if one is not None:
            found.append(one)
    return tuple(np.array(part) for part in zip(*found, strict=True))


def every_table(loss, rare, majority):
    """The value of the worst labelling of each table of rows that count once; O(m^2) and more."""
    s, t = np.sort(rare)[::-1], np.sort(majority)[::-1]
    values = []
    for a, b in itertools.product(range(len(s) + 1), range(len(t) + 1)):
        highest = [(np.arange(len(x)) < n).astype(float) for x, n in ((s, a), (t, b))]
        one = as_function(loss, *highest, np.ones(len(s)), np.ones(len(t)))
        if one is not None:
            values.append(one[0] - one[1] @ s + one[2] @ t)
    return max(values)


def solve_all(loss, features_rare, features_majority, w_rare, w_majority, lam):
    """The minimum of F with all labellings as constraints, by sequential quadratic programming."""
    delta, U, V = every_labelling(loss, w_rare, w_majority)
    G = U @ features_rare - V @ features_majority
    h = (U.sum(axis=1) - V.sum(axis=1)) * loss.has_intercept
    p = G.shape[1]
    # Unknowns w, c, xi; constraints xi >= delta - G w - h c.
    A = np.column_stack([G, h, np.ones(len(G))])
    start = np.zeros(p + 2)
    start[-1] = delta.max()
    found = optimize.minimize(
        lambda x: 0.5 * lam * x[:p] @ x[:p] + x[-1],
        start,
        jac=lambda x: np.concatenate([lam * x[:p], [0.0, 1.0]]),
        constraints={"type": "ineq", "fun": lambda x: A @ x - delta, "jac": lambda x: A},
        method="SLSQP",
        options={"ftol": 1e-13, "maxiter": 1000},
    )
    assert found.success, found.message
    return found.fun
