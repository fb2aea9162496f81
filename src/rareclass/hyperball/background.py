"""What the rest of the table looks like: a sample of the rows that are not known to be rare."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.hyperball.points import Points
from rareclass.labels.partial_labels import PartialLabels
from rareclass.rows import RowSource

# Quantiles of a feature and shares are known to about one percent from so many.
MOST_ROWS = 5_000


class Background(NamedTuple):
    """A uniform sample of the unlabelled rows and of those with the majority's label.

    Attributes
    ----------
    rows : ndarray of int of shape (n,)
        Their numbers, increasing.
    X : ndarray or CSR of shape (n, n_features)
    is_labelled : ndarray of bool of shape (n,)
        Whether a row has a label.
    weight : ndarray of shape (n,)
    """

    rows: np.ndarray
    X: Any
    is_labelled: np.ndarray
    weight: np.ndarray


def draw_background(
    source: RowSource, labels: PartialLabels, rng: np.random.RandomState
) -> Background:
    """Draw at most `MOST_ROWS` of the rows without a rare label."""
    rows = labels.not_rare()
    if len(rows) > MOST_ROWS:
        rows = np.sort(rng.choice(rows, MOST_ROWS, replace=False))
    is_labelled = labels.code[rows] >= 0
    return Background(rows, source.take(rows), is_labelled, labels.weight_of(rows))


def input_spread(X: Any, weight: np.ndarray) -> float:
    """Root mean squared distance of rows to their mean; 0 without rows."""
    if not X.shape[0]:
        return 0.0
    dense = not sparse.issparse(X)
    origin = X.mean(axis=0, dtype=np.float64) if dense else 0.0
    features = X.astype(np.float64) - origin if dense else X.astype(np.float64)
    return spread_of(Points(features, np.zeros(X.shape[0])), weight)


def spread_of(points: Points, weight: np.ndarray) -> float:
    """Root mean squared distance of points to their mean; 0 without points."""
    if not points.n_rows:
        return 0.0
    mean = points.combine(weight / weight.sum())
    return float(np.sqrt(np.average(points.squared_distances(mean), weights=weight)))
