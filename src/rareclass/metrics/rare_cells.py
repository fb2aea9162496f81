"""A scored sample reduced to what ranking measures need: the majority counted between rare scores.

Every measure here is a function of how many majority rows lie above, at and below each rare score.
Where exactly they lie between two neighbouring rare scores changes nothing, so n rows become
2 d + 1 cells, d being the number of distinct rare scores: gap 0, tie 0, gap 1, tie 1, ..., gap d.
No score is rounded or put in a bin.
"""

from typing import Any, NamedTuple

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
    return place_rows(split_scores(y, scores, sample_weight)).cells


class PlacedRows(NamedTuple):
    """Both classes counted around the rare scores, and the place of each row."""

    cells: RareCells
    rare_at: NDArray[np.intp]  # of each rare row among the distinct rare scores
    majority_at: NDArray[np.int64]  # cell of each majority row: gap 0, tie 0, gap 1, ..., gap d


def place_rows(split: ScoredClasses) -> PlacedRows:
    """Count both classes around the d distinct rare scores: O(n log n_rare) time, O(n) memory."""
    distinct, rare_at = np.unique(split.rare, return_inverse=True)
    compiled = is_worth_compiling(split.rare.size + split.majority.size)
    majority_at = find_cells(distinct, split.majority, compiled)
    rare = weigh(rare_at, split.rare_weight, distinct.size)
    counts = weigh(majority_at, split.majority_weight, 2 * distinct.size + 1)
    cells = RareCells(distinct, rare, tied=counts[1::2], gaps=counts[0::2])
    return PlacedRows(cells, rare_at, majority_at)


def weigh(place: NDArray[Any], weight: FloatArray | None, n_places: int) -> FloatArray:
    """Weight of the rows in each place, added in row order."""
    return np.bincount(place, weight, n_places).astype(np.float64)


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
