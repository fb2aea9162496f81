"""One part of a table, as an engine gives it: features, labels and weights taken apart."""

import zlib
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse

from rareclass.errors import InputError, name_hint
from rareclass.rows.source import NARROW, as_source, is_table


class Columns(NamedTuple):
    """Which columns of a table are what; None of `features` means all others."""

    target: str | None = None
    weight: str | None = None
    features: tuple[str, ...] | None = None
    dtype: str | None = None


class Facts(NamedTuple):
    """What is known of a part beside its features."""

    n_rows: int
    n_features: int
    dtype: str
    is_sparse: bool
    names: tuple[str, ...] | None
    label_values: np.ndarray | None  # the different labels
    codes: np.ndarray | None  # of each row, its label's place among them
    weights: np.ndarray | None
    digest: bytes  # of features and weights: tells other rows from these


class Part(NamedTuple):
    """A part in memory."""

    X: Any  # ndarray or CSR of floats, all finite
    facts: Facts


def read_part(number: int, data: Any, y: Any, weight: Any, columns: Columns) -> Part:
    """Take a part apart: an array, CSR matrix or table, with labels beside it or in a column.

    Raises `InputError`, naming the part and the row in it, on cells that are no finite numbers,
    columns that are missing and lengths that differ.
    """
    names = None
    if is_table(data):
        data, y, weight = _of_table(number, data, y, weight, columns)
        names = tuple(data.columns)
        data = data.to_native()
    elif columns.target is not None or columns.weight is not None:
        raise InputError(
            f"part {number} is a {type(data).__name__}, which has no columns with names.",
            "Pass labels and weights as collections of their own: target=y.",
        )
    X = _features(number, data, names, columns.dtype)
    n_rows = X.shape[0]
    for name, values in (("target", y), ("weight", weight)):
        if values is not None and len(values) != n_rows:
            raise InputError(
                f"part {number} has {n_rows:,} rows and {len(values):,} of its {name}.",
                "Collections that belong together need the same rows in every part.",
            )
    values, codes = (None, None) if y is None else _encoded(np.asarray(y))
    weights = None if weight is None else np.asarray(weight, dtype=np.float64)
    facts = Facts(
        n_rows,
        X.shape[1],
        X.dtype.name,
        sparse.issparse(X),
        names,
        values,
        codes,
        weights,
        _digest(X, weights),
    )
    return Part(X, facts)


def _of_table(
    number: int, data: Any, y: Any, weight: Any, columns: Columns
) -> tuple[Any, Any, Any]:
    """Features as a table, labels and weights."""
    table = nw.from_native(data, eager_only=True)
    known = list(table.columns)
    for name in (columns.target, columns.weight, *(columns.features or ())):
        if name is not None and name not in known:
            raise InputError(
                f"part {number} has no column {name!r}.", name_hint(name, [str(k) for k in known])
            )
    if columns.target is not None:
        y = table[columns.target].to_numpy()
    if columns.weight is not None:
        weight = table[columns.weight].to_numpy()
    wanted = columns.features
    if wanted is None:
        wanted = tuple(k for k in known if k not in (columns.target, columns.weight))
    return table.select(wanted), y, weight


def _features(number: int, data: Any, names: tuple[str, ...] | None, dtype: str | None) -> Any:
    """The features as floats, all finite; no copy of an array that can be used as it is."""
    if not _n_rows(data):
        return _without_rows(data, dtype)
    try:
        source = as_source(data, names)
    except ValueError as error:
        said = f"part {number} (its rows are counted from 0): {error}"
        raise InputError(said) from error
    X = source.take(slice(None))
    return X if dtype is None else X.astype(dtype, copy=False)


def _n_rows(data: Any) -> int:
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _without_rows(data: Any, dtype: str | None) -> np.ndarray:
    """No rows of the same columns; narrow unless asked otherwise, so that others decide."""
    if is_table(data):
        types = nw.from_native(data, eager_only=True).schema.values()
        is_narrow = all(each in NARROW for each in types)
        return np.empty((0, len(types)), dtype or (np.float32 if is_narrow else np.float64))
    if sparse.issparse(data):
        return sparse.csr_matrix(data.shape, dtype=dtype or data.dtype)
    return np.empty((0, np.shape(data)[1]), dtype or np.float32)


def _digest(X: Any, weights: np.ndarray | None) -> bytes:
    """A checksum of each array: enough to tell rows that have changed, at a gigabyte a second."""
    arrays = [X.data, X.indices, X.indptr] if sparse.issparse(X) else [X]
    if weights is not None:
        arrays.append(weights)
    cells = [np.ascontiguousarray(each).reshape(-1).view(np.uint8) for each in arrays]
    sums = [zlib.crc32(each.data) for each in cells]
    return np.array(sums, dtype=np.uint32).tobytes()


def _encoded(y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different labels, and the place of each row's among them, in few bytes."""
    if y.dtype == object:
        code_of: dict[Any, int] = {}
        codes = np.array([code_of.setdefault(label, len(code_of)) for label in y], dtype=np.int64)
        values = np.empty(len(code_of), dtype=object)
        values[:] = list(code_of)
    else:
        values, codes = np.unique(y, return_inverse=True)
    return values, codes.astype(np.min_scalar_type(max(len(values) - 1, 0)))
