"""Comparison of rankings on the same rows: score columns, or methods on the same folds."""

from rareclass.compare.comparison import (
    BesideTheBest,
    Comparison,
    MethodComparison,
    MethodRun,
    Standing,
    Standings,
)
from rareclass.compare.methods import compare_methods
from rareclass.compare.score_columns import compare_scores

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
