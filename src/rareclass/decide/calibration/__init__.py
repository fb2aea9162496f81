"""Maps from scores to probabilities, and the choice among them."""

from rareclass.decide.calibration.calibration import METHODS, Calibration, PooledMap, at_prevalence
from rareclass.decide.calibration.calibration_map import BetaMap, IsotonicMap, LogisticMap

__all__ = [
    "METHODS",
    "BetaMap",
    "Calibration",
    "IsotonicMap",
    "LogisticMap",
    "PooledMap",
    "at_prevalence",
]
