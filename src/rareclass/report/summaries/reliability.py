"""Whether probabilities hold: the share of rare rows among those that were given about as much."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.rules.exact_bounds import exact_interval
from rareclass.metrics.interval import Interval
from rareclass.report.summaries.threshold_table import LEVEL

Floats = NDArray[np.float64]
# Bins a factor of ten of probability has before any are merged.
_A_DECADE = 3
_LOWEST = 1e-6
# A bin of fewer expected rare rows tells little, and one of fewer rows nothing.
_LEAST_EXPECTED, _LEAST_ROWS = 2.0, 20.0


@dataclass(frozen=True)
class Reliability:
    """Probabilities in bins beside how often such rows were rare, the lowest first.

    Bins are even on the logarithm of the probability (a third of a factor of ten), as rare rows
    live where linear bins see one. Neighbours are merged until each expects two rare rows or holds
    two, so that an interval says more than that there was nothing to see.

    Attributes
    ----------
    foretold : tuple of float
        Mean probability of the rows of a bin.
    found : tuple of Interval
        Share of rare rows with its exact (Clopper-Pearson) 95 % interval.
    n_rows, n_rare : tuple of float
        Of each bin; weights where there are some.
    """

    foretold: tuple[float, ...]
    found: tuple[Interval, ...]
    n_rows: tuple[float, ...]
    n_rare: tuple[float, ...]

    @property
    def n_off(self) -> int:
        """Bins whose interval does not hold the probability that they were given."""
        both = zip(self.foretold, self.found, strict=True)
        return sum(not found.low <= foretold <= found.high for foretold, found in both)

    @classmethod
    def of(
        cls, y: ArrayLike, probabilities: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Sort rows into bins; O(n) time. `y` is True or 1 where a row is rare.

        Raises `ValueError` where a probability is not between 0 and 1.
        """
        rare, given = np.asarray(y) == 1, np.asarray(probabilities, float)
        if not ((given >= 0.0) & (given <= 1.0)).all():
            place = int(np.flatnonzero(~((given >= 0.0) & (given <= 1.0)))[0])
            raise ValueError(f"probabilities[{place}]={given[place]!r} must be between 0 and 1.")
        weight = np.ones(len(rare)) if sample_weight is None else np.asarray(sample_weight, float)
        edges = np.logspace(np.log10(_LOWEST), 0.0, int(-np.log10(_LOWEST) * _A_DECADE) + 1)
        bins = np.searchsorted(edges, given, side="right")
        n_bins = len(edges) + 1
        sums = np.array(
            [
                np.bincount(bins, each, n_bins)
                for each in (weight, weight * given, weight * rare, weight**2)
            ]
        )
        kept = _merged(sums)
        return cls(
            tuple(float(foretold / n) for n, foretold, _, _ in kept),
            tuple(_interval(n, hits, squares) for n, _, hits, squares in kept),
            tuple(float(n) for n, *_ in kept),
            tuple(float(hits) for _, _, hits, _ in kept),
        )


def _merged(sums: Floats) -> list[Floats]:
    """Columns of sums, the highest first, joined to the next lower until each says something."""
    kept: list[Floats] = []
    waiting = np.zeros(len(sums))
    for column in sums.T[::-1]:
        waiting = waiting + column
        n, expected, hits, _ = waiting
        if n >= _LEAST_ROWS and (expected >= _LEAST_EXPECTED or hits >= _LEAST_EXPECTED):
            kept.append(waiting)
            waiting = np.zeros(len(sums))
    if waiting[0] > 0:
        # What is left at the bottom is often most of the rows: a bin of its own if it can be.
        if waiting[0] >= _LEAST_ROWS or not kept:
            kept.append(waiting)
        else:
            kept[-1] = kept[-1] + waiting
    return kept[::-1]


def _interval(n: float, hits: float, squares: float) -> Interval:
    """As many trials as rows; weighted ones as so many as have the same variance."""
    trials = n * n / squares if squares > n else n
    return exact_interval(hits / n * trials, trials, LEVEL)
