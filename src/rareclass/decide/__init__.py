"""From scores to decisions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rareclass.decide.level_thresholds import level_thresholds
from rareclass.decide.threshold import balanced_accuracy_threshold

if TYPE_CHECKING:
    from rareclass.decide.calibrated_ranker import CalibratedRanker
    from rareclass.decide.calibration.calibration import Calibration
    from rareclass.decide.calibration.prevalence import at_prevalence
    from rareclass.decide.chosen_threshold import ChosenThreshold
    from rareclass.decide.decision_classifier import DecisionClassifier
    from rareclass.decide.review_band import ChosenBand, ReviewBand
    from rareclass.decide.threshold_rule import ThresholdRule

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

_HOME = {
    "CalibratedRanker": "rareclass.decide.calibrated_ranker",
    "Calibration": "rareclass.decide.calibration.calibration",
    "ChosenBand": "rareclass.decide.review_band",
    "ChosenThreshold": "rareclass.decide.chosen_threshold",
    "DecisionClassifier": "rareclass.decide.decision_classifier",
    "ReviewBand": "rareclass.decide.review_band",
    "ThresholdRule": "rareclass.decide.threshold_rule",
    "at_prevalence": "rareclass.decide.calibration.prevalence",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: estimators here bring all of scikit-learn."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rareclass.decide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
