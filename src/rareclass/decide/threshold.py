"""The score above which a row is called rare."""

import math
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import ArrayLike

from rareclass.metrics.rare_cells import RareCells, cells_of, collapse, greatest_in_bins
from rareclass.metrics.scored_classes import FloatArray, ScoredClasses, split_scores
from rareclass.rows.source import is_dask

# Sums of fractional weights that are equal on paper differ by rounding.
_EQUAL = 1e-12


def balanced_accuracy_threshold(
    y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> float:
    """Threshold t for which calling ``score > t`` rare has the greatest balanced accuracy.

    Maximises ``(TPR(t) + 1 - FPR(t)) / 2``: ``TPR(t)`` is the share, by weight, of the rare rows
    that score above t, ``FPR(t)`` the share of the majority rows that do. The answer is the
    midpoint of two neighbouring distinct scores; among several equally good gaps the widest is
    taken, and among equally wide ones the highest.

    When no threshold does better than calling every row the same (one half; all scores equal, or a
    ranking the wrong way round), the answer is the greatest score: nothing is called rare.

    Parameters
    ----------
    y : array-like of shape (n,)
        True or 1 where the row is rare.
    scores : array-like of shape (n,)
        Higher means rarer.
    sample_weight : array-like of shape (n,), optional
        Copies that each row stands for; 0 leaves the row out.

    Returns
    -------
    float
        Below every score that it puts above it, also where two scores are neighbouring floats or
        infinite. O(n log n) time, O(n) memory.

    Raises
    ------
    ValueError
        On empty or mismatched columns, labels other than 0 and 1, NaN scores, negative weights,
        or a class without rows.

    Examples
    --------
    >>> balanced_accuracy_threshold([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    2.5
    """
    if is_dask(scores):
        from rareclass.metrics.rare_cells import MajorityInParts  # needs an extra

        cells = cells_of(y, scores, sample_weight)
        return _threshold(cells, MajorityInParts(y, scores, sample_weight))
    return threshold_between(split_scores(y, scores, sample_weight))


def threshold_between(split: ScoredClasses) -> float:
    """`balanced_accuracy_threshold` of scores that are split by class already."""
    return _threshold(collapse(split), _MajorityInMemory(split.majority))


class _Majority(Protocol):
    """The scores of the majority, wherever they are."""

    def greatest(self) -> float:
        """The greatest of them."""
        ...

    def greatest_below(self, upper: FloatArray) -> FloatArray:
        """The greatest in each bin below increasing bounds; -inf where a bin is empty.

        Bin i holds what lies from the bound before it up to, and without, ``upper[i]``.
        """
        ...


class _MajorityInMemory(NamedTuple):
    scores: FloatArray

    def greatest(self) -> float:
        return float(self.scores.max())

    def greatest_below(self, upper: FloatArray) -> FloatArray:
        return greatest_in_bins(upper, self.scores)


def _threshold(cells: RareCells, majority: _Majority) -> float:
    tpr = cells.rare_from() / cells.n_rare
    fpr = cells.majority_from() / cells.n_majority
    gain = tpr - fpr
    if gain.max() <= _EQUAL:
        return float(max(cells.scores[-1], majority.greatest()))
    # Lowering t over majority rows only loses, so the best gaps lie right under a rare score.
    best = np.flatnonzero(gain >= gain.max() - _EQUAL)
    upper = cells.scores[best]
    # The greatest score below each, of either class.
    lower = np.maximum(np.append(-np.inf, cells.scores)[best], majority.greatest_below(upper))
    with np.errstate(over="ignore"):
        width = upper - lower
    widest = np.flatnonzero(width == width.max())[-1]
    return between(float(lower[widest]), float(upper[widest]))


def threshold_between_few(rare: FloatArray, majority: FloatArray) -> float:
    """`threshold_between` of some hundreds of scores, none of them NaN: the same number, faster.

    Arrays cost more than they save on so few: 100 scores take a third of the time.
    """
    rare_scores = sorted(rare.tolist(), reverse=True)
    majority_scores = sorted(majority.tolist(), reverse=True)
    n_rare, n_majority = len(rare_scores), len(majority_scores)
    rare_scores.append(-math.inf)  # what lies below the last one
    majority_scores.append(-math.inf)
    gaps: list[tuple[float, float, float]] = []
    rare_above = majority_above = 0
    while rare_above < n_rare:
        upper = rare_scores[rare_above]
        while rare_above < n_rare and rare_scores[rare_above] == upper:
            rare_above += 1
        while majority_above < n_majority and majority_scores[majority_above] >= upper:
            majority_above += 1
        lower = max(rare_scores[rare_above], majority_scores[majority_above])
        gaps.append((rare_above / n_rare - majority_above / n_majority, lower, upper))
    greatest = max(gaps)[0]
    if greatest <= _EQUAL:
        return max(rare_scores[0], majority_scores[0])
    best = [(lower, upper) for gain, lower, upper in gaps if gain >= greatest - _EQUAL]
    # The first of equally wide ones is the highest: the gaps come from the top.
    return between(*max(best, key=lambda gap: gap[1] - gap[0]))


def between(low: float, high: float) -> float:
    """A number t with ``low <= t < high``, the midpoint where floats have one."""
    middle = low / 2 + high / 2
    return middle if low <= middle < high else low
