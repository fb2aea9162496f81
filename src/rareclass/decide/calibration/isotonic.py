"""Isotonic calibration: one regression, and the mean of those of parts."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy import special

from rareclass.decide.calibration.calibration_map import (
    CalibrationMap,
    ScoreLevels,
    dealt,
)
from rareclass.metrics.scored_classes import FloatArray


@dataclass(frozen=True)
class IsotonicMap(CalibrationMap):
    r"""Isotonic regression on Platt's targets.

    Least squares over all maps that do not fall, by pooling adjacent violators; between two blocks
    the log-odds are interpolated, beyond the first and last they are theirs. `platt_targets` keep
    every probability between them: with 0 and 1, one rare row below all of training costs an
    infinite log loss.

    Examples
    --------
    >>> p = IsotonicMap.fit([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> p([-1.0, 5.0]).round(2)
    array([0.2 , 0.75])
    """

    knots: FloatArray  # shape (n_knots,): increasing scores: first and last of every block
    values: FloatArray  # shape (n_knots,): log-odds there

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels."""
        # Not at the top: scikit-learn takes seconds to load.
        from sklearn.isotonic import isotonic_regression

        if len(levels.scores) == 1:
            return cls(levels.scores, special.logit(np.array([levels.prevalence])))
        pooled = isotonic_regression(levels.platt_targets, sample_weight=levels.total)
        first = np.append(True, np.diff(pooled) > 0.0)
        kept = np.flatnonzero(first | np.append(first[1:], True))
        return cls(levels.scores[kept], special.logit(pooled[kept]))

    def check_parts(self) -> None:
        """Raise `ValueError` where this is no function: knots increase, each has its value."""
        knots, values = self.knots, self.values
        if knots.ndim != 1 or not len(knots) or values.shape != knots.shape:
            raise ValueError("knots and values are not lists of one length")
        if (np.diff(knots) < 0).any() or {knots.dtype.kind, values.dtype.kind} != {"f"}:
            raise ValueError("knots do not increase")

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of scores."""
        return np.interp(scores, self.knots, self.values)


@dataclass(frozen=True)
class IsotonicOfParts:
    r"""The mean of plain isotonic regressions of ten disjoint parts of the rows.

    One isotonic regression is a staircase whose last steps hang on a few rare rows. The mean of
    those of parts (subagging; Buhlmann and Yu, "Analyzing bagging", Annals of Statistics 2002) has
    steps wherever any of them has one. Targets are 0 and 1, and so may probabilities be: it is for
    being averaged with another map.
    """

    scores: FloatArray  # shape (n_levels,): increasing
    # shape (n_levels,): there; between two scores on the line between theirs
    probabilities: FloatArray

    @classmethod
    def of(cls, levels: ScoreLevels) -> Self:
        """Learn from rows that were reduced to their levels. O(n log n)."""
        # Not at the top: scikit-learn takes seconds to load.
        from sklearn.isotonic import isotonic_regression

        total = np.zeros(len(levels.scores))
        n_parts = 0
        for rare, rest in zip(dealt(levels.rare), dealt(levels.total - levels.rare), strict=True):
            weight = rare + rest
            there = np.flatnonzero(weight > 1e-9)  # what rounding leaves of a copy is none
            if len(there):
                share = isotonic_regression(
                    rare[there] / weight[there], sample_weight=weight[there]
                )
                total += np.interp(levels.scores, levels.scores[there], share)
                n_parts += 1
        return cls(levels.scores, total / n_parts)

    def log_probabilities(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ln p and ln (1 - p) of scores; minus infinity is among them."""
        # Rounding takes the line beyond its end.
        p = np.clip(np.interp(scores, self.scores, self.probabilities), 0.0, 1.0)
        with np.errstate(divide="ignore"):
            return np.log(p), np.log1p(-p)
