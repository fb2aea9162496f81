"""Rows with weights: put together from parts, taken from a table, in the order of a pass."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from rareclass.rows import RowSource
from rareclass.rows.source import stacked


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
        """Append other rows."""
        if not len(more):
            return self
        return joined([self, more])


def joined(parts: Sequence[WeightedRows]) -> WeightedRows:
    """All rows in their order, as a copy."""
    return WeightedRows(
        stacked([part.X for part in parts]), np.concatenate([part.weight for part in parts])
    )


class WeightedTable(NamedTuple):
    """Rows that are not held."""

    source: RowSource
    weight: np.ndarray | None  # shape (n_rows,); None means that every row counts once
    rare: np.ndarray  # numbers of the rare rows, increasing

    def rows(self, index: np.ndarray) -> WeightedRows:
        """Some rows."""
        weight = np.ones(len(index)) if self.weight is None else self.weight[index]
        return WeightedRows(self.source.take(index), weight)

    def counting(self, index: np.ndarray) -> np.ndarray:
        """Drop the rows of weight 0."""
        return index if self.weight is None else index[self.weight[index] > 0.0]

    def majority(self, index: np.ndarray) -> WeightedRows:
        """Rows among those numbered that are in the majority and have weight."""
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


def visits(
    n_rows: int, size: int, together: int, rng: np.random.Generator | None
) -> Iterator[np.ndarray]:
    """Row numbers of one pass, about `size` at a time.

    A multiple of `together` is taken: so many consecutive rows stay together when `rng` draws the
    order, in memory of 8 bytes for each such group; None keeps the order of the rows.

    Examples
    --------
    >>> [part.tolist() for part in visits(5, 4, 2, np.random.default_rng(0))]
    [[4, 0, 1], [2, 3]]
    >>> [part.tolist() for part in visits(5, 4, 2, None)]
    [[0, 1, 2, 3], [4]]
    """
    together = min(together, size)
    n_groups = -(-n_rows // together)
    order = None if rng is None else rng.permutation(n_groups)
    step = max(1, size // together)
    for start in range(0, n_groups, step):
        stop = min(start + step, n_groups)
        groups = np.arange(start, stop) if order is None else order[start:stop]
        rows = (groups[:, None] * together + np.arange(together)).ravel()
        yield rows[rows < n_rows]
