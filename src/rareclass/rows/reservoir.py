"""Uniform sample of bounded size of a stream."""

import numpy as np


def reservoir_slots(nth: np.ndarray, draws: np.ndarray, capacity: int) -> np.ndarray:
    """Choose the slot of the n-th row of a stream by Vitter's Algorithm R; -1 where it is not kept.

    The first rows fill the slots. After them a draw u, uniform in [0, 1), gives slot
    ``floor(u n)``, kept where that is below the capacity: with probability capacity / n, replacing
    any row alike. One draw a row, in row order: how a stream is cut into batches does not matter.

    Examples
    --------
    >>> reservoir_slots(np.array([1, 2, 3, 4]), np.array([0.9, 0.9, 0.3, 0.9]), 2).tolist()
    [0, 1, 0, -1]
    """
    drawn = np.where(nth <= capacity, nth - 1, (draws * nth).astype(np.int64))
    return np.where(drawn < capacity, drawn, -1)
