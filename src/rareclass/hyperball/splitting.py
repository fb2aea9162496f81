"""Rare rows that lie in several far groups: a ball each."""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from threadpoolctl import threadpool_limits

from rareclass.hyperball.one_class import one_class_center
from rareclass.hyperball.spaces import InputSpace
from rareclass.rows.equal_rows import equal_rows

# More groups than this and the rare rows are no groups but scattered.
MOST_GROUPS = 8


def groups_of(
    X_rare: Any, n_balls: int | str, spread: float, random_state: np.random.RandomState
) -> list[np.ndarray]:
    """Positions of the rare rows of each ball.

    Parameters
    ----------
    X_rare : ndarray or CSR of shape (n_rare, n_features)
    n_balls : int or "auto"
        "auto": one ball where it is narrower than the majority, else the fewest k-means groups of
        which each is; one, if there are no such groups up to `MOST_GROUPS`.
    spread : float
        Root mean squared distance of the majority to its mean.
    random_state : RandomState
        Of k-means.

    Notes
    -----
    Cost: a k-means of the rare rows for each number of groups that is tried.
    """
    whole = [np.arange(X_rare.shape[0])]
    n_distinct = len(equal_rows(X_rare)[0])
    if n_balls != "auto":
        return _k_groups(X_rare, min(int(n_balls), n_distinct), random_state)
    for k in range(1, min(MOST_GROUPS, n_distinct) + 1):
        groups = _k_groups(X_rare, k, random_state)
        if all(_enclosing_radius(X_rare[group]) < spread for group in groups):
            return groups
    return whole


def _k_groups(X: Any, k: int, random_state: np.random.RandomState) -> list[np.ndarray]:
    if k <= 1:
        return [np.arange(X.shape[0])]
    with threadpool_limits(1):  # a few rows: threads would only get in each other's way
        labels = KMeans(k, n_init=10, random_state=random_state).fit_predict(X)
    groups = [np.flatnonzero(labels == label) for label in range(k)]
    return sorted((group for group in groups if len(group)), key=lambda group: int(group[0]))


def _enclosing_radius(X: Any) -> float:
    """Distance from the one-class centre of some rows to the farthest of them."""
    is_dense = isinstance(X, np.ndarray)
    points = InputSpace(X.mean(axis=0, dtype=np.float64) if is_dense else None).points(X)
    center, _ = one_class_center(points, np.ones(points.n_rows))
    return float(np.sqrt(points.squared_distances(center).max()))
