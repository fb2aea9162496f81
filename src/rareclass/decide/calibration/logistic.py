"""Platt's map: log-odds are a line of the score."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration.binomial_regression import fit_increasing, platt_targets
from rareclass.decide.calibration.levels import Levels, read_levels
from rareclass.decide.calibration.score_scale import ScoreScale
from rareclass.decide.calibration.score_to_probability import ScoreToProbability
from rareclass.metrics.scored_classes import FloatArray


@dataclass(frozen=True)
class LogisticMap(ScoreToProbability):
    r"""Logistic (Platt's) calibration, :math:`\ln\frac{p}{1-p} = a z(s) + c`, :math:`a \ge 0`.

    z is `ScoreScale`: log-odds of scores in [0, 1], a deviation of others. a and c minimise the
    log loss against Platt's targets, :math:`(n_+ + 1) / (n_+ + 2)` and :math:`1 / (n_- + 2)`.

    Attributes
    ----------
    scale : ScoreScale
    slope, intercept : float

    References
    ----------
    Platt (1999), "Probabilistic outputs for support vector machines".

    Examples
    --------
    >>> p = LogisticMap.fit([0, 0, 1, 0, 1, 1], [-3.0, -1.0, -0.5, 0.5, 1.0, 3.0])
    >>> p([-3.0, 0.0, 3.0]).round(2)
    array([0.2, 0.5, 0.8])
    """

    scale: ScoreScale
    slope: float
    intercept: float

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_levels(y, scores, sample_weight))

    @classmethod
    def of(cls, levels: Levels) -> Self:
        """`fit` of rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        z = scale(levels.scores)[:, None]
        if levels.is_constant:
            z = z[:, :0]
        found = fit_increasing(z, platt_targets(levels), levels.total)
        return cls(scale, float(found.slopes.sum()), found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        return np.asarray(self.slope * self.scale(scores) + self.intercept)
