"""Scores that are no sum over features: how they change as a column becomes typical."""

from collections.abc import Callable

import numpy as np

from rareclass.explain.explanation import Explanation, Floats
from rareclass.explain.features import Features


def explain_by_replacement(score: Callable[[Floats], Floats], rows: Features) -> Explanation:
    """``f(x) - f(x with the group typical)``, exactly: a scoring of the rows for each group."""
    found = score(rows.X)
    effects = np.empty((len(rows.X), len(rows.groups)))
    for place, group in enumerate(rows.groups):
        changed = rows.X.copy()
        changed[:, group] = rows.typical[group]
        effects[:, place] = found - score(changed)
    return Explanation(found, effects, rows.columns)
