"""What a method is given of a typed table: categories of its own, words, or numbers.

Each is learned from the training rows alone.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn.base import BaseEstimator

from rareclass.tables.columns import Column

# Values of a column that histogram boosting tells apart.
MOST_HISTOGRAM_VALUES = 255
_MISSING, _RARER = "(missing)", "(rarer values)"


class NativeCategories(BaseEstimator):
    """A pandas table of float64 numbers and categories; missing cells stay missing.

    Dates become seconds, hour and day of the week. With `most_values` the commonest values of a
    column are kept and the others are one. A value that training did not have is missing.
    """

    def __init__(self, columns: Sequence[Column], most_values: int | None = None) -> None:
        self.columns = columns
        self.most_values = most_values

    def fit_transform(self, frame: pl.DataFrame, y: Any = None, weight: Any = None) -> pd.DataFrame:
        """Learn the values of every column of words, and return the rows."""
        self.categories_ = {
            column.name: self._values(frame[column.name])
            for column in self.columns
            if column.reads_as == "string"
        }
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Return the rows; columns are c0, c1, ...: some libraries refuse some names."""
        columns: list[Any] = []
        for column in self.columns:
            cells = frame[column.name]
            words = column.reads_as == "string"
            columns += [self._as_categories(cells)] if words else numbers_of(cells)
        return pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)})

    def _values(self, cells: pl.Series) -> list[str]:
        values = cells.drop_nulls().value_counts(sort=True)[cells.name].to_list()
        if self.most_values is not None and len(values) > self.most_values:
            return [*sorted(values[: self.most_values - 1]), _RARER]
        return sorted(values)

    def _as_categories(self, cells: pl.Series) -> pd.Categorical:
        values = self.categories_[cells.name]
        if values and values[-1] == _RARER:
            known = cells.is_in(values) | cells.is_null()
            cells = cells.zip_with(
                known, pl.Series([_RARER]).extend_constant(_RARER, len(cells) - 1)
            )
        words = cells.to_numpy().astype(object)
        codes = pd.Index(values, dtype=object).get_indexer(words)
        return pd.Categorical.from_codes(codes, values)


class Words(BaseEstimator):
    """A pandas table of float64 numbers and strings; a missing string is a value of its own."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def fit_transform(self, frame: pl.DataFrame, y: Any = None, weight: Any = None) -> pd.DataFrame:
        """Nothing is learned: the method takes new values."""
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Return the rows."""
        columns: list[Any] = []
        for column in self.columns:
            cells = frame[column.name]
            if column.reads_as == "string":
                columns.append(np.array(cells.fill_null(_MISSING).to_list(), dtype=object))
            else:
                columns += numbers_of(cells)
        return pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)})


def numbers_of(cells: pl.Series) -> list[np.ndarray]:
    """A column of numbers as float64, one of dates as seconds, hour and day of the week."""
    columns = [cells]
    if cells.dtype.is_temporal():
        columns = [cells.dt.epoch("s"), cells.dt.hour(), cells.dt.weekday()]
    return [column.cast(pl.Float64).fill_null(float("nan")).to_numpy() for column in columns]
