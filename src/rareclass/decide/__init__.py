"""From scores to decisions."""

from rareclass.decide.level_thresholds import level_thresholds
from rareclass.decide.threshold import balanced_accuracy_threshold

__all__ = ["balanced_accuracy_threshold", "level_thresholds"]
