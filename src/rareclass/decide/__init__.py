"""From scores to decisions."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from rareclass.decide.threshold import balanced_accuracy_threshold, level_thresholds

if TYPE_CHECKING:
    from rareclass.decide.calibrated_ranker import CalibratedRanker
    from rareclass.decide.calibration.calibration import Calibration, at_prevalence
    from rareclass.decide.decision_classifier import DecisionClassifier
    from rareclass.decide.threshold_rule import (
        ChosenBand,
        ChosenThreshold,
        ReviewBand,
        ThresholdRule,
    )

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
    "ChosenBand": "rareclass.decide.threshold_rule",
    "ChosenThreshold": "rareclass.decide.threshold_rule",
    "DecisionClassifier": "rareclass.decide.decision_classifier",
    "ReviewBand": "rareclass.decide.threshold_rule",
    "ThresholdRule": "rareclass.decide.threshold_rule",
    "at_prevalence": "rareclass.decide.calibration.calibration",
}


def __getattr__(name: str) -> Any:
    """Import a public name on first use: estimators here bring all of scikit-learn."""
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'rareclass.decide' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
