"""Rare rows that a model learned from, as its file keeps them: to compare alerts with."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RareCases:
    """Rare training rows by their numbers in the training file.

    Attributes
    ----------
    number : ndarray of int of shape (n_cases,)
        From 1 on. Without `features` there is one for each landmark of the model, and 0 where that
        is no rare row.
    features : dict of ndarray, each of n_cases rows, or None
        What they are compared by, see `rareclass.explain.near_cases.case_features`. None where
        the landmarks of a kernel machine are the cases.
    """

    number: NDArray[np.int64]
    features: dict[str, np.ndarray] | None = None

    def check(self) -> None:
        """Raise `ValueError` where numbers and features do not belong together."""
        number, features = np.asarray(self.number), self.features
        lengths = {len(number)} if features is None else {*map(len, features.values()), len(number)}
        if number.dtype.kind not in "iu" or number.ndim != 1 or len(lengths) != 1:
            raise ValueError("a number for each case, and features of as many")
