"""Many learners on one table, combined on the scale of their false-positive rates."""

from rareclass.ensemble.rare_classifier import RareClassifier

__all__ = ["RareClassifier"]
