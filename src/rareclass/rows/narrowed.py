"""float32 in place of float64, where distances between rows do not notice."""

from typing import Any

import numpy as np

from rareclass.rows.safe_squares import NARROW_RANGE, largest_value
from rareclass.rows.source import RowSource

# Rounding of a value, of the width that distances are measured by.
_MOST_ROUNDING = 1e-4


def narrowed(source: RowSource, width: float | None) -> RowSource:
    """The rows in float32; as they are where that would round too much, or they are no float64.

    A value x moves by up to :math:`2^{-24} |x|`, which must be within 1e-4 of `width`, what
    distances are measured by; None where a kernel has none, and all that counts are digits. Rows
    on disk or on workers stay as they are. One pass over rows in memory.
    """
    if source.dtype != np.float64 or not source.is_in_memory or source.as_rows is not None:
        return source
    largest = largest_value(source)
    rounding = 2.0**-24 * largest
    least, most = NARROW_RANGE
    if not least <= largest <= most or (width is not None and rounding > _MOST_ROUNDING * width):
        return source

    def take(rows: Any) -> Any:
        return source.take(rows).astype(np.float32)

    return RowSource((source.n_rows, source.n_features), np.float32, take, source.is_sparse)
