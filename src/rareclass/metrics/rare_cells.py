"""A scored sample reduced to what ranking measures need: the majority counted between rare scores.

Every measure here is a function of how many majority rows lie above, at and below each rare score.
Where exactly they lie between two neighbouring rare scores changes nothing, so n rows become
2 d + 1 cells, d being the number of distinct rare scores: gap 0, tie 0, gap 1, tie 1, ..., gap d.
No score is rounded or put in a bin.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.metrics.scored_classes import FloatArray, ScoredClasses, split_scores

# Rows from which on the search is worth the loading of compiled code: that takes 5 to 20 ms where
# the process has fitted a model, 0.4 s where nothing else needed numba. Once loaded, the search is
# the faster way at any size; this many rows take 3 to 8 ms against 10 to 25 ms. Only the size
# decides, so that equal rows give equal last digits.
_SEARCH_FROM = 200_000


class RareCells(NamedTuple):
    """Weights of both classes around the d distinct rare scores."""

    scores: FloatArray  # shape (d,): of the rare rows, distinct, ascending
    rare: FloatArray  # shape (d,): weight of the rare rows at each
    tied: FloatArray  # shape (d,): weight of the majority rows at each
    # shape (d + 1,), of the majority strictly between: gaps[i] just below scores[i], gaps[d] above
    # all
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


def cells_of(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> RareCells:
    """Count both classes around the rare scores, from columns as `split_scores` takes them."""
    return collapse(split_scores(y, scores, sample_weight))


def collapse(split: ScoredClasses) -> RareCells:
    """Count both classes around the d distinct rare scores.

    From `_SEARCH_FROM` rows on by `collapse_by_searching`: O(n log d) time, O(n) memory.
    Below that by `collapse_by_sorting`: O(n log n) time, O(n) memory.
    """
    is_large = is_worth_compiling(split.rare.size + split.majority.size)
    return collapse_by_searching(split) if is_large else collapse_by_sorting(split)


def collapse_by_searching(split: ScoredClasses) -> RareCells:
    """Do as `collapse` by a compiled search of every row among the sorted rare scores."""
    if split.rare_weight is None:
        scores, rare = weigh_distinct(split.rare, None)
    else:
        # Searching each rare row among the distinct ones is faster than an argsort of them.
        scores = np.unique(split.rare)
        rare = search(scores, split.rare, split.rare_weight)[1::2]
    cells = search(scores, split.majority, split.majority_weight)
    return RareCells(scores, rare, tied=cells[1::2], gaps=cells[0::2])


def search(distinct: FloatArray, scores: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Weight of the rows in each of the 2 d + 1 cells, added in row order."""
    cell = find_cells(distinct, scores, compiled=True)
    return np.bincount(cell, weight, 2 * distinct.size + 1).astype(np.float64)


def collapse_by_sorting(split: ScoredClasses) -> RareCells:
    """Do as `collapse` by sorting both classes, with numpy alone."""
    scores, rare = weigh_distinct(split.rare, split.rare_weight)
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


def weigh_distinct(scores: FloatArray, weight: FloatArray | None) -> tuple[FloatArray, FloatArray]:
    """Return the distinct scores, ascending, and the weight of the rows at each."""
    if weight is None:
        distinct, counts = np.unique(scores, return_counts=True)
        return distinct, counts.astype(np.float64)
    distinct, inverse = np.unique(scores, return_inverse=True)
    return distinct, np.bincount(inverse, weight).astype(np.float64)


def find_cells(distinct: FloatArray, scores: FloatArray, compiled: bool) -> NDArray[np.int64]:
    """Cell of each row: gap 0, tie 0, gap 1, tie 1, ..., gap d; O(n log d) time."""
    if compiled:
        # Not at the top: numba takes longer to load than small samples take to sort.
        from rareclass.metrics import _ranking_jit as jit

        cell = np.empty(scores.size, np.int64)
        jit.find_cells(distinct, scores, cell)
        return cell
    left = np.searchsorted(distinct, scores)
    return 2 * left + (distinct[np.minimum(left, distinct.size - 1)] == scores)


def is_worth_compiling(n_rows: int) -> bool:
    """Return whether so many rows make up for the loading of compiled code."""
    return n_rows >= _SEARCH_FROM
