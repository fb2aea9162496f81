"""What every map from scores to probabilities does."""

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit

from rareclass.metrics.scored_classes import FloatArray, check_scores

# The nearest to 0 and 1 that a probability comes: the same distance from both ends.
_NEAREST = float(np.finfo(np.float64).eps)


class ScoreToProbability(ABC):
    """A map that does not fall, from a score to the probability of the rare class.

    Whoever inherits is a frozen dataclass of numbers and arrays, with ``fit(y, scores,
    sample_weight)``.
    """

    @abstractmethod
    def log_odds(self, scores: FloatArray) -> FloatArray:
        """ln p / (1 - p) of each score."""

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of the rare class, strictly between 0 and 1, of each score.

        Raises `ValueError` on a NaN score, naming the row.
        """
        value, _ = check_scores(scores, None)
        return to_probability(self.log_odds(value))


def to_probability(log_odds: FloatArray) -> FloatArray:
    """p strictly between 0 and 1."""
    return np.clip(expit(log_odds), _NEAREST, 1.0 - _NEAREST)
