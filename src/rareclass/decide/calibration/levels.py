"""Scored rows reduced to what a map from scores to probabilities is fitted on."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray, split_scores

# Larger weights are no numbers of copies, whole or not.
_MOST_COPIES = 1e9


class Levels(NamedTuple):
    """The distinct scores, ascending, with the weight of the rows at each; all shape (n_levels,).

    Rows of equal score are one level, so that ties get one probability; weights are copies.
    """

    scores: FloatArray
    rare: FloatArray
    total: FloatArray

    @property
    def n_rare(self) -> float:
        """Weight of the rare rows."""
        return float(self.rare.sum())

    @property
    def n_majority(self) -> float:
        """Weight of the other rows."""
        return float((self.total - self.rare).sum())

    @property
    def prevalence(self) -> float:
        """Share of the rare rows, by weight."""
        return self.n_rare / (self.n_rare + self.n_majority)

    @property
    def is_constant(self) -> bool:
        """Whether all rows have one score, which tells nothing."""
        return len(self.scores) == 1


def read_levels(y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Levels:
    """The levels of scored rows. O(n log n) time, O(n) memory.

    Weights are copies where they are whole numbers. Of others only the ratios count: they are
    scaled to a mean of 1 among the rare rows, which are what evidence is short of.

    Raises `ValueError` as `rareclass.metrics.roc_auc` does: other labels than 0 and 1, NaN scores,
    negative weights, a class without a row of weight above 0; and on infinite scores.
    """
    if sample_weight is not None:
        _refuse_no_weight(sample_weight)
    split = split_scores(y, scores, sample_weight)
    value = np.concatenate([split.rare, split.majority])
    infinite = ~np.isfinite(value)
    if infinite.any():
        raise InputError(
            f"scores hold {infinite.sum()} infinite values, of which no probability is learned.",
            "Give finite scores.",
        )
    if split.rare_weight is None or split.majority_weight is None:
        weight = np.ones(len(value))
    else:
        weight = np.concatenate(_as_copies(split.rare_weight, split.majority_weight))
    distinct, place = np.unique(value, return_inverse=True)
    n_rare, n_levels = len(split.rare), len(distinct)
    rare = np.bincount(place[:n_rare], weight[:n_rare], n_levels).astype(np.float64)
    rest = np.bincount(place[n_rare:], weight[n_rare:], n_levels).astype(np.float64)
    return Levels(distinct, rare, rare + rest)


def _as_copies(rare: FloatArray, rest: FloatArray) -> tuple[FloatArray, FloatArray]:
    most = max(rare.max(), rest.max())
    if most <= _MOST_COPIES and all((w == np.round(w)).all() for w in (rare, rest)):
        return rare, rest
    mean = (rare / most).mean() * most  # sums of very large ones do not fit
    return rare / mean, rest / mean


def _refuse_no_weight(sample_weight: ArrayLike | None) -> None:
    weight = np.asarray(sample_weight)
    if weight.dtype.kind in "fiub" and weight.size and not weight.any():
        raise InputError(
            "sample_weight is 0 for every row: there is nothing to learn from.",
            "Give some rows a weight above 0, or leave it out.",
        )


def coarser(levels: Levels, most: int) -> Levels:
    """At most so many levels of equal weight, about, and those that hold rare rows.

    A joined level stands at the highest of its scores, the lower ones of which count as it.
    """
    if len(levels.scores) <= most:
        return levels
    is_rare = levels.rare > 0.0
    share = np.cumsum(levels.total) / levels.total.sum()
    part = np.minimum((share * most).astype(np.int64), most - 1)
    # A level ends where the next one begins another part, or holds rare rows as it or its next.
    ends = np.append((np.diff(part) > 0) | is_rare[:-1] | is_rare[1:], True)
    last = np.flatnonzero(ends)
    first = np.append(0, last[:-1] + 1)
    return Levels(
        levels.scores[last],
        np.add.reduceat(levels.rare, first),
        np.add.reduceat(levels.total, first),
    )
