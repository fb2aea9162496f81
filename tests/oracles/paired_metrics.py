"""Slow definitions of the measures of a threshold and of paired tests, by pairs and by rows."""

import numpy as np
from hypothesis import strategies as st

from oracles.metrics import placements_by_pairs, samples


def auc_spread_by_pairs(y, a, b, weight, groups=None):
    """DeLong's variances and covariance of two AUCs, from every pair of rows."""
    of_rows = np.zeros((2, y.size))
    for column, scores in enumerate((a, b)):
        of_rare, of_majority, auc = placements_by_pairs(y, scores, weight)
        for label, values in ((1, of_rare), (0, of_majority)):
            own = y == label
            of_rows[column, own] = weight[own] * (values - auc) / weight[own].sum()
    if groups is None:
        per_row = np.divide(of_rows, weight, out=np.zeros_like(of_rows), where=weight > 0)
        return of_rows @ per_row.T
    groups, weight_kept = groups[weight > 0], of_rows[:, weight > 0]
    names = np.unique(groups)
    sums = np.array([weight_kept[:, groups == name].sum(axis=1) for name in names]).T
    return sums @ sums.T * len(names) / max(len(names) - 1, 1)


def cost_by_rows(y, scores, threshold, cost_fp, cost_fn, weight):
    total = 0.0
    for label, s, fp, fn, w in zip(y, scores, cost_fp, cost_fn, weight, strict=True):
        if label == 1 and not s > threshold:
            total += w * fn
        if label == 0 and s > threshold:
            total += w * fp
    return total / weight.sum()


@st.composite
def pairs(draw, max_rows=25, weights=True):
    """As `samples`, with a second column of scores and groups."""
    y, a, weight = draw(samples(max_rows, weights))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    b = rng.integers(-3, 4, y.size).astype(float)
    groups = rng.integers(0, draw(st.integers(1, y.size)), y.size)
    return y, a, b, weight, groups
