"""Maps from scores to probabilities, one a file, and the choice among them."""

from rareclass.decide.calibration.beta import BetaMap
from rareclass.decide.calibration.calibration import METHODS, Calibration
from rareclass.decide.calibration.isotonic import IsotonicMap
from rareclass.decide.calibration.logistic import LogisticMap
from rareclass.decide.calibration.pooled import PooledMap
from rareclass.decide.calibration.prevalence import at_prevalence
from rareclass.decide.calibration.venn_abers import ProbabilityInterval, VennAbersMap

__all__ = [
    "METHODS",
    "BetaMap",
    "Calibration",
    "IsotonicMap",
    "LogisticMap",
    "PooledMap",
    "ProbabilityInterval",
    "VennAbersMap",
    "at_prevalence",
]
