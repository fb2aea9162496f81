"""From scores to decisions."""

from typing import TYPE_CHECKING

from rareclass.decide.threshold import balanced_accuracy_threshold, level_thresholds
from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.decide.calibrated_ranker import CalibratedRanker
    from rareclass.decide.calibration import Calibration, at_prevalence
    from rareclass.decide.chosen_threshold import ChosenThreshold
    from rareclass.decide.decision_classifier import DecisionClassifier
    from rareclass.decide.threshold_rule import ChosenBand, ReviewBand, ThresholdRule

__all__ = [
    "CalibratedRanker",
    "Calibration",
    "ChosenBand",
    "ChosenThreshold",
    "DecisionClassifier",
    "ReviewBand",
    "ThresholdRule",
    "at_prevalence",
    "balanced_accuracy_threshold",
    "level_thresholds",
]

__getattr__, __dir__ = lazy_names(
    __name__,
    {
        ".calibrated_ranker": ["CalibratedRanker"],
        ".calibration": ["Calibration", "at_prevalence"],
        ".chosen_threshold": ["ChosenThreshold"],
        ".decision_classifier": ["DecisionClassifier"],
        ".threshold_rule": ["ChosenBand", "ReviewBand", "ThresholdRule"],
    },
)
