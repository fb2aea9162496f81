"""The decision of a model: from scores to a rare class and the rest, or to levels in order."""

from numpy.typing import NDArray

from rareclass.model.facts import RareClassFacts, TargetFacts
from rareclass.model.levels import LevelDecision
from rareclass.model.rare_class import RareDecision
from rareclass.model.target import Decision


def decision_of(target: TargetFacts, thresholds: NDArray) -> Decision:
    """Return what decides by these thresholds for a model of this target."""
    if isinstance(target, RareClassFacts):
        return RareDecision(target, thresholds)
    return LevelDecision(target, thresholds)
