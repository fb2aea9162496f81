"""Encoders, which stand before a model: typed columns or sparse rows become its features."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray
from scipy import sparse

from rareclass.encoding.column_values import COMPONENTS
from rareclass.encoding.label_statistics import side_by_side
from rareclass.encoding.log_odds import CategoryStatistics, PartedRows
from rareclass.encoding.table_statistics import (
    EncodedTable,
    ExampleCells,
    TableStatistics,
    UnlikeCells,
)
from rareclass.encoding.typed_table import TypedTable, typed_table, with_equal_rows_together
from rareclass.encoding.views import MOST_VALUES_BOUNDED, CentredColumns, DenseView
from rareclass.tables.columns import Column

Floats = NDArray[np.float64]

# Below this many rows the solver gets double precision; above, half the memory.
DOUBLE_PRECISION_ROWS = 100_000
# Rows that store fewer of their features than this are brought to unit length.
SPARSE_SHARE = 0.1
# Folds that log-odds of categories are out of.
_FOLDS = 5
# Rows that become features at a time: of a large table the matrix alone is held whole.
_BLOCK_ROWS = 16_384
# Sines, cosines and days that a date becomes.
_DATE_PARTS = 7


class ReadsColumns:
    """Base of encoders of tables with named columns, whose cells are read once.

    Sparse rows have no columns, and nothing is known of their cells.
    """

    columns: Sequence[Column] = ()
    statistics_: TableStatistics | None = None

    @property
    def feature_columns(self) -> Sequence[str] | None:
        """The column that each feature comes from; None where there is none."""
        return None

    def read(self, frame: Any) -> Any:
        """Return rows that `read_as_trained` has typed as a table, which all methods take."""
        return typed_table(frame, self.columns)

    def find_unlike(self, rows: Any) -> UnlikeCells:
        """Find the cells that are unlike all of training, of columns that have some."""
        known = self.statistics_
        return UnlikeCells({}, {}) if known is None else known.find_unlike(self.read(rows))

    def examples(self) -> ExampleCells:
        """Return cells of training as examples."""
        return ExampleCells({}, {}) if self.statistics_ is None else self.statistics_.examples()


class TableEncoder(ReadsColumns):
    """Typed columns as the matrix of a `DenseView`, as members of `RareClassifier` have it.

    Rare rows are those that are not of the most frequent class. Of more than two classes, which are
    levels, a category with many values also has the log-odds of each level and those above it
    against those below. Log-odds are out of fold for the rows of training: five folds, drawn at
    random. The matrix is float64 when fitted on fewer than 100,000 rows, else float32.

    Parameters
    ----------
    columns : sequence of Column
        Columns that are learned from.
    random_state : int
        Seed of the folds.
    numbers : {"quantiles", "clipped"}
        How numbers are brought to one scale; see `BoundedNumbers`.

    Attributes
    ----------
    statistics_ : TableStatistics
    view_ : DenseView
    level_odds_ : LevelOdds
    dtype_ : {"float64", "float32"}
    """

    statistics_: TableStatistics

    def __init__(
        self, columns: Sequence[Column], random_state: int = 0, numbers: str = "quantiles"
    ) -> None:
        self.columns = columns
        self.random_state = random_state
        self.numbers = numbers

    def fit_transform(
        self,
        frame: pl.DataFrame,
        y: NDArray[Any],
        sample_weight: Floats | None = None,
        n_rows: int | None = None,
    ) -> NDArray[Any]:
        """Learn from typed rows and return them encoded: (n_rows, n_features), C order.

        `frame` has the columns as `read_as_trained` gives them, y the code of each row's class; a
        weight counts as copies. `n_rows` are those of the table that `frame` is a sample of; by
        default it is all of it.
        """
        self.dtype_ = "float64" if (n_rows or frame.height) < DOUBLE_PRECISION_ROWS else "float32"
        codes = np.asarray(y, np.int64)
        is_rare = codes != np.argmax(np.bincount(codes, sample_weight))
        fold = _drawn_folds(is_rare, self.random_state)
        self.statistics_ = TableStatistics()
        table = self.read(frame)
        if sample_weight is not None:
            fold = with_equal_rows_together(table.groups_of_equal(), is_rare, fold)
        encoded = self.statistics_.fit_encode(table, is_rare, sample_weight, fold, table.moment)
        self.view_ = DenseView(self.numbers).fit(encoded, sample_weight, self.statistics_)
        self.level_odds_ = LevelOdds()
        of_levels = self.level_odds_.fit_transform(encoded, self.view_, codes, sample_weight, fold)
        return self._matrix(encoded, of_levels)

    def transform(self, rows: pl.DataFrame | TypedTable) -> NDArray[Any]:
        """Return typed rows encoded: (n_rows, n_features), C order.

        A number beyond those of training is the nearest of them: a row that is far from all of
        training would have the score of no row, which may be above the majority's.
        """
        encoded = self.statistics_.encode(self.read(rows))
        return self._matrix(encoded, self.level_odds_.transform(encoded))

    @property
    def feature_columns(self) -> list[str]:
        """The column that each feature comes from; of a pair, the first one."""
        categories = self.statistics_.category_sources_
        sources = [*self.view_.source_column_, *(categories[k] for k in self.level_odds_.places_)]
        return [self.columns[k].name for k in sources]

    def _matrix(self, encoded: EncodedTable, of_levels: Floats) -> NDArray[Any]:
        n_features = len(self.view_.source_column_)
        X = np.empty((encoded.n_rows, n_features + of_levels.shape[1]), self.dtype_)
        X[:, n_features:] = of_levels
        for start in range(0, encoded.n_rows, _BLOCK_ROWS):
            rows = slice(start, start + _BLOCK_ROWS)
            X[rows, :n_features] = self.view_.transform(encoded.take(rows))
        return X


class LevelOdds:
    """Log-odds of levels of the target for the values of categories with many.

    Attributes
    ----------
    places_ : list of int
        The category that each feature is of.
    statistics_ : list of CategoryStatistics
        Of each feature.
    scaling_ : CentredColumns
    """

    def fit_transform(
        self,
        encoded: EncodedTable,
        view: DenseView,
        codes: NDArray[np.int64],
        weight: Floats | None,
        fold: NDArray[np.int64],
    ) -> Floats:
        """Learn from rows and return their log-odds, out of fold: (n_rows, n_features).

        Without more than two codes there is no feature.
        """
        shares = np.ones(len(codes)) if weight is None else weight
        cuts = np.unique(codes)[1:].tolist() if codes.max() > 1 else []
        known, log_odds = view.statistics_.known_, []
        self.places_, self.statistics_ = list[int](), list[CategoryStatistics]()
        for k, cut in product(view.with_many_values(MOST_VALUES_BOUNDED), cuts):
            self.places_.append(k)
            self.statistics_.append(CategoryStatistics())
            rows = PartedRows(codes >= cut, shares, fold)
            levels, n_levels = encoded.levels[k], known[k].n_levels
            log_odds.append(self.statistics_[-1].fit_transform(levels, n_levels, rows))
        columns = side_by_side(log_odds, encoded.n_rows)
        self.scaling_ = CentredColumns().fit(columns, shares)
        return self.scaling_.transform(columns)

    def transform(self, encoded: EncodedTable) -> Floats:
        """Return the log-odds of rows: (n_rows, n_features)."""
        each = zip(self.statistics_, self.places_, strict=True)
        columns = [statistics.transform(encoded.levels[k]) for statistics, k in each]
        return self.scaling_.transform(side_by_side(columns, encoded.n_rows))


def _drawn_folds(is_rare: NDArray[np.bool_], seed: int) -> NDArray[np.int64]:
    """Return the fold of each row: rare rows and others are dealt evenly, in random order."""
    generator = np.random.default_rng(seed)
    fold = np.empty(len(is_rare), np.int64)
    for rows in (np.flatnonzero(is_rare), np.flatnonzero(~is_rare)):
        fold[rows] = generator.permutation(len(rows)) % _FOLDS
    return fold


def encoded_width(column: Column) -> int:
    """Return about how many features a column becomes."""
    if not column.is_used:
        return 0
    if column.kind == "text":
        return COMPONENTS
    if column.reads_as != "string":
        return (_DATE_PARTS if column.kind == "date" else 1) + int(column.n_missing > 0)
    if column.n_distinct == 2:
        return 1
    return min(column.n_distinct, MOST_VALUES_BOUNDED) + 2


class SparseEncoder(ReadsColumns):
    """Sparse rows scaled without centring, so that zeros stay zeros.

    Columns are divided by their largest absolute value. Rows that store fewer than a tenth of
    their features, as text does, then get unit length: a long document is not far from everything
    (docs/decisions/0008-sparse-rows.md).

    Parameters
    ----------
    zero_based : bool
        Whether the training file numbers its first feature 0.

    Attributes
    ----------
    largest_ : ndarray of shape (n_features,)
        Largest absolute value of each feature; 1 where all are 0.
    unit_rows_ : bool
        Whether rows get unit length.
    """

    def __init__(self, zero_based: bool) -> None:
        self.zero_based = zero_based

    def fit_transform(
        self,
        X: "sparse.csr_matrix",
        y: NDArray[Any],
        sample_weight: NDArray[np.float64] | None = None,
    ) -> "sparse.csr_matrix":
        """Fit on sparse rows and return them scaled; classes and weights do not matter."""
        largest = abs(X).max(axis=0).toarray().ravel()
        self.largest_ = np.where(largest > 0.0, largest, 1.0)
        self.unit_rows_ = bool(X.nnz < SPARSE_SHARE * X.shape[0] * X.shape[1])
        return self.transform(X)

    def transform(self, X: "sparse.csr_matrix") -> "sparse.csr_matrix":
        """Return sparse rows scaled; features that training did not have are left out."""
        scaled = sparse.csr_matrix(X, copy=True)
        scaled.data /= self.largest_[scaled.indices]
        if self.unit_rows_:
            lengths = np.sqrt(scaled.multiply(scaled).sum(axis=1).A1)
            scaled.data /= np.repeat(np.where(lengths > 0.0, lengths, 1.0), np.diff(scaled.indptr))
        return scaled

    @property
    def n_features_(self) -> int:
        """Features of training."""
        return len(self.largest_)

    def read(self, frame: "sparse.csr_matrix") -> "sparse.csr_matrix":
        """Return the rows."""
        return frame


@dataclass(eq=False)
class TypedColumns(ReadsColumns):
    """Typed rows as a `TypedTable`, for an estimator that encodes tables itself.

    `columns` are those that are learned from; `statistics_` are what the estimator has learned.
    """

    columns: Sequence[Column]
    statistics_: TableStatistics | None = None

    def fit_transform(self, frame: pl.DataFrame, *of_rows: Any) -> TypedTable:
        """Return the typed rows; nothing is learned of their labels and weights."""
        return self.read(frame)

    transform = ReadsColumns.read
