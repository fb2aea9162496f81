"""f(x) = a + w . x."""

from collections.abc import Sequence
from typing import Any, Self

import numpy as np


class LinearFunction:
    r"""The linear score :math:`f(x) = a + w \cdot x` of dense or sparse rows.

    Attributes
    ----------
    weights : ndarray of shape (n_features,)
    intercept : float

    Examples
    --------
    >>> LinearFunction(np.array([1.0, -1.0]), 0.5).scores(np.array([[2.0, 1.0]]))
    array([1.5])
    """

    def __init__(self, weights: np.ndarray, intercept: float = 0.0) -> None:
        self.weights, self.intercept = weights, intercept

    def check_parts(self) -> None:
        """Raise `ValueError` where the weights are no list of numbers."""
        if self.weights.ndim != 1 or self.weights.dtype.kind != "f":
            raise ValueError("weights is no list of numbers")

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """f of every row, of shape (n_rows,): one product."""
        return X @ self.weights + self.intercept

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """The function of the mean weights."""
        weights = np.mean([each.weights for each in functions], axis=0)
        return cls(weights, float(np.mean([each.intercept for each in functions])))
