"""Comparison of rankings on the same rows: score columns, or methods on the same folds."""

from rareclass.compare.methods import MethodComparison, compare_methods
from rareclass.compare.out_of_fold import MethodRun
from rareclass.compare.score_columns import (
    BesideTheBest,
    Comparison,
    Standing,
    Standings,
    compare_scores,
)

__all__ = [
    "BesideTheBest",
    "Comparison",
    "MethodComparison",
    "MethodRun",
    "Standing",
    "Standings",
    "compare_methods",
    "compare_scores",
]
