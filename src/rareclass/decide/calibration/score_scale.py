"""The scale on which a parametric map reads scores: log-odds, or deviations."""

from dataclasses import dataclass

import numpy as np
from scipy.special import logit

from rareclass.decide.calibration.levels import Levels
from rareclass.metrics.scored_classes import FloatArray

# Nearer to 0 and 1 than this, probabilities are rounding.
_NEAREST = 1e-15


@dataclass(frozen=True)
class ScoreScale:
    r"""From a score to z, increasing.

    Scores that all lie in [0, 1] are read as probabilities, :math:`z = \ln(s / (1 - s))`, those
    nearer to 0 or 1 than half of the nearest of training as these: a forest's 0 of 100 votes is
    taken for 1 in 200. Others are centred half way between the medians of the classes and divided
    by their spread, :math:`z = (s - centre) / spread`.

    Attributes
    ----------
    is_probability : bool
    centre, spread : float
    lowest, highest : float
        Bounds of a score that is a probability.
    """

    is_probability: bool
    centre: float = 0.0
    spread: float = 1.0
    lowest: float = 0.0
    highest: float = 1.0

    @classmethod
    def of(cls, levels: Levels) -> "ScoreScale":
        """The scale of training scores."""
        scores = levels.scores
        if scores[0] >= 0.0 and scores[-1] <= 1.0:
            inside = scores[(scores > 0.0) & (scores < 1.0)]
            gaps = (inside[0], 1.0 - inside[-1]) if len(inside) else (0.5, 0.5)
            low, high = (max(0.5 * float(gap), _NEAREST) for gap in gaps)
            return cls(True, lowest=low, highest=1.0 - high)
        rest = levels.total - levels.rare
        medians = [_quantile(scores, weight, 0.5) for weight in (levels.rare, rest)]
        low, high = (_quantile(scores, rest, share) for share in (0.25, 0.75))
        spread = max(high - low, abs(medians[0] - medians[1]), 1e-3 * (scores[-1] - scores[0]))
        return cls(False, 0.5 * medians[0] + 0.5 * medians[1], spread if spread > 0.0 else 1.0)

    def __call__(self, scores: FloatArray) -> FloatArray:
        """z of each score."""
        if self.is_probability:
            return logit(np.clip(scores, self.lowest, self.highest))
        return (scores - self.centre) / self.spread


def _quantile(scores: FloatArray, weight: FloatArray, share: float) -> float:
    running = np.cumsum(weight)
    return float(scores[np.searchsorted(running, share * running[-1])])
