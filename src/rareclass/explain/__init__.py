"""Explanations of scores: landmarks that pull, columns that raise, and the nearest rare cases."""

from rareclass.explain.explaining import Explanation, KernelExplanation, explain
from rareclass.explain.near_cases import NearestCases, nearest_cases

__all__ = ["Explanation", "KernelExplanation", "NearestCases", "explain", "nearest_cases"]
