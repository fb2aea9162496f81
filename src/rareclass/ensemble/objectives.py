"""What the members and their combination are chosen by."""

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from rareclass.estimators.search import SCORINGS, Scoring, as_scoring
from rareclass.metrics import precision_at_k


def precision_at_rare(y: np.ndarray, scores: np.ndarray, weight: Any = None) -> float:
    """Precision among as many rows as there are rare ones: alerts as many as cases."""
    rare = np.asarray(y, dtype=bool)
    k = float(rare.sum()) if weight is None else float(np.asarray(weight)[rare].sum())
    return precision_at_k(y, scores, k, weight)


def precision_at(k: int, y: np.ndarray, scores: np.ndarray, weight: Any = None) -> float:
    """Precision among the first k rows, or all where there are fewer."""
    n_rows = float(len(y)) if weight is None else float(np.asarray(weight).sum())
    return precision_at_k(y, scores, min(float(k), n_rows), weight)


OBJECTIVES: Mapping[str, Scoring] = {**SCORINGS, "precision_at_k": precision_at_rare}


def as_objective(objective: Any) -> Scoring:
    """The function that a parameter names; "precision_at=100" is that of the first 100 rows.

    Raises `ValueError` on a name that there is none of.

    >>> y, scores = [True, False, True, False], [4.0, 3.0, 2.0, 1.0]
    >>> as_objective("precision_at=2")(y, scores)
    0.5
    """
    found = re.fullmatch(r"precision_at=(\d+)", objective) if isinstance(objective, str) else None
    if found is None:
        return as_scoring(objective, OBJECTIVES)
    if int(found[1]) < 1:
        raise ValueError(f"objective={objective!r} must name at least 1 row.")
    return partial(precision_at, int(found[1]))
