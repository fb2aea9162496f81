"""What a learned member is: a function of encoded rows, made of plain arrays."""

from collections.abc import Sequence
from typing import Any, Protocol, Self

import numpy as np


class ScoreFunction(Protocol):
    """A score f(x) of an encoded row, higher where it is more like the rare class.

    There are three: a sum of kernel functions, a sum of trees, and a linear function. They hold
    arrays and numbers alone, so that a model file opens without the library that learned it, and
    the mean of several of one kind is one of the same kind.
    """

    def scores(self, X: Any, n_jobs: int | None = 1) -> np.ndarray:
        """f of every row of X, of shape (n_rows,), in `n_jobs` threads."""
        ...

    @classmethod
    def mean_of(cls, functions: Sequence[Self]) -> Self:
        """The function whose score is the mean of theirs."""
        ...
