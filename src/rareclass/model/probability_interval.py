"""Bounds of a probability from the scores of held-out rows: a Venn-Abers pair for each score."""

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from rareclass.decide.calibration.calibration import shift_probability
from rareclass.decide.calibration.isotonic import ProbabilityInterval, VennAbersMap
from rareclass.metrics.scored_classes import FloatArray

LOW, HIGH = "probability_low", "probability_high"


@dataclass(frozen=True)
class HeldOutInterval:
    r"""The Venn-Abers pair of the held-out scores of a model.

    One of the two, the one that goes by the true label, is calibrated for rows drawn as the
    held-out ones, whatever the scores; no confidence is stated. At another prevalence than that of
    training both odds are multiplied as those of the probability are; and the probability, learned
    by another map, lies between the bounds or is one of them.
    """

    map: VennAbersMap
    shift: float = 0.0  # of log-odds, for another prevalence

    @classmethod
    def learned(
        cls,
        rare: NDArray[np.bool_],
        scores: FloatArray,
        weight: FloatArray | None = None,
        shift: float = 0.0,
    ) -> Self:
        """Learn the pair from held-out rows. O(n log n)."""
        return cls(VennAbersMap.fit(rare, scores, weight), shift)

    def __call__(
        self, scores: FloatArray, probability: FloatArray | None = None
    ) -> ProbabilityInterval:
        """Return bounds for each score, widened where a probability lies beyond them."""
        low, high = (shift_probability(p, self.shift) for p in self.map.interval(scores))
        if probability is not None:
            low, high = np.minimum(low, probability), np.maximum(high, probability)
        return ProbabilityInterval(low, high)
