"""What the members and their combination are chosen by."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from rareclass.estimators.search import SCORINGS, Scoring
from rareclass.metrics import precision_at_k


def precision_at_rare(y: np.ndarray, scores: np.ndarray, weight: Any = None) -> float:
    """Precision among as many rows as there are rare ones: alerts as many as cases."""
    rare = np.asarray(y, dtype=bool)
    k = float(rare.sum()) if weight is None else float(np.asarray(weight)[rare].sum())
    return precision_at_k(y, scores, k, weight)


OBJECTIVES: Mapping[str, Scoring] = {**SCORINGS, "precision_at_k": precision_at_rare}
