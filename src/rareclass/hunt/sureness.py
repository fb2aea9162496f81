"""How sure the rows of a hunt's list are, and the list as a model that scores new rows.

`sureness` turns the places of held-out cases into the share of cases among the first rows;
`ListOrder` keeps it with the score (`CaseScore`) and the scores of the hunt's unlabelled rows.
"""

from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.hunt.case_score import CaseScore, Floats
from rareclass.model.model_file import finite_vector

# Counts that are kept are exact for the first so many values, and to this share for others.
_EXACT, _COARSE = 10_000, 1e-3


class CumulativeCounts(NamedTuple):
    """Number of values at or below another value."""

    values: Floats  # (n_values,), increasing
    at_most: NDArray[np.int64]  # of the values at or below each

    @classmethod
    def of(cls, values: Floats) -> Self:
        """Count values; O(n log n)."""
        found, each = np.unique(values, return_counts=True)
        return cls(found, np.cumsum(each, dtype=np.int64))

    def between(self, other: Floats) -> Floats:
        """Count the values at or below each other one, at least 1, interpolated between values.

        So numbers between two values differ, and rounding moves a count by little.
        """
        if not len(self.values):
            return np.ones(np.shape(other))
        return np.asarray(np.interp(other, self.values, self.at_most))

    def thinned(self) -> Self:
        """Keep fewer values: counts are exact to the 10,000th, then to a thousandth."""
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


class ShareOfCases(NamedTuple):
    """Share of cases among the first k rows of a list: ``min(1, N H(k) / k)`` (`sureness`)."""

    places: Floats  # corners of H, increasing from 0 to the number of rows
    heights: Floats  # H there, from 0 to 1
    n_cases: float  # N: among all rows

    def __call__(self, k: ArrayLike) -> Floats:
        """Return the share for any k from 1."""
        first = np.asarray(k, dtype=np.float64)
        held = np.interp(first, self.places, self.heights)
        return np.asarray(np.minimum(self.n_cases * held / first, 1.0))

    def check_parts(self) -> None:
        """Raise `ValueError` where places and heights are no curve."""
        places = finite_vector(self.places, "places")
        finite_vector(self.heights, "heights", len(places))
        if not len(places) or (np.diff(places) <= 0.0).any() or not np.isfinite(self.n_cases):
            raise ValueError("places do not increase")


def sureness(
    n_rows: int, of_cases: NDArray[np.int64], n_cases: float | None = None
) -> ShareOfCases | None:
    r"""Estimate the share of cases among the first k rows of a list, and the number of cases.

    The n cases that were held out would stand at the places :math:`k_1 \le \ldots \le k_n`, and j
    of n + 1 cases are to be expected in the first :math:`k_j` rows. Between these points, and from
    (0, 0) to all cases at the end, H is the least concave curve above them (as Grenander's estimate
    of a falling density): the list is sorted, so that a row is never surer than one before it. With
    N cases among the unlabelled rows the share is :math:`\min(1, N H(k) / k)`.

    Where N, `n_cases`, is not known, no label tells it, since cases were sought. It is then taken
    to be the least number with which a part of the list that holds half of the held-out cases, or
    more, would be cases alone, one standard error allowed for:

    .. math:: N = \min_{j \ge (n + 1) / 2} k_j / (r_j - \sqrt{r_j (1 - r_j) / (n + 1)}),
        \quad r_j = j / (n + 1)

    So the surest rows are taken to be cases, and the others are measured against them.
    None where no case was held out. Cost: O(n).

    >>> share = sureness(100, np.array([5, 10, 15, 90]))
    >>> round(share.n_cases, 1), share([1, 15, 50, 100]).round(2).tolist()
    (39.4, [1.0, 1.0, 0.6, 0.39])
    """
    n = len(of_cases)
    if not n:
        return None
    reached = np.arange(1, n + 1) / (n + 1.0)
    if n_cases is None:
        at_least = reached - np.sqrt(reached * (1.0 - reached) / (n + 1.0))
        half = reached >= 0.5
        n_cases = min(float((of_cases[half] / at_least[half]).min()), float(n_rows))
    places = np.concatenate([[0.0], of_cases, [float(n_rows)]])
    heights = np.concatenate([[0.0], reached, [1.0]])
    corners = [0]
    for k in range(1, len(places)):
        if places[k] == places[corners[-1]] and len(corners) > 1:
            corners.pop()
        while len(corners) > 1 and _turns_up(places, heights, corners[-2], corners[-1], k):
            corners.pop()
        corners.append(k)
    return ShareOfCases(places[corners], heights[corners], float(n_cases))


def _turns_up(x: Floats, y: Floats, a: int, b: int, c: int) -> bool:
    """Check if b lies at or below the line from a to c."""
    return bool((y[b] - y[a]) * (x[c] - x[a]) <= (y[c] - y[a]) * (x[b] - x[a]))


class ListOrder(NamedTuple):
    """Order of a hunt's unlabelled rows, surest first, as a model that scores new rows.

    Rows of the hunt with one score are as sure as the last of them. ``offset_`` is the greatest
    number below the score of the last row that was written: rows as sure as that are called rare.
    """

    score: CaseScore
    counts: CumulativeCounts  # of the negative scores of the unlabelled rows
    share: ShareOfCases | None  # None where it is not known
    offset_: float

    def quantiles(self, n: int) -> Floats:
        """Return n quantiles, from 0 to 1, of the scores of the hunt's unlabelled rows."""
        scores = -np.repeat(self.counts.values, np.diff(self.counts.at_most, prepend=0))
        return np.asarray(np.quantile(scores, np.linspace(0.0, 1.0, n)))

    def thinned(self) -> Self:
        """Keep fewer counts: exact for the first 10,000 rows."""
        return self._replace(counts=self.counts.thinned())

    def score_samples(self, X: NDArray[Any]) -> Floats:
        """Return scores that fall down the list of the hunt."""
        return self.score(X)

    def sure(self, scores: Floats) -> Floats | None:
        """Return the expected share of cases among the rows of the hunt that are at least as sure.

        None where it is not known.
        """
        return None if self.share is None else self.share(self.counts.between(-scores))

    def check_parts(self) -> None:
        """Raise `ValueError` where rows could not be called by it."""
        if not np.isfinite(self.offset_):
            raise ValueError("the threshold is not a number")
