"""Rows for libraries that compare in float32."""

import numpy as np

_LARGEST = np.float32(1e28)  # ten thousand million of them still have a sum in float32


def float32_rows(X: np.ndarray) -> np.ndarray:
    """Dense rows in float32, with numbers beyond +-1e28 drawn in to it.

    Scored as they are, such numbers still lie beyond every threshold.
    """
    with np.errstate(over="ignore"):
        rows = np.asarray(X).astype(np.float32)
    return np.clip(rows, -_LARGEST, _LARGEST, out=rows)
