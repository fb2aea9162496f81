"""Rows that came in parts: put together, counted off."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from rareclass.kernels.kernels import Matrix


def stacked(parts: Sequence[Matrix]) -> Matrix:
    """Rows of one part below those of the other: dense where all parts are, else CSR."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


@dataclass(frozen=True, eq=False)
class WeightedRows:
    """Some rows and how often each counts."""

    X: Any  # ndarray or CSR of shape (n, n_features)
    weight: np.ndarray  # shape (n,)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.weight)

    def pick(self, which: Any) -> "WeightedRows":
        """Some of the rows, by a slice, numbers or a mask."""
        return WeightedRows(self.X[which], self.weight[which])

    def joined(self, more: "WeightedRows") -> "WeightedRows":
        """These rows, then others."""
        if not len(more):
            return self
        return joined([self, more])


def joined(parts: Sequence[WeightedRows]) -> WeightedRows:
    """All rows in their order, as a copy."""
    return WeightedRows(
        stacked([part.X for part in parts]), np.concatenate([part.weight for part in parts])
    )
