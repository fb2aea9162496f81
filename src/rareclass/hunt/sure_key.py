"""The key that the list of a hunt is sorted by: how deep a row lies, and how near to a case."""

from typing import NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import pairwise_distances_argmin

Floats = NDArray[np.float64]
# Of counts that are kept the first so many are exact, and others to this share.
_EXACT, _COARSE = 10_000, 1e-3
_BLOCK_ROWS = 50_000
OTHER = -1  # label of a known row that is no case of any ball


class Counts(NamedTuple):
    """How many of some values are at or below another, for each of `per` cases."""

    values: Floats  # (n_values,), increasing
    at_most: NDArray[np.int64]  # of the values at or below each
    per: int = 1

    @classmethod
    def of(cls, values: Floats, per: int = 1) -> Self:
        """Count values; O(n log n)."""
        found, each = np.unique(values, return_counts=True)
        return cls(found, np.cumsum(each, dtype=np.int64), per)

    @property
    def n_all(self) -> int:
        """Values that were counted."""
        return int(self.at_most[-1]) if len(self.at_most) else 0

    def __call__(self, other: Floats) -> Floats:
        """How many are at or below each other one, for each case; at least one is."""
        counts = np.concatenate([[1], self.at_most])
        return np.asarray(counts[np.searchsorted(self.values, other, side="right")] / self.per)

    def between(self, other: Floats) -> Floats:
        """The same, interpolated between values, and below the least as for that.

        So others between two are told apart, and rounding moves a count by little.
        """
        if not len(self.values):
            return np.full(np.shape(other), 1.0 / self.per)
        return np.asarray(np.interp(other, self.values, self.at_most) / self.per)

    def thinned(self) -> Self:
        """Fewer values that count as these: exact to the 10,000th, then to a thousandth."""
        step = np.log(np.maximum(self.at_most / _EXACT, 1.0)) // np.log1p(_COARSE)
        # The first and the last value of every step: between two steps nothing is left out.
        begins = np.diff(step, prepend=-1.0) > 0.0
        ends = np.append(begins[1:], True)[: len(begins)]
        kept = np.flatnonzero(begins | ends | (self.at_most <= _EXACT))
        return self._replace(values=self.values[kept], at_most=self.at_most[kept])

    def check_parts(self) -> None:
        """Raise `ValueError` where values and counts do not belong together."""
        if np.shape(self.at_most) != np.shape(self.values) or np.ndim(self.values) != 1:
            raise ValueError("there is not a count for each value")
        if (np.diff(self.values) <= 0.0).any() or (np.diff(self.at_most, prepend=0) <= 0).any():
            raise ValueError("counts do not increase")
        if self.per < 1:
            raise ValueError("counts are of no case")


class SureKey(NamedTuple):
    r"""The key of rows, from counts of the unlabelled rows of a hunt: smaller is surer.

    Two things make a row sure: how deep it lies in its ball, and how near it is to a case, measured
    against the nearest labelled row that is none: ``d_case / (d_case + d_other)``. Each is counted
    in unlabelled rows that lie at least as deep, or as near, for each case of the ball or label, so
    that balls of every size and shape compare. The key is the geometric mean of the two counts.
    """

    known: NDArray[np.floating]  # (n_known, n_coordinates): the labelled rows
    label: NDArray[np.int64]  # (n_known,): place of their label in `near`; `OTHER` of the others
    near: tuple[Counts, ...]  # of nearness to a case, for each label
    deep: tuple[Counts, ...]  # of the negative depth in a ball, for each ball
    label_of: tuple[int, ...]  # of each ball

    def __call__(self, X: NDArray[np.floating], ball: NDArray[np.int64], depth: Floats) -> Floats:
        """Keys of rows that lie so deep (R^2 - distance^2) in these balls, one each.

        Between two of the unlabelled rows counts are interpolated. Cost: a distance from every row
        to every labelled one.
        """
        keys = np.empty(len(X))
        for number, (deep, place) in enumerate(zip(self.deep, self.label_of, strict=True)):
            own, is_case = np.flatnonzero(ball == number), self.label == place
            if len(own):
                apart = relative_distance(X[own], self.known[is_case], self.known[~is_case])
                as_near = self.near[place].between(apart)
                keys[own] = np.sqrt(deep.between(-depth[own]) * as_near)
        return keys

    def check_parts(self) -> None:
        """Raise `ValueError` where the parts are not of one size."""
        places = range(len(self.near))
        if np.ndim(self.known) != 2 or np.shape(self.label) != (len(self.known),):
            raise ValueError("there is not a label for each known row")
        if not all(place in places and (self.label == place).any() for place in self.label_of):
            raise ValueError("a ball has no known case")
        if len(self.deep) != len(self.label_of):
            raise ValueError("there are not counts for each ball")


def relative_distance(
    X: NDArray[np.floating], cases: NDArray[np.floating], others: NDArray[np.floating]
) -> Floats:
    """Distance of every row to the nearest case, against that to the nearest of the others."""
    return against(to_nearest(X, cases), X, others)


def against(apart: Floats, X: NDArray[np.floating], others: NDArray[np.floating]) -> Floats:
    """Distances to cases, measured against those of the same rows to the others, if any."""
    if not len(others):
        return apart
    other = to_nearest(X, others)
    with np.errstate(invalid="ignore"):
        return np.where(apart + other > 0.0, apart / (apart + other), 0.5)


def to_nearest(X: NDArray[np.floating], cases: NDArray[np.floating]) -> Floats:
    """Distance of every row to the nearest case: 0 to one that it is equal to."""
    middle = cases.mean(axis=0, dtype=np.float64)  # far from zero, squares lose digits
    centred, apart = cases - middle, np.empty(len(X))
    for first in range(0, len(X), _BLOCK_ROWS):
        block = X[first : first + _BLOCK_ROWS] - middle
        block -= centred[pairwise_distances_argmin(block, centred)]
        apart[first : first + _BLOCK_ROWS] = np.sqrt(np.einsum("ij,ij->i", block, block))
    return apart
