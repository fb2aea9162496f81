"""Maps from scores to probabilities, one a file, and the choice among them."""

from rareclass.decide.calibration.calibration import METHODS, Calibration, PooledMap, at_prevalence
from rareclass.decide.calibration.calibration_map import BetaMap, LogisticMap
from rareclass.decide.calibration.isotonic import IsotonicMap

__all__ = [
    "METHODS",
    "BetaMap",
    "Calibration",
    "IsotonicMap",
    "LogisticMap",
    "PooledMap",
    "at_prevalence",
]
