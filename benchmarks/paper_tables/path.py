"""Models of one method at several parameters, fitted on the same rows."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

Params = Sequence[float] | np.ndarray


@dataclass(frozen=True)
class FittedPath:
    """One model per parameter value.

    Parameters
    ----------
    params : sequence of float
        k for KNN, lam for all others.
    scores : callable
        ``scores(X, indices)`` gives one column of scores per index into `params`.
    sizes : sequence of int
        Rows that carry each model: support vectors or landmarks with a non-zero coefficient.
    stopped : int
        How many of the fits reached their iteration cap.
    """

    params: Params
    scores: Callable[[np.ndarray, Sequence[int]], np.ndarray]
    sizes: Sequence[int]
    stopped: int = 0
