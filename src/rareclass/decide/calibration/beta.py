"""Beta calibration: log-odds with one slope for low scores and one for high ones."""

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
class BetaMap(ScoreToProbability):
    r"""Beta calibration, :math:`\ln\frac{p}{1-p} = a \ln u - b \ln(1 - u) + c` with a, b >= 0.

    :math:`u = 1 / (1 + e^{-z(s)})` brings any score to (0, 1): z is `ScoreScale`, so that scores in
    [0, 1] are u themselves, and others count from half way between the classes. Below that, the
    log-odds rise with slope a in z, above it with slope b. Fitted as `LogisticMap` is, which it
    is where a = b.

    Attributes
    ----------
    scale : ScoreScale
    low_slope, high_slope, intercept : float
        a, b and c.

    References
    ----------
    Kull, Silva Filho, Flach (2017), "Beta calibration".

    Examples
    --------
    >>> p = BetaMap.fit([0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.7, 0.9])
    >>> bool(p([0.1])[0] < p([0.5])[0] < p([0.9])[0])
    True
    """

    scale: ScoreScale
    low_slope: float
    high_slope: float
    intercept: float

    @classmethod
    def fit(cls, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn from scored rows: y true where rare, weights as copies. O(n log n)."""
        return cls.of(read_levels(y, scores, sample_weight))

    @classmethod
    def of(cls, levels: Levels) -> Self:
        """`fit` of rows that were reduced to their levels."""
        scale = ScoreScale.of(levels)
        features = _features(scale(levels.scores))
        if levels.is_constant:
            features = features[:, :0]
        found = fit_increasing(features, platt_targets(levels), levels.total)
        low, high = (float(slope) for slope in found.slopes) if len(found.slopes) else (0.0, 0.0)
        return cls(scale, low, high, found.intercept)

    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of finite scores."""
        slopes = np.array([self.low_slope, self.high_slope])
        return _features(self.scale(scores)) @ slopes + self.intercept


def _features(z: FloatArray) -> FloatArray:
    """ln u and -ln(1 - u)."""
    return np.column_stack([-np.logaddexp(0.0, -z), np.logaddexp(0.0, z)])
