"""A table as sparse indicators: every value of a category, and every pair of values, a column."""

from collections.abc import Iterator
from itertools import combinations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import BaseEstimator

from rareclass.encoding.table_statistics import EncodedTable, TableStatistics, statistics_of
from rareclass.encoding.typed_table import TypedTable

Floats = NDArray[np.float64]

FEWEST_ROWS = 2.0
_BINS = 16
_MOST_PAIRED = 12
_PAIR_VALUE = 0.5
_BUCKETS = 1 << 18
# Odd multipliers of Knuth's and Steele's hashes: nearby levels land far from each other.
_FIRST, _SECOND, _PAIR = (
    np.uint64(m) for m in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)


class SparseView(BaseEstimator):
    """A table as a CSR matrix of indicators, for linear models with a penalty.

    A column stands for each value of a category that at least two rows have, of words and of codes
    alike; for each of 16 bins of a number; and for each pair of values of two categories that at
    least two rows have, hashed into 262,144 buckets. Indicators are 1, those of pairs 0.5: a ridge
    penalty weighs four times on these, which are many and rest on few rows. A value that training
    did not have is in no column.

    Parameters
    ----------
    pairs : bool
        Whether pairs of values have columns: of all pairs of up to twelve categories, which are
        taken from those of most values on.

    Attributes
    ----------
    n_features_ : int
    source_column_, second_column_ : ndarray of int of shape (n_features_,)
        The table's column that each feature comes from; of a pair the second one, too, else -1.
    """

    def __init__(self, pairs: bool = True) -> None:
        self.pairs = pairs

    def fit_transform(
        self,
        table: TypedTable | EncodedTable,
        y: NDArray[np.bool_],
        weight: Floats | None = None,
        fold: NDArray[np.integer] | None = None,
        statistics: TableStatistics | None = None,
    ) -> sparse.csr_matrix:
        """Learn from the rows and return them: as `DenseView.fit_transform`."""
        self.statistics_, encoded = statistics_of(table, y, weight, fold, statistics)
        known = self.statistics_
        shares = np.ones(encoded.n_rows) if weight is None else weight
        values = [len(each) for each in known.level_weights_]
        widest = np.argsort([-n for n in values], kind="stable")[:_MOST_PAIRED]
        chosen = sorted(widest.tolist()) if self.pairs else []
        self.paired_ = [list(pair) for pair in combinations(chosen, 2)]
        self.edges_ = [_edges(known, k) for k in range(encoded.numbers.shape[1])]
        of_category, of_number = known.category_sources_, known.number_sources_
        origins = [(source, -1) for source in of_category + of_number]
        origins += [(of_category[i], of_category[j]) for i, j in self.paired_]
        self.columns_, sizes = [], []
        begin = 0
        for buckets, n_buckets in self._buckets(encoded):
            weights = np.bincount(buckets, shares, n_buckets)
            kept = weights >= FEWEST_ROWS
            self.columns_.append(np.where(kept, begin + np.cumsum(kept) - 1, -1).astype(np.int32))
            sizes.append(int(np.count_nonzero(kept)))
            begin += sizes[-1]
        self.n_features_ = begin
        pairs = np.repeat(np.array(origins, np.int64).reshape(-1, 2), sizes, axis=0)
        self.source_column_, self.second_column_ = pairs.T
        return self._matrix(encoded)

    def transform(self, table: TypedTable | EncodedTable) -> sparse.csr_matrix:
        """Rows as a CSR matrix: (n_rows, n_features)."""
        if isinstance(table, TypedTable):
            table = self.statistics_.encode(table)
        return self._matrix(table)

    def check_parts(self) -> None:
        """Raise `ValueError` where a bucket would stand beside the matrix."""
        for columns in self.columns_:
            if columns.dtype.kind != "i" or columns.ndim != 1:
                raise ValueError("columns_ are not whole numbers")
            if len(columns) and not -1 <= columns.min() <= columns.max() < self.n_features_:
                raise ValueError(f"columns_ point beyond {self.n_features_} features")

    def _matrix(self, encoded: EncodedTable) -> sparse.csr_matrix:
        each = zip(self._buckets(encoded), self.columns_, strict=True)
        columns = [column[buckets] for (buckets, _), column in each]
        joined = np.stack(columns, axis=1) if columns else np.empty((encoded.n_rows, 0), np.int32)
        kept = joined >= 0
        starts = np.append(0, np.cumsum(kept.sum(axis=1)))
        indices = joined[kept]
        values = np.where(self.second_column_ < 0, 1.0, _PAIR_VALUE)[indices]
        shape = (encoded.n_rows, self.n_features_)
        return sparse.csr_matrix((values, indices, starts), shape=shape)

    def _buckets(self, encoded: EncodedTable) -> Iterator[tuple[NDArray[np.integer], int]]:
        """The bucket of each row among so many: of each category, number and pair in turn."""
        known = self.statistics_
        for k, levels in enumerate(encoded.levels):
            yield levels, known.known_[k].n_levels
        for k, edges in enumerate(self.edges_):
            numbers = encoded.numbers[:, k]
            bins = np.searchsorted(edges, numbers, side="right")
            yield np.where(np.isnan(numbers), len(edges) + 1, bins), len(edges) + 2
        for number, (i, j) in enumerate(self.paired_):
            mixed = encoded.levels[i].astype(np.uint64) * _FIRST
            mixed += encoded.levels[j].astype(np.uint64) * _SECOND + np.uint64(number)
            mixed ^= mixed >> np.uint64(31)
            yield (mixed * _PAIR >> np.uint64(46)).astype(np.int64), _BUCKETS


def _edges(known: TableStatistics, number: int) -> Floats:
    """Between the bins of a number: quantiles of training."""
    summaries = known.summaries
    own = slice(*summaries.starts[number : number + 2])
    wanted = np.searchsorted(summaries.ranks[own], np.arange(1, _BINS) / _BINS)
    knots = summaries.knots[own]
    return np.unique(knots[np.clip(wanted, 1, len(knots) - 1)]) if len(knots) > 1 else np.empty(0)
