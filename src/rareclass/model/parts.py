"""The two parts of a model: an encoder of typed rows, and an estimator that scores them."""

from collections.abc import Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.tables.columns import Column

Scores = NDArray[np.float64]


@runtime_checkable
class Encoder(Protocol):
    """Turns typed rows of a table into what the estimator learned from.

    An `InputError` of a cell has the number of the row among those that were given, from 1.
    """

    @property
    def columns(self) -> Sequence[Column]:
        """Columns that are learned from; none for sparse rows."""

    def transform(self, rows: Any) -> Any:
        """Return encoded rows."""

    def count_unseen(self, rows: pl.DataFrame) -> Mapping[str, int]:
        """Count cells of each category column whose value training did not have."""

    def count_outside(self, rows: pl.DataFrame) -> Mapping[str, int]:
        """Count cells of each numeric column that lie outside the range of training."""


@runtime_checkable
class Ranker(Protocol):
    """A fitted estimator: the higher the score, the more like the rare class."""

    def score_samples(self, X: Any) -> Scores:
        """Return a score for each row."""
