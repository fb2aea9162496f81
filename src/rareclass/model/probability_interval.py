"""How little held-out rows tell of a probability: two bounds for each score."""

from dataclasses import dataclass

import numpy as np

from rareclass.decide.calibration.calibration import shift_probability
from rareclass.decide.calibration.isotonic import ProbabilityInterval, VennAbersMap
from rareclass.errors import InputError
from rareclass.metrics.scored_classes import FloatArray
from rareclass.model.model_file import ModelFile
from rareclass.model.targets import decision_of
from rareclass.model.targets.rare_class import RareDecision

LOW, HIGH = "probability_low", "probability_high"


@dataclass(frozen=True)
class HeldOutInterval:
    r"""The Venn-Abers pair of the held-out scores of a model file.

    One of the two, the one that goes by the true label, is calibrated for rows drawn as the
    held-out ones, whatever the scores; no confidence is stated. At another prevalence than that of
    training both odds are multiplied as those of the probability are; and the probability, learned
    by another map, lies between the bounds or is one of them.
    """

    map: VennAbersMap
    shift: float = 0.0  # of log-odds, for another prevalence

    def __call__(
        self, scores: FloatArray, probability: FloatArray | None = None
    ) -> ProbabilityInterval:
        """Bounds for each score, moved outwards where a probability lies beyond them."""
        low, high = (shift_probability(p, self.shift) for p in self.map.interval(scores))
        if probability is not None:
            low, high = np.minimum(low, probability), np.maximum(high, probability)
        return ProbabilityInterval(low, high)


def held_out_interval(content: ModelFile) -> HeldOutInterval:
    """Learn it from the scores of held-out rows that a model file has. O(n log n).

    Raises `InputError` where it has none, and for a model of levels.
    """
    if not isinstance(decision_of(content.model, content.metadata), RareDecision):
        raise InputError(
            "A model of levels has no probability of a rare class, and no interval of it.",
            "Leave --probability-interval out.",
        )
    held_out = content.held_out
    if held_out is None:
        raise InputError(
            "The model file has no scores of rows held out, by which to say how sure a probability "
            "is.",
            "rareclass fit makes models that have them, without --holdout 0.",
        )
    found = VennAbersMap.fit(held_out.y == 1, held_out.scores, held_out.weight)
    calibration = content.calibration
    return HeldOutInterval(found, 0.0 if calibration is None else calibration.shift)
