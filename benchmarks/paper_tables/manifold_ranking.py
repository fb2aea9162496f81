"""Ranking on data manifolds, which the RACH paper compares with.

Zhou, Weston, Gretton, Bousquet and Schoelkopf, "Ranking on data manifolds" (NIPS 2003):

1. Connect pairs of rows, the nearest first, until the graph hangs together.
2. W_ij = exp(-|x_i - x_j|^2 / (2 sigma^2)) on edges, 0 elsewhere and on the diagonal.
3. S = D^-1/2 W D^-1/2 with D the row sums of W.
4. f = (I - alpha S)^-1 y, y being 1 / q for each of q queries (the labelled rare rows).

The threshold on f is not part of the method; `rach_methods` has it from left-out labels.
"""

from functools import lru_cache
from hashlib import sha256
from typing import Any

import numpy as np
from scipy.cluster.hierarchy import linkage
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import pdist, squareform

NEIGHBOUR = 10
_GRAPHS = 9  # that are kept: 86 MB each with 3,280 rows


class Graph:
    """A table of rows as a key, so that factors are made once for all labels and folds."""

    def __init__(self, X: np.ndarray):
        self.X = X
        self._digest = sha256(np.ascontiguousarray(X).tobytes()).digest()

    def __hash__(self) -> int:
        return hash(self._digest)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Graph) and self._digest == other._digest


def ranking(X: np.ndarray, queries: np.ndarray, sigma: float, alpha: float) -> np.ndarray:
    """Scores of all rows, shape (n,): how near each is to the queries along the manifold.

    `sigma` is a multiple of the median distance to the tenth nearest row. Cost: O(n^3) for each
    table, sigma and alpha, then O(n^2).
    """
    y = np.zeros(len(X))
    y[queries] = 1.0 / len(queries)
    return cho_solve(_factor(Graph(X), sigma, alpha), y)


def similarities(X: np.ndarray, sigma: float) -> np.ndarray:
    """S of steps 1 to 3."""
    condensed = pdist(X)
    longest = float(linkage(condensed, "single")[:, 2].max())  # of a minimum spanning tree
    distances = squareform(condensed)
    k = min(NEIGHBOUR, len(X) - 1)
    typical = float(np.median(np.partition(distances, k, axis=1)[:, k])) or 1.0
    W = np.exp(-0.5 * (distances / (sigma * typical)) ** 2)
    W[distances > longest * (1.0 + 1e-12)] = 0.0
    np.fill_diagonal(W, 0.0)
    scale = 1.0 / np.sqrt(np.maximum(W.sum(axis=1), np.finfo(float).tiny))
    return scale[:, None] * W * scale


@lru_cache(maxsize=_GRAPHS)
def _factor(graph: Graph, sigma: float, alpha: float) -> Any:
    S = similarities(graph.X, sigma)
    return cho_factor(np.eye(len(S)) - alpha * S, overwrite_a=True, check_finite=False)
