"""One way to take rows out of arrays, sparse matrices and data frames."""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import narwhals as nw
import numpy as np
from scipy import sparse
from sklearn.utils import check_array

_CHECK_ROWS = 65536
_STRETCH_BYTES = 2**27
# What float32 holds exactly.
NARROW = (nw.Float32, nw.Boolean, nw.Int8, nw.Int16, nw.UInt8, nw.UInt16)


class RowSource:
    """Rows of a dense array, a CSR matrix or a table, taken as float blocks.

    Attributes
    ----------
    n_rows, n_features : int
    dtype : numpy dtype
        float32 or float64: what blocks come in.
    is_sparse : bool
        Whether blocks are CSR matrices.
    as_rows : callable or None
        Makes blocks of chosen rows where they live, from what `ArrayRows` takes; None where rows
        are read here.
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

    def take(self, rows: slice | np.ndarray) -> Any:
        """The chosen rows: ndarray or CSR matrix of shape (n, n_features), a copy or a view."""
        return self._take(rows)

    def begin_fit(self) -> None:
        """Said when a fit begins; those that keep a checkpoint start over in it."""

    @property
    def is_in_memory(self) -> bool:
        """Whether rows can be taken in any order at the same price."""
        return self._close is None

    def close(self) -> None:
        """Give back what the rows hold on disk; arrays in memory stay as they are."""
        if self._close is not None:
            self._close()


def as_source(X: Any, feature_names: Any = None) -> RowSource:
    """Look at `X` as rows, check that every value is finite, and copy nothing that can stay.

    Dense arrays and CSR matrices of float32 or float64 are used in place. Tables (pandas,
    polars, pyarrow) are converted block by block, to float32 when every column is float32 or
    narrower and to float64 otherwise. Other dtypes and CSC matrices are converted once. A
    `RowSource`, or an object that has one as its ``source``, was looked at when it was made.

    Raises
    ------
    ValueError
        On an empty input, a wrong number of dimensions, a column that is not numeric, or a
        value that is missing or infinite: the message names the row and the column.
    """
    made = getattr(X, "source", X)
    if isinstance(made, RowSource):
        return made
    if _is_plain(X):  # many calls with a row each should not wait for the general checks
        source = RowSource(X.shape, X.dtype, lambda rows: X[rows], False)
        _check_finite(source, feature_names)
        return source
    if isinstance(nw.from_native(X, pass_through=True), nw.LazyFrame):
        raise ValueError(
            "X is a lazy frame, which holds no rows yet: pass X.collect(), or give fit_rows "
            "rareclass.rows.from_lazy(X, target), which reads it in parts."
        )
    source = _table_source(X) if is_table(X) else _array_source(X)
    _check_finite(source, feature_names)
    return source


def consecutive(source: RowSource) -> Iterator[tuple[int, RowSource]]:
    """The rows in their order as stretches in memory, each with its first row.

    For those who want some rows of a file here and others there: it is read once, and rows are
    picked from the stretch. Rows in memory are one stretch and are not copied; so are rows that
    are summed where they live.
    """
    size = source.n_rows
    if not source.is_in_memory and source.as_rows is None:
        size = max(1, _STRETCH_BYTES // (source.dtype.itemsize * source.n_features))
    for start in range(0, source.n_rows, size):
        if size >= source.n_rows:
            yield 0, source
            return
        rows = source.take(slice(start, min(start + size, source.n_rows)))
        yield start, RowSource(rows.shape, source.dtype, partial(_picked, rows), source.is_sparse)


def _picked(block: Any, rows: slice | np.ndarray) -> Any:
    return block[rows]


def _is_plain(X: Any) -> bool:
    """Whether `X` is a dense float array that can be used as it is."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.size > 0
        and X.dtype.char in "fd"
        and X.dtype.isnative
    )


def is_table(X: Any) -> bool:
    """Whether `X` is a table with named columns: pandas, polars, pyarrow and their like."""
    return bool(nw.dependencies.is_into_dataframe(X))


def _array_source(X: Any) -> RowSource:
    X = check_array(
        X,
        accept_sparse="csr",
        dtype=[np.float64, np.float32],
        ensure_all_finite=False,
    )
    if not X.dtype.isnative:  # compiled code reads numbers as this machine writes them
        X = X.astype(X.dtype.newbyteorder("="))
    if sparse.issparse(X):
        return RowSource(X.shape, X.dtype, partial(_csr_rows, X), True)
    return RowSource(X.shape, X.dtype, lambda rows: X[rows], False)


def _csr_rows(X: Any, rows: slice | np.ndarray) -> Any:
    """Rows of a CSR matrix; consecutive ones share its memory and are not to be changed."""
    if not isinstance(rows, slice) or rows.step not in (None, 1):
        return X[rows]
    start, stop, _ = rows.indices(X.shape[0])
    stop = max(start, stop)
    first, last = X.indptr[start], X.indptr[stop]
    view = type(X)((max(stop - start, 0), X.shape[1]), dtype=X.dtype)
    view.data, view.indices = X.data[first:last], X.indices[first:last]
    view.indptr = X.indptr[start : stop + 1] - first
    return view


def _table_source(X: Any) -> RowSource:
    table = nw.from_native(X, eager_only=True)
    if 0 in table.shape:
        raise ValueError(
            f"Found array with {table.shape[0]} sample(s) and {table.shape[1]} feature(s) "
            "while a minimum of 1 of each is required."
        )
    for name, dtype in table.schema.items():
        if not (dtype.is_numeric() or dtype == nw.Boolean):
            raise ValueError(
                f"column {name!r} holds {dtype}, not numbers. Encode it first "
                "(skrub.TableVectorizer does), or use the command line, which encodes tables."
            )
    is_narrow = all(dtype in NARROW for dtype in table.schema.values())
    wanted = nw.Float32 if is_narrow else nw.Float64

    def take(rows: slice | np.ndarray) -> np.ndarray:
        return table[rows].select(nw.all().cast(wanted)).to_numpy()

    return RowSource(table.shape, np.float32 if is_narrow else np.float64, take, False)


def _check_finite(source: RowSource, feature_names: Any) -> None:
    """Find the first value that is missing or infinite, a block at a time."""
    for start in range(0, source.n_rows, _CHECK_ROWS):
        block = source.take(slice(start, start + _CHECK_ROWS))
        values = block.data if source.is_sparse else block
        # A sum is one pass without a temporary; it is finite unless something may be wrong.
        with np.errstate(over="ignore", invalid="ignore"):
            if np.isfinite(values.sum()):
                continue
        bad = ~np.isfinite(values)
        if not bad.any():
            continue
        if source.is_sparse:
            first = int(np.flatnonzero(bad)[0])
            row = int(np.searchsorted(block.indptr, first, side="right")) - 1
            column, value = int(block.indices[first]), values[first]
        else:
            row, column = (int(k) for k in np.argwhere(bad)[0])
            value = values[row, column]
        kind = "NaN" if np.isnan(value) else f"infinity ({value}, inf)"
        name = f"column {column}"
        if feature_names is not None:
            name = f"column {feature_names[column]!r}"
        raise ValueError(
            f"Input X contains {kind}: row {start + row}, {name}. Fill or drop it first, for "
            "example with sklearn.impute.SimpleImputer(add_indicator=True)."
        )
