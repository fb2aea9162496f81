"""Weights of rows, in the units of the user: C is a price for a weight of 1."""

from typing import Any

import numpy as np

from rareclass.labels.two_classes import Labels


def majority_weight(labels: Labels, n_rows: int) -> np.ndarray:
    """Weight of every row as a majority row: rows are read in their places, none is gathered."""
    weight = np.zeros(n_rows)
    given = labels.majority_weight
    weight[labels.majority] = 1.0 if given is None else given
    return weight


def with_weights_as_given(labels: Labels, sample_weight: Any) -> Labels:
    """Labels with weights in the units of the user: C is a price for a weight of 1."""
    if sample_weight is None or labels.majority_weight is None:
        return labels
    largest = float(np.max(np.asarray(sample_weight)))
    return labels._replace(
        rare_weight=labels.rare_weight * largest, majority_weight=labels.majority_weight * largest
    )
