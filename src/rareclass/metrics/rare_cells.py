"""A scored sample reduced to what ranking measures need: the majority counted between rare scores.

Every measure here is a function of how many majority rows lie above, at and below each rare
score. Where exactly they lie between two neighbouring rare scores changes nothing, so n rows
become 2 d + 1 counts, d being the number of distinct rare scores.
"""

from typing import NamedTuple

import numpy as np

from rareclass.metrics.scored_classes import FloatArray, ScoredClasses


class RareCells(NamedTuple):
    """Weights of both classes around the d distinct rare scores.

    Attributes
    ----------
    scores : ndarray of shape (d,)
        Distinct scores of the rare rows, ascending.
    rare : ndarray of shape (d,)
        Weight of the rare rows at each.
    tied : ndarray of shape (d,)
        Weight of the majority rows at each.
    gaps : ndarray of shape (d + 1,)
        Weight of the majority rows strictly between: ``gaps[i]`` is just below ``scores[i]``,
        ``gaps[d]`` above them all.
    """

    scores: FloatArray
    rare: FloatArray
    tied: FloatArray
    gaps: FloatArray

    @property
    def n_rare(self) -> float:
        """Total weight of the rare rows."""
        return float(self.rare.sum())

    @property
    def n_majority(self) -> float:
        """Total weight of the majority rows."""
        return float(self.tied.sum() + self.gaps.sum())

    def rare_from(self) -> FloatArray:
        """Weight of the rare rows that score at least ``scores[i]``; shape (d,)."""
        return np.cumsum(self.rare[::-1])[::-1]

    def majority_from(self) -> FloatArray:
        """Weight of the majority rows that score at least ``scores[i]``; shape (d,)."""
        return np.cumsum((self.tied + self.gaps[1:])[::-1])[::-1]

    def majority_below(self) -> FloatArray:
        """Weight of the majority rows below ``scores[i]``, ties counting one half; shape (d,)."""
        return np.cumsum(self.gaps[:-1]) + np.cumsum(self.tied) - self.tied / 2


def collapse(split: ScoredClasses) -> RareCells:
    """Count both classes around the distinct rare scores: O(n log n) time, O(n) memory."""
    scores, rare = _weigh_distinct(split.rare, split.rare_weight)
    if split.majority_weight is None:
        # Plain sorting is vectorised; argsort is needed only to carry weights along.
        majority = np.sort(split.majority)
    else:
        order = np.argsort(split.majority)
        majority = split.majority[order]
    left = np.searchsorted(majority, scores, side="left")
    right = np.searchsorted(majority, scores, side="right")
    # Cells in ascending order: gap 0, tie 0, gap 1, tie 1, ..., gap d.
    edges = np.concatenate([[0], np.column_stack([left, right]).ravel(), [majority.size]])
    sizes = np.diff(edges)
    if split.majority_weight is None:
        cells: FloatArray = sizes.astype(np.float64)
    else:
        # Added cell by cell: differences of one long running sum would lose the small weights.
        cell_of_row = np.repeat(np.arange(sizes.size), sizes)
        weight = split.majority_weight[order]
        cells = np.bincount(cell_of_row, weight, minlength=sizes.size).astype(np.float64)
    return RareCells(scores, rare, tied=cells[1::2], gaps=cells[0::2])


def _weigh_distinct(scores: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    if weight is None:
        distinct, counts = np.unique(scores, return_counts=True)
        return distinct, counts.astype(np.float64)
    distinct, inverse = np.unique(scores, return_inverse=True)
    return distinct, np.bincount(inverse, weight).astype(np.float64)
