"""What decides what a typed column holds, from the whole column or gathered batch by batch."""

from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.tables.cells import is_text_type

# skrub's own default: from this many distinct values on, a column of strings is target-encoded.
HIGH_CARDINALITY = 40
# Up to here distinct values are counted, beyond they are estimated (standard error 0.8 %).
COUNTED_VALUES = 1 << 14
_HASH_SEED = 1
_SLICE_ROWS = 50_000
# Three standard errors: an estimate this near to all of the cells is all of them.
_NEAR_ALL = 3 / COUNTED_VALUES**0.5


@dataclass(frozen=True)
class ColumnFacts:
    """What is known about a typed column.

    Its type is that after text has been read as numbers or dates. `values` are the distinct ones
    when they are fewer than HIGH_CARDINALITY; numbers are in order when they never fall, or never
    rise; words are counted a cell.
    """

    name: str
    dtype: pl.DataType
    n_rows: int
    n_missing: int
    n_distinct: int
    values: list[object] | None = None
    low: float = np.nan
    high: float = np.nan
    is_in_order: bool = False
    mean_words: float = 0.0


def facts_of(column: pl.Series) -> ColumnFacts:
    """Return the facts of a column that is in memory; every count is exact."""
    gatherer = FactsGatherer(column.name, column.dtype)
    for start in range(0, len(column), _SLICE_ROWS):
        gatherer.add(column.slice(start, _SLICE_ROWS))
    return gatherer.facts(column.drop_nulls().n_unique())


class FactsGatherer:
    """Takes in a column batch by batch, and holds no more than 16,384 numbers of it."""

    def __init__(self, name: str, dtype: pl.DataType) -> None:
        self._name, self._dtype = name, dtype
        self._n_rows = self._n_missing = self._n_words = 0
        self._values: set[object] | None = set()
        self._distinct = _DistinctCount()
        self._low, self._high = np.inf, -np.inf
        self._last: float | None = None
        self._rises = self._falls = dtype.is_numeric()

    def add(self, cells: pl.Series) -> None:
        """Take in the next cells."""
        self._n_rows += len(cells)
        self._n_missing += cells.null_count()
        present = cells.drop_nulls()
        if present.is_empty():
            return
        self._distinct.add(present.hash(_HASH_SEED).to_numpy())
        if self._values is not None and not present.dtype.is_nested():
            self._values.update(present.unique().head(HIGH_CARDINALITY))
            if len(self._values) >= HIGH_CARDINALITY:
                self._values = None
        if self._dtype.is_numeric():
            self._add_numbers(present)
        elif is_text_type(self._dtype):
            self._n_words += int(present.str.count_matches(r"\S+").sum())

    def facts(self, n_distinct: int | None = None) -> ColumnFacts:
        """Return what is known; `n_distinct` replaces the count where somebody knows better."""
        n_present = self._n_rows - self._n_missing
        few = self._values is not None and not self._dtype.is_nested()
        return ColumnFacts(
            self._name,
            self._dtype,
            self._n_rows,
            self._n_missing,
            self._distinct.count(n_present) if n_distinct is None else n_distinct,
            list(self._values) if few and self._values is not None else None,
            self._low,
            self._high,
            self._rises or self._falls,
            self._n_words / max(1, n_present),
        )

    def _add_numbers(self, present: pl.Series) -> None:
        low, high = present.min(), present.max()
        assert isinstance(low, int | float)
        assert isinstance(high, int | float)
        self._low, self._high = min(self._low, low), max(self._high, high)
        first, last = present[0], present[-1]
        before = first if self._last is None else self._last
        self._rises = self._rises and before <= first and present.is_sorted()
        self._falls = self._falls and before >= first and present.is_sorted(descending=True)
        self._last = last


class _DistinctCount:
    """Number of distinct values from the least of their hashes (Bar-Yossef et al. 2002).

    Where the k least of n hashes, uniform in [0, 1), end at u, n is about (k - 1) / u.
    """

    def __init__(self) -> None:
        self._least: NDArray[np.uint64] = np.empty(0, np.uint64)

    def add(self, hashes: NDArray[np.uint64]) -> None:
        """Take in hashes of further values."""
        if len(self._least) == COUNTED_VALUES:
            hashes = hashes[hashes < self._least[-1]]
        if len(hashes):
            self._least = np.unique(np.concatenate([self._least, hashes]))[:COUNTED_VALUES]

    def count(self, n_values: int) -> int:
        """Return the number of distinct ones among the `n_values` values so far."""
        if len(self._least) < COUNTED_VALUES:
            return len(self._least)
        estimate = (COUNTED_VALUES - 1) / (float(self._least[-1]) / 2.0**64)
        return n_values if estimate > (1 - _NEAR_ALL) * n_values else round(estimate)
