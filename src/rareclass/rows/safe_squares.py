"""Rows whose squares floats can hold: what squared distances are worked out of.

A square of float32 is 0 below 4e-23 and infinite above 1.8e19, one of float64 below 1e-162 and
above 1.3e154. Distances of such rows are 0, infinite or NaN, and so is what is learned of them.
"""

from typing import Any

import numpy as np

from rareclass.rows.source import RowSource

_STRETCH_ROWS = 65536
# Sums over ten million columns of squares of differences are still far from the ends.
NARROW_RANGE = 1e-15, 1e15
_LEAST, _MOST = 1e-140, 1e145


def with_safe_squares(source: RowSource, names: Any = None, learns: bool = False) -> RowSource:
    """The rows, in float64 where squares of float32 would not do. One pass over rows in memory.

    Rows on disk or on workers are returned as they are. `learns`: whether a scale is learned from
    these rows; others may all be zero, or nearly.

    Raises `ValueError` where float64 will not do either, naming column, row and value.
    """
    if not source.is_in_memory or source.as_rows is not None:
        return source
    largest = largest_value(source)
    if source.dtype == np.float32 and largest > 0.0:
        least, most = NARROW_RANGE
        return source if least <= largest <= most else _widened(source)
    if largest > _MOST:
        _refuse(source, largest, names)
    if learns and 0.0 < largest < _LEAST:
        raise ValueError(
            f"all values are {largest:g} or nearer to 0: squares of their differences are below "
            "what floats hold. Scale the columns first (sklearn.preprocessing.StandardScaler)."
        )
    return source


def largest_value(source: RowSource) -> float:
    """The greatest absolute value."""
    found = 0.0
    for start in range(0, source.n_rows, _STRETCH_ROWS):
        block = source.take(slice(start, start + _STRETCH_ROWS))
        values = block.data if source.is_sparse else block
        if values.size:
            found = max(found, float(values.max()), -float(values.min()))
    return found


def _widened(source: RowSource) -> RowSource:
    def take(rows: Any) -> Any:
        return source.take(rows).astype(np.float64)

    shape = source.n_rows, source.n_features
    return RowSource(shape, np.float64, take, source.is_sparse)


def _refuse(source: RowSource, largest: float, names: Any) -> None:
    for start in range(0, source.n_rows, _STRETCH_ROWS):
        block = source.take(slice(start, start + _STRETCH_ROWS))
        cells = block.tocoo() if source.is_sparse else block
        found = np.flatnonzero(np.abs(cells.data if source.is_sparse else cells) == largest)
        if not len(found):
            continue
        place = int(found[0])
        row, column = divmod(place, source.n_features)
        if source.is_sparse:
            row, column = int(cells.row[place]), int(cells.col[place])
        name = f"column {column}" if names is None else f"column {names[column]!r}"
        raise ValueError(
            f"{name} holds {largest:g} at row {start + row}, which is too large: squared "
            "distances between rows overflow. Standardise the features first "
            "(sklearn.preprocessing.StandardScaler)."
        )
