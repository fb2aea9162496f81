"""From scores to decisions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rareclass.decide.threshold import balanced_accuracy_threshold, level_thresholds

if TYPE_CHECKING:
    from rareclass.decide.calibrated_ranker import CalibratedRanker
    from rareclass.decide.calibration.calibration import Calibration, at_prevalence
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

_HOME = {
    "CalibratedRanker": "calibrated_ranker",
    "DecisionClassifier": "decision_classifier",
    **dict.fromkeys(("Calibration", "at_prevalence"), "calibration"),
    **dict.fromkeys(("ChosenBand", "ReviewBand", "ThresholdRule"), "threshold_rule"),
    "ChosenThreshold": "chosen_threshold",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: estimators here bring all of scikit-learn."""
    if name in _HOME:
        return getattr(import_module(f"rareclass.decide.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rareclass.decide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
