"""Isotonic calibration: whatever does not fall, without certainties."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import logit

from rareclass.decide.calibration.binomial_regression import platt_targets
from rareclass.decide.calibration.levels import Levels, read_levels
from rareclass.decide.calibration.score_to_probability import ScoreToProbability
from rareclass.metrics.scored_classes import FloatArray


@dataclass(frozen=True)
class IsotonicMap(ScoreToProbability):
    r"""Isotonic regression on Platt's targets.

    Least squares over all maps that do not fall, by pooling adjacent violators; between two blocks
    the log-odds are interpolated, beyond the first and last they are theirs. Targets
    :math:`(n_+ + 1) / (n_+ + 2)` and :math:`1 / (n_- + 2)` in place of 1 and 0 keep every
    probability between them: with 0 and 1, one rare row below all of training costs an infinite log
    loss.

    Attributes
    ----------
    knots : ndarray of shape (n_knots,)
        Increasing scores: first and last of every block.
    values : ndarray of shape (n_knots,)
        Log-odds there.

    Examples
    --------
    >>> p = IsotonicMap.fit([0, 0, 0, 1, 1], [0.0, 1.0, 2.0, 3.0, 4.0])
    >>> p([-1.0, 5.0]).round(2)
    array([0.2 , 0.75])
    """

    knots: FloatArray
    values: FloatArray

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_levels(y, scores, sample_weight))

    @classmethod
    def of(cls, levels: Levels) -> Self:
        """`fit` of rows that were reduced to their levels."""
        # Not at the top: scikit-learn takes seconds to load.
        from sklearn.isotonic import isotonic_regression

        if levels.is_constant:
            return cls(levels.scores, logit(np.array([levels.prevalence])))
        pooled = isotonic_regression(platt_targets(levels), sample_weight=levels.total)
        first = np.append(True, np.diff(pooled) > 0.0)
        kept = np.flatnonzero(first | np.append(first[1:], True))
        return cls(levels.scores[kept], logit(pooled[kept]))

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
