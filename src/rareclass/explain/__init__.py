"""Why a row scores what it scores: landmarks that pull, columns that raise it, cases near it."""

from rareclass.explain.explaining import explain
from rareclass.explain.explanation import Explanation
from rareclass.explain.kernel_explanation import KernelExplanation
from rareclass.explain.near_cases import NearestCases, nearest_cases

__all__ = ["Explanation", "KernelExplanation", "NearestCases", "explain", "nearest_cases"]
