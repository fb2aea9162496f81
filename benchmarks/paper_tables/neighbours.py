"""KNN: the share of rare rows among the k nearest training rows."""

from collections.abc import Sequence

import numpy as np
from sklearn.neighbors import NearestNeighbors

from benchmarks.paper_tables.path import FittedPath, Params


def fit(X: np.ndarray, y: np.ndarray, ks: Params, seed: int) -> FittedPath:
    """All k at once: the neighbours are found for the largest one. Nothing random: no seed."""
    counts = np.asarray(ks, dtype=int)
    index = NearestNeighbors(n_neighbors=int(counts.max())).fit(X)

    def scores(rows: np.ndarray, indices: Sequence[int]) -> np.ndarray:
        rare_so_far = np.cumsum(y[index.kneighbors(rows, return_distance=False)], axis=1)
        wanted = counts[list(indices)]
        return rare_so_far[:, wanted - 1] / wanted

    return FittedPath(list(counts), scores, [len(X)] * len(counts))
