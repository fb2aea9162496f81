"""How far the cells of a column have moved from those before, by counts in bins."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rareclass.later import special

MOVED, MOVED_FAR = 0.1, 0.25
"""Indices from which on practice says "moved somewhat" and "moved far" (Siddiqi 2006, ch. 6)."""
# A chi-squared variable exceeds its mean with at least this chance, whatever its degrees.
_ABOVE_MEAN = 0.3


class ColumnShift(NamedTuple):
    """Recent cells of a column against earlier ones."""

    column: str
    stability_index: float
    outside: float  # share of the recent cells that are unlike all earlier ones


def column_shift(
    column: str, recent: ArrayLike, earlier: ArrayLike, n_outside: float, n_recent: float
) -> ColumnShift:
    """Compare two rows of counts over the same bins; `n_outside` of `n_recent` cells are new."""
    index = population_stability_index(recent, earlier)
    return ColumnShift(column, index, float(n_outside) / float(n_recent))


def population_stability_index(recent: ArrayLike, earlier: ArrayLike) -> float:
    r"""Population stability index of two rows of counts over the same bins.

    .. math:: \mathrm{PSI} = \sum_b (p_b - q_b) \log(p_b / q_b)

    The symmetric Kullback-Leibler divergence of the shares p and q; for two normal distributions
    whose means lie d standard deviations apart it is ``d**2``.

    Half a row is added to every count, ``p_b = (n_b + 1/2) / (n + B/2)`` for B bins: the mean of
    the shares given the counts under Jeffreys' prior. So an empty bin gives a finite index, the
    order of the two rows of counts does not matter, and few rows shrink the index towards 0.

    >>> population_stability_index([50, 50], [500, 500]) < 1e-9
    True
    >>> round(population_stability_index([90, 10], [50, 50]), 3)
    0.853
    """
    p, q = (_shares(np.asarray(counts, float)) for counts in (recent, earlier))
    return float(((p - q) * np.log(p / q)).sum())


@dataclass(frozen=True)
class IndexByChance:
    r"""Index that two samples of one distribution exceed with a chance of about `level`, at most.

    Of n and N rows in B bins that are not empty in both, ``n N / (n + N)`` times the index is about
    chi-squared with B - 1 degrees of freedom; with few rows it is less.

    >>> round(IndexByChance.of([2] * 10, [100] * 10, 0.001).index, 2)
    1.42
    """

    n_free: int
    spread: float  # 1 / n + 1 / N; 0 where a sample is empty
    level: float

    @classmethod
    def of(cls, recent: ArrayLike, earlier: ArrayLike, level: float) -> "IndexByChance":
        """Return the index for two samples of so many rows in each bin."""
        new, old = np.asarray(recent, float), np.asarray(earlier, float)
        spread = 1.0 / new.sum() + 1.0 / old.sum() if new.sum() and old.sum() else 0.0
        return cls(max(int(np.count_nonzero(new + old)) - 1, 1), float(spread), level)

    @property
    def index(self) -> float:
        """The index itself."""
        return float(special.chdtri(self.n_free, self.level) * self.spread)

    def is_exceeded_by(self, index: float) -> bool:
        """Say whether an index is greater; below the mean of chi-squared SciPy is not needed."""
        is_below_mean = self.level < _ABOVE_MEAN and index <= self.n_free * self.spread
        return not is_below_mean and index > self.index


def _shares(counts: np.ndarray) -> np.ndarray:
    shares: np.ndarray = (counts + 0.5) / (counts.sum() + 0.5 * len(counts))
    return shares
