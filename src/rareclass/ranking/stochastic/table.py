"""A table whose majority is visited in parts: features, weights, and which rows are rare."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from rareclass.ranking.stochastic.row_parts import WeightedRows
from rareclass.rows import RowSource


class Table(NamedTuple):
    """Rows that are not held."""

    source: RowSource
    weight: np.ndarray | None  # shape (n_rows,); None means that every row counts once
    rare: np.ndarray  # numbers of the rare rows, increasing

    def rows(self, index: np.ndarray) -> WeightedRows:
        """Some rows."""
        weight = np.ones(len(index)) if self.weight is None else self.weight[index]
        return WeightedRows(self.source.take(index), weight)

    def counting(self, index: np.ndarray) -> np.ndarray:
        """Those of some rows whose weight is above 0."""
        return index if self.weight is None else index[self.weight[index] > 0.0]

    def majority(self, index: np.ndarray) -> WeightedRows:
        """Those of some rows that are in the majority and count."""
        place = np.minimum(np.searchsorted(self.rare, index), len(self.rare) - 1)
        counts = self.rare[place] != index
        if self.weight is not None:
            counts &= self.weight[index] > 0.0
        return self.rows(index[counts])

    def majority_weight(self, rare: float) -> float:
        """Total weight of the majority, the rare rows having `rare`."""
        if self.weight is None:
            return float(self.source.n_rows - len(self.rare))
        return float(self.weight.sum()) - rare


def weights_of(sample_weight: Any, n_rows: int) -> np.ndarray | None:
    """Sample weights as floats at or above 0, not copied where they are; None stays None."""
    if sample_weight is None:
        return None
    like = np.empty((n_rows, 0))
    return _check_sample_weight(sample_weight, like, dtype=np.float64, ensure_non_negative=True)
