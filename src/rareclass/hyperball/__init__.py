"""RACH: find and describe the rest of a rare category from a few labels."""

from rareclass.hyperball.rach import RACH
from rareclass.hyperball.rach_cv import RACHCV

__all__ = ["RACH", "RACHCV"]
