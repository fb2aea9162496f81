"""Tables with a rare category of which few rows have a label, and slow ways to RACH's figures."""

import warnings
from contextlib import contextmanager

import numpy as np
from hypothesis import strategies as st
from sklearn.model_selection import StratifiedKFold

from rareclass.hyperball import RACH, RACHCV

RARE, CLEARED, UNKNOWN = 1, 0, -1

# What leaves about a third of the cluster's neighbourhood outside: nothing to be warned of.
QUIET = {"C1": 1.0, "C2": 0.01}

SEEDS = st.integers(0, 10**6)
PRICES = st.sampled_from([1e-3, 0.01, 0.03, 0.2, 1.0, 20.0])


def hidden_cluster(n=200, n_cluster=40, p=3, n_rare=8, n_cleared=30, seed=0):
    """A narrow cluster in a cloud: rows, labels of a few of them, and the truth of all."""
    rng = np.random.default_rng(seed)
    truth = np.zeros(n, dtype=int)
    truth[:n_cluster] = RARE
    X = rng.normal(size=(n, p))
    X[:n_cluster] = 1.5 + 0.3 * X[:n_cluster]
    y = np.full(n, UNKNOWN)
    y[rng.choice(n_cluster, n_rare, replace=False)] = RARE
    y[n_cluster + rng.choice(n - n_cluster, n_cleared, replace=False)] = CLEARED
    order = rng.permutation(n)
    return X[order], y[order], truth[order]


def several_clusters(places, n_cloud=200, n_each=25, n_rare=5, n_cleared=30, seed=0, scale=0.3):
    """A cloud of label 0 and a cluster of label k + 1 at each place."""
    rng = np.random.default_rng(seed)
    places = np.asarray(places, dtype=float)
    clusters = [place + scale * rng.normal(size=(n_each, len(place))) for place in places]
    X = np.vstack([rng.normal(size=(n_cloud, places.shape[1])), *clusters])
    truth = np.repeat(np.arange(len(places) + 1), [n_cloud] + [n_each] * len(places))
    y = np.full(len(X), UNKNOWN)
    for label in range(len(places) + 1):
        rows = np.flatnonzero(truth == label)
        y[rng.choice(rows, n_rare if label else n_cleared, replace=False)] = label
    return X, y, truth


@contextmanager
def unwarned():
    """For fits whose warnings another test looks at."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def ball_of(X, y, weight=None, **options):
    """RACH of ordinary prices, solved to many digits, its warnings unheard."""
    with unwarned():
        return RACH(**{**QUIET, "tol": 1e-10, **options}).fit(X, y, weight)


def problem_1(X, y, weight, center, squared_radius, C1, C2, margin=0.0):
    """The objective of the paper's Problem 1 and how far rare rows stick out, row by row.

    Majority rows are to lie beyond the squared radius and the margin.
    """
    value, out = squared_radius + margin, 0.0
    for row, label, w in zip(X, y, weight, strict=True):
        squared = float(((row - center) ** 2).sum())
        if label == RARE:
            out = max(out, (squared - squared_radius) * (w > 0))
        elif label == CLEARED:
            value += C1 * w * max(0.0, squared_radius + margin - squared)
        else:
            value += C2 * w * max(0.0, squared - squared_radius)
    return value, out


def f1_by_hand(truth, called):
    """F1 of the truth values, 0 where there is nothing."""
    tp = sum(bool(t and c) for t, c in zip(truth, called, strict=True))
    wrong = sum(bool(t) != bool(c) for t, c in zip(truth, called, strict=True))
    return 2 * tp / (2 * tp + wrong) if tp + wrong else 0.0


# Rare rows that the border by share counts for.
PRIORS = {"share": 8.0, "solved": 0.0}
# What the folds are solved to.
LOOSE = {"tol": 1e-3, "max_outer": 3, "max_inner": 300}


def chosen(X, y, weight=None, **options):
    """RACHCV, of one ball where no number is given."""
    with unwarned():
        return RACHCV(**{"n_balls": 1} | options).fit(X, y, weight)


def folds_by_hand(y, n_folds, label=RARE, seed=0):
    """Held-out rows of each fold: stratified, the rare rows first, as RACHCV takes them."""
    rows = np.concatenate([np.flatnonzero(y == label), np.flatnonzero((y >= 0) & (y != label))])
    splitter = StratifiedKFold(n_folds, shuffle=True, random_state=seed)
    return [rows[test] for _, test in splitter.split(rows, y[rows] == label)]


def depths_by_hand(X, y, folds, label=RARE, **options):
    """Depths of the rows of each fold in a ball that was fitted without their labels."""
    found = []
    for test in folds:
        hidden = np.where(y < 0, UNKNOWN, y == label)
        hidden[test] = UNKNOWN
        with unwarned():
            model = RACH(**{**LOOSE, **options}, filter=False, pos_label=1).fit(X, hidden)
        found.append(model.score_samples(X[test]))
    return np.concatenate(found), y[np.concatenate(folds)] == label
