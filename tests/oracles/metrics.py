"""Slow definitions of the measures, by pairs and by rows; and the samples to try them on."""

import numpy as np
from hypothesis import strategies as st


def placements_by_pairs(y, scores, weight):
    """DeLong's components of every row, and the AUC: V of each rare row, U of each other row."""
    s, t = scores[y == 1][:, None], scores[y == 0][None, :]
    wins = (s > t) + 0.5 * (s == t)
    w_rare, w_majority = weight[y == 1], weight[y == 0]
    of_rare = wins @ w_majority / w_majority.sum()
    return of_rare, w_rare @ wins / w_rare.sum(), float(w_rare @ of_rare / w_rare.sum())


def average_precision_by_rows(y, scores, weight):
    y, scores, weight = y[weight > 0], scores[weight > 0], weight[weight > 0]
    total = 0.0
    for s, w in zip(scores[y == 1], weight[y == 1], strict=True):
        above = scores >= s
        total += w * weight[above & (y == 1)].sum() / weight[above].sum()
    return float(total / weight[y == 1].sum())


def precision_at_k_by_filling(y, scores, k, weight):
    room, rare = float(k), 0.0
    for s in np.unique(scores)[::-1]:
        group = scores == s
        mass = weight[group].sum()
        if mass == 0.0:
            continue
        share = min(room / mass, 1.0)
        rare += share * weight[group & (y == 1)].sum()
        room -= share * mass
    return rare / k


def balanced_accuracy(y, scores, weight, threshold):
    called = scores > threshold
    tpr = weight[(y == 1) & called].sum() / weight[y == 1].sum()
    tnr = weight[(y == 0) & ~called].sum() / weight[y == 0].sum()
    return float((tpr + tnr) / 2)


@st.composite
def samples(draw, max_rows=25, weights=True):
    """Labels, scores and weights: few levels, so many ties; both classes have weight."""
    n = draw(st.integers(2, max_rows))
    level = st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6, allow_subnormal=False))
    scores = np.array(draw(st.lists(level, min_size=n, max_size=n)))
    y = np.array(draw(st.lists(st.integers(0, 1), min_size=n, max_size=n)))
    y[:2] = 0, 1
    weight = np.ones(n)
    if weights:
        one = st.one_of(st.just(0.0), st.just(1.0), st.floats(1e-6, 1e6))
        weight = np.array(draw(st.lists(one, min_size=n, max_size=n)))
        weight[:2] = np.maximum(weight[:2], 1e-3)
    order = np.array(draw(st.permutations(range(n))))
    return y[order], scores[order], weight[order]
