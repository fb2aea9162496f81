"""The mean of isotonic regressions of parts of the rows: smoother than one of all of them."""

from dataclasses import dataclass
from typing import Self

import numpy as np

from rareclass.decide.calibration.dealing import dealt
from rareclass.decide.calibration.levels import Levels
from rareclass.metrics.scored_classes import FloatArray


@dataclass(frozen=True)
class IsotonicOfParts:
    r"""The mean of plain isotonic regressions of ten disjoint parts of the rows.

    One isotonic regression is a staircase whose last steps hang on a few rare rows. The mean of
    those of parts (subagging; Buhlmann and Yu, "Analyzing bagging", Annals of Statistics 2002) has
    steps wherever any of them has one. Targets are 0 and 1, and so may probabilities be: it is for
    being averaged with another map.

    Attributes
    ----------
    scores : ndarray of shape (n_levels,)
        Increasing.
    probabilities : ndarray of shape (n_levels,)
        There; between two scores on the line between theirs.
    """

    scores: FloatArray
    probabilities: FloatArray

    @classmethod
    def of(cls, levels: Levels) -> Self:
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
        return cls(levels.scores, np.clip(total / n_parts, 0.0, 1.0))

    def log_probabilities(self, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        """ln p and ln (1 - p) of scores; minus infinity is among them."""
        p = np.interp(scores, self.scores, self.probabilities)
        with np.errstate(divide="ignore"):
            return np.log(p), np.log1p(-p)
