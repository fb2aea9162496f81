"""Scores of both classes as shares of their rows, in bins that they have in common."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

Floats = NDArray[np.float64]
MOST_BINS = 48
# Scores beyond these quantiles of all rows, and the rare ones', are put into the outermost bins.
_OUTER = 0.0005


@dataclass(frozen=True)
class ScoreDistribution:
    """How scores of both classes lie.

    Attributes
    ----------
    edges : ndarray of shape (b + 1,)
        Of bins of equal width; scores beyond the first and last are counted in the outermost bins.
    rare, rest : ndarray of shape (b,)
        Share of the rows of each class in every bin: both add up to 1.
    """

    edges: Floats
    rare: Floats
    rest: Floats

    @classmethod
    def of(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Count; O(n log n) time."""
        is_rare, value = np.asarray(y) == 1, np.asarray(scores, float)
        weight = np.ones(len(value)) if sample_weight is None else np.asarray(sample_weight, float)
        edges = shared_edges(value, value[is_rare])
        return cls(edges, *(shares(value[k], weight[k], edges) for k in (is_rare, ~is_rare)))


def shared_edges(*columns: Floats) -> Floats:
    """Edges of bins that hold all but the outermost scores of each column."""
    finite = [column[np.isfinite(column)] for column in columns]
    bounds = [np.quantile(each, (_OUTER, 1.0 - _OUTER)) for each in finite if len(each)]
    if not bounds:
        return np.array([0.0, 1.0])
    low, high = min(pair[0] for pair in bounds), max(pair[1] for pair in bounds)
    if not low < high:
        low, high = low - 0.5, high + 0.5
    return np.linspace(low, high, MOST_BINS + 1)


def shares(values: Floats, weight: Floats, edges: Floats) -> Floats:
    """Share of the weight in each bin, values beyond the edges in the outermost."""
    place = np.clip(np.searchsorted(edges, values, side="right") - 1, 0, len(edges) - 2)
    counts = np.bincount(place, weight, len(edges) - 1)
    return counts / max(float(counts.sum()), 1e-300)
