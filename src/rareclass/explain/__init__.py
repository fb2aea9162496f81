"""Why a row scores what it scores: landmarks that pull, and columns that raise it."""

from rareclass.explain.explaining import explain
from rareclass.explain.explanation import Explanation
from rareclass.explain.kernel_explanation import KernelExplanation

__all__ = ["Explanation", "KernelExplanation", "explain"]
