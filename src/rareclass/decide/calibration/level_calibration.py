"""Probabilities of ordered levels: a map for each level above which a row may lie."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.calibration.calibration import Calibration
from rareclass.metrics.scored_classes import FloatArray


@dataclass(frozen=True)
class LevelCalibration:
    r"""Probabilities of K ordered levels from scores.

    Each of the K - 1 maps gives :math:`P(y > k)` from the score. They are learned one by one, and
    may cross where rows are few: a row's are made non-increasing in k, half way between the least
    change that only lowers them and the least that only raises them. Level k then has
    :math:`P(y > k - 1) - P(y > k)` (Frank and Hall 2001).

    Attributes
    ----------
    above : list of K - 1 Calibration or float
        A number where no row lies on one side: 0 or 1.
    """

    above: list[Calibration | float]

    def __call__(self, scores: ArrayLike) -> FloatArray:
        """Probability of each level, of shape (n, K); rows sum to 1."""
        values = np.asarray(scores, dtype=np.float64)
        exceeded = np.column_stack(
            [
                each(values) if isinstance(each, Calibration) else np.full(len(values), each)
                for each in self.above
            ]
        )
        lowered = np.minimum.accumulate(exceeded, axis=1)
        raised = np.maximum.accumulate(exceeded[:, ::-1], axis=1)[:, ::-1]
        ends = np.ones((len(values), 1))
        exceeded = np.hstack([ends, 0.5 * (lowered + raised), 0.0 * ends])
        return exceeded[:, :-1] - exceeded[:, 1:]
