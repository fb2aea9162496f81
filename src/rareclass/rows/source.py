"""Rows as floats: of arrays, sparse matrices and data frames."""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse

from rareclass.errors import ErrorKind, InputError
from rareclass.labels.spelling import unmasked

# Rows looked at together in a pass over values.
_PASS_ROWS = 65536
_STRETCH_BYTES = 2**27
# Sums over ten million columns of squares of differences are still far from the ends.
NARROW_RANGE = 1e-15, 1e15
_LEAST, _MOST = 1e-140, 1e145
_SCALE = "Scale the columns first (sklearn.preprocessing.StandardScaler)."
# Rounding of a value, of the width that distances are measured by.
_MOST_ROUNDING = 1e-4


class RowSource:
    """Rows of a dense array, a CSR matrix or a table, taken as float blocks.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy dtype
        float32 or float64: type of the blocks.
    is_sparse : bool
        True where blocks are CSR matrices.
    as_rows : callable or None
        Makes blocks of chosen rows where they live, with the arguments of `ArrayRows`; None where
        rows are read here.
    """

    as_rows: Callable[..., Any] | None = None

    def __init__(
        self,
        shape: tuple[int, int],
        dtype: Any,
        take: Callable[[Any], Any],
        is_sparse: bool,
        close: Callable[[], None] | None = None,
    ) -> None:
        self.n_rows, self.n_features = shape
        self.dtype = np.dtype(dtype)
        self.is_sparse = is_sparse
        self._take, self._close = take, close

    @classmethod
    def of_array(cls, X: Any) -> "RowSource":
        """Make the rows of an ndarray or CSR matrix of finite floats, which is not copied."""
        is_sparse = sparse.issparse(X)
        take = partial(_csr_rows, X) if is_sparse else X.__getitem__
        return cls(X.shape, X.dtype, take, is_sparse)

    def take(self, rows: slice | np.ndarray) -> Any:
        """Chosen rows: ndarray or CSR matrix of shape (n, n_features), a copy or a view."""
        return self._take(rows)

    def astype(self, dtype: Any) -> "RowSource":
        """Rows converted to another type of float each time that they are taken."""
        if self.dtype == np.dtype(dtype):
            return self

        def take(rows: Any) -> Any:
            return self.take(rows).astype(dtype)

        shape = self.n_rows, self.n_features
        return RowSource(shape, dtype, take, self.is_sparse, self._close)

    @property
    def is_in_memory(self) -> bool:
        """True where rows can be taken in any order at the same cost."""
        return self._close is None

    def close(self) -> None:
        """Delete the scratch file of the rows; arrays in memory stay as they are."""
        if self._close is not None:
            self._close()


class HasSource:
    """Base of objects whose features are a `RowSource`."""

    source: RowSource


def as_source(X: Any, feature_names: Any = None) -> RowSource:
    """Take `X` as rows: check that every value is finite, and copy only where needed.

    Dense arrays and CSR matrices of float32 or float64 are used in place. Tables (pandas,
    polars, pyarrow) are converted block by block, to float32 when every column is float32 or
    narrower and to float64 otherwise. Other dtypes and CSC matrices are converted once. A
    `RowSource`, or rows with labels, were checked when they were made.

    Raises
    ------
    ValueError
        On an empty input, a wrong number of dimensions, a column that is not numeric, or a
        value that is missing or infinite: the message names the row and the column, as the table
        does or, of an array, `feature_names`.
    """
    if isinstance(X, RowSource):
        return X
    if isinstance(X, HasSource):
        return X.source
    if _is_usable(X):
        # Many calls with a row each should not wait for the general checks.
        source = RowSource.of_array(X)
        _check_finite(source, feature_names)
        return source
    from rareclass.tables.frames import as_frame  # late: arrays of floats do without

    table = as_frame(X)
    if isinstance(table, nw.DataFrame):
        source, feature_names = _table_source(table), table.columns
    else:
        source = _array_source(X)
    _check_finite(source, feature_names)
    return source


def consecutive(source: RowSource) -> Iterator[tuple[int, RowSource]]:
    """Yield the rows in their order as stretches in memory, each with the number of its first row.

    A file is read once, and the caller picks rows from each stretch. Rows in memory are one
    stretch and are not copied; so are rows that are summed where they live.
    """
    size = source.n_rows
    if not source.is_in_memory and source.as_rows is None:
        size = max(1, _STRETCH_BYTES // (source.dtype.itemsize * source.n_features))
    for start in range(0, source.n_rows, size):
        if size >= source.n_rows:
            yield 0, source
            return
        rows = source.take(slice(start, min(start + size, source.n_rows)))
        yield start, RowSource.of_array(rows)


def is_table(X: Any) -> bool:
    """True for a table with named columns: pandas, polars, pyarrow and their like."""
    return bool(nw.dependencies.is_into_dataframe(X))


def is_dask(X: Any) -> bool:
    """True for a Dask array or DataFrame; does not import Dask."""
    if not type(X).__module__.startswith("dask."):
        return False
    from dask import is_dask_collection

    return bool(is_dask_collection(X)) and not is_delayed(X)


def is_dask_array(X: Any) -> bool:
    """True for a Dask array."""
    return type(X).__module__.startswith("dask.array.")


def is_delayed(X: Any) -> bool:
    """True for a delayed block of Dask, or a list of them."""
    kind = type(X[0] if isinstance(X, list | tuple) and X else X)
    return kind.__module__.startswith("dask.") and kind.__name__.startswith("Delayed")


def _array_source(X: Any) -> RowSource:
    from sklearn.utils import check_array  # takes longer to import than a row to be scored

    n_dimensions = 2 if sparse.issparse(X) else np.asarray(X).ndim
    if n_dimensions == 0 or (isinstance(X, np.ndarray) and X.dtype.kind in "mMV"):
        from rareclass.tables.frames import numbers_of

        numbers_of(X)  # refuses what is no table, dates and durations
    X = check_array(
        unmasked(X), accept_sparse="csr", dtype=[np.float64, np.float32], ensure_all_finite=False
    )
    if not X.dtype.isnative:  # compiled code reads numbers as this machine writes them
        X = X.astype(X.dtype.newbyteorder("="))
    return RowSource.of_array(X)


def _is_usable(X: Any) -> bool:
    """Say whether X is an array or CSR matrix that needs no conversion."""
    if type(X) is not np.ndarray and not (sparse.issparse(X) and X.format == "csr"):
        return False
    return X.ndim == 2 and 0 not in X.shape and X.dtype.char in "fd" and X.dtype.isnative


def _csr_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Rows of a CSR matrix; consecutive ones share its memory, so do not write to them."""
    if not isinstance(rows, slice) or rows.step not in (None, 1):
        return X[rows]
    start, stop, _ = rows.indices(X.shape[0])
    stop = max(start, stop)
    if stop - start == X.shape[0]:
        return X
    first, last = X.indptr[start], X.indptr[stop]
    view = type(X)((max(stop - start, 0), X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    return view


def _table_source(table: "nw.DataFrame[Any]") -> RowSource:
    if 0 in table.shape:
        raise ErrorKind.TOO_FEW_ROWS.error(
            f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) "
            "while a minimum of 1 of each is required."
        )
    if not _is_plain(table):
        from rareclass.tables.frames import numbers_of  # late: few tables need it

        table = nw.from_native(numbers_of(table.to_native()))
    is_narrow = are_narrow(table.schema.values())
    wanted = nw.Float32 if is_narrow else nw.Float64

    def take(rows: slice | np.ndarray) -> np.ndarray:
        return table[rows].select(nw.all().cast(wanted)).to_numpy()

    return RowSource(table.shape, np.float32 if is_narrow else np.float64, take, False)


def are_narrow(dtypes: Iterable[Any]) -> bool:
    """Say whether float32 holds columns of all these types exactly."""
    narrow = (nw.Float32, nw.Boolean, nw.Int8, nw.Int16, nw.UInt8, nw.UInt16)
    return all(dtype in narrow for dtype in dtypes)


def _is_plain(table: "nw.DataFrame[Any]") -> bool:
    """Say whether all columns are numbers or truth values that convert a block at a time."""
    native = table.to_native()
    if table.implementation.is_pandas_like():
        return all(isinstance(dtype, np.dtype) and dtype.kind in "fiub" for dtype in native.dtypes)
    return all(
        dtype == nw.Boolean or (dtype.is_numeric() and dtype != nw.Decimal)
        for dtype in table.schema.values()
    )


class _Cell(NamedTuple):
    """A cell by its row, its column, and its value."""

    row: int
    column: str
    value: float
    words: str  # for its column

    def error(self, fault: str, remedy: str) -> InputError:
        """The error to raise at this cell."""
        row, column, value, _ = self
        return ErrorKind.NOT_FINITE.error(fault, remedy, column=column, row=row, value=value)


def _first_cell(
    source: RowSource, names: Any, is_wrong: Callable[[np.ndarray], np.ndarray | None]
) -> _Cell | None:
    """Find the first cell that `is_wrong` marks, a block at a time; it gives None for no cell."""
    for start in range(0, source.n_rows, _PASS_ROWS):
        block = source.take(slice(start, start + _PASS_ROWS))
        values = block.data if source.is_sparse else block
        wrong = is_wrong(values)
        if wrong is None or not wrong.any():
            continue
        if source.is_sparse:
            first = int(np.flatnonzero(wrong)[0])
            row = int(np.searchsorted(block.indptr, first, side="right")) - 1
            column, value = int(block.indices[first]), values[first]
        else:
            row, column = (int(k) for k in np.argwhere(wrong)[0])
            value = values[row, column]
        name = column if names is None else names[column]
        return _Cell(start + row, str(name), float(value), f"column {name!r}")
    return None


def not_finite(values: np.ndarray) -> np.ndarray | None:
    """Return which values are no finite numbers; None where all are."""
    # A sum is one pass without a temporary; it is finite unless something may be wrong.
    with np.errstate(over="ignore", invalid="ignore"):
        return None if np.isfinite(values.sum()) else ~np.isfinite(values)


def _check_finite(source: RowSource, names: Any) -> None:
    """Raise `ValueError` for the first value that is missing or infinite."""
    bad = _first_cell(source, names, not_finite)
    if bad is not None:
        kind = "NaN" if np.isnan(bad.value) else f"infinity ({bad.value}, inf)"
        fault = f"Input X contains {kind}: row {bad.row}, {bad.words}."
        remedy = "Fill or drop it first, as sklearn.impute.SimpleImputer(add_indicator=True) does."
        raise bad.error(fault, remedy)


def with_safe_squares(source: RowSource, names: Any = None, learns: bool = False) -> RowSource:
    """Return rows whose squared distances floats can hold, in float64 where float32 would not do.

    A square of float32 is 0 below 4e-23 and infinite above 1.8e19, one of float64 below 1e-162 and
    above 1.3e154. Rows on disk or on workers are returned as they are. `learns` says that a scale
    is learned from these rows; others may all be zero, or nearly. One pass over rows in memory.

    Raises `ValueError` where float64 will not do either, naming column, row and value.
    """
    if not source.is_in_memory:
        return source
    largest = largest_value(source)
    if source.dtype == np.float32 and largest > 0.0:
        least, most = NARROW_RANGE
        return source if least <= largest <= most else source.astype(np.float64)
    if largest > _MOST:
        bad = _first_cell(source, names, lambda values: np.abs(values) == largest)
        assert bad is not None
        fault = f"{bad.words} holds {largest:g} at row {bad.row}, which is too large: squared "
        raise bad.error(f"{fault}distances between rows overflow.", _SCALE)
    if learns and 0.0 < largest < _LEAST:
        raise ErrorKind.NOT_FINITE.error(
            f"all values are {largest:g} or nearer to 0: squares of their differences are below "
            "what floats hold.",
            _SCALE,
        )
    return source


def largest_value(source: RowSource) -> float:
    """Greatest absolute value; one pass."""
    found = 0.0
    for start in range(0, source.n_rows, _PASS_ROWS):
        block = source.take(slice(start, start + _PASS_ROWS))
        values = block.data if source.is_sparse else block
        if values.size:
            found = max(found, float(values.max()), -float(values.min()))
    return found


def narrowed(source: RowSource, width: float | None) -> RowSource:
    """Return float64 rows as float32, unless that would round distances too much.

    A value x moves by up to :math:`2^{-24} |x|`, which must be within 1e-4 of `width`, the scale
    of distances; None for kernels without a width, which need relative precision only. Rows on
    disk or on workers stay as they are. One pass over rows in memory.
    """
    if source.dtype != np.float64 or not source.is_in_memory:
        return source
    largest = largest_value(source)
    rounding = 2.0**-24 * largest
    least, most = NARROW_RANGE
    if not least <= largest <= most or (width is not None and rounding > _MOST_ROUNDING * width):
        return source
    return source.astype(np.float32)


def stacked(parts: Sequence[Any]) -> Any:
    """Stack the rows of several parts: dense where all parts are, else CSR."""
    if len(parts) == 1:
        return parts[0]
    if any(sparse.issparse(part) for part in parts):
        return sparse.vstack([sparse.csr_array(part) for part in parts], format="csr")
    return np.concatenate(parts)


def canonical(X: Any) -> Any:
    """Return rows in canonical form: CSR ones by column, without zeros or duplicates."""
    if sparse.issparse(X) and not (X.has_canonical_format and X.data.all()):
        X = X.copy()
        X.sum_duplicates()
        X.eliminate_zeros()
    return X


def equal_rows(X: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return the first row of each group of equal rows, and each row's group, in no order.

    Cost: O(n log n) comparisons of dense rows; a hash of 128 bits for each CSR row.

    >>> first, group = equal_rows(np.array([[2.0, 0.0], [1.0, 1.0], [2.0, -0.0]]))
    >>> first[group].tolist()
    [0, 1, 0]
    """
    if not sparse.issparse(X):
        _, first, group = np.unique(X, axis=0, return_index=True, return_inverse=True)
        return first, group.ravel()
    X = canonical(X)
    group_of: dict[bytes, int] = {}
    group = np.empty(X.shape[0], dtype=np.int64)
    for row, (start, stop) in enumerate(pairwise(X.indptr)):
        digest = hashlib.blake2b(X.indices[start:stop].tobytes(), digest_size=16)
        digest.update(X.data[start:stop].tobytes())
        group[row] = group_of.setdefault(digest.digest(), len(group_of))
    return np.unique(group, return_index=True)[1], group


def order_of_values(X: Any) -> np.ndarray:
    """Order distinct rows by their values alone; returns row numbers."""
    if not sparse.issparse(X):
        return np.unique(X, axis=0, return_index=True)[1]
    X = canonical(X)
    cuts = pairwise(X.indptr)
    keys = [(tuple(X.indices[a:b]), tuple(X.data[a:b])) for a, b in cuts]
    return np.array(sorted(range(len(keys)), key=keys.__getitem__), dtype=np.int64)
