"""What a method is given of a table: native categories, codes, or standardised indicators.

Each is learned from the training rows alone. Times become three numbers first: seconds, hour of the
day and day of the week. A value that training rows do not have is missing where a missing value is
understood, and sets no indicator elsewhere.
"""

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import pandas as pd
import polars as pl
from polars import selectors
from sklearn.compose import ColumnTransformer
from sklearn.impute import SimpleImputer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler

FEW_VALUES = 10  # strings with so many are indicators for forests, codes beyond
MOST_INDICATORS = 100  # of a column: its rarer values share one
MISSING = "(missing)"


class Preparation(Protocol):
    """Learns from the training rows what it does to any."""

    def fit_transform(self, frame: pl.DataFrame) -> Any:
        """Learn, and what these rows become."""

    def transform(self, frame: pl.DataFrame) -> Any:
        """What other rows become."""


class Unchanged:
    """The table itself: for a method that takes tables."""

    def fit_transform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """The same."""
        return frame

    transform = fit_transform


class NativeCategories:
    """A pandas table of float64 numbers and categories, missing cells left missing."""

    def fit_transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Learn the values of every column."""
        table = _with_numbers(frame)
        self.categories = {
            name: sorted(table[name].drop_nulls().unique().to_list())
            for name in table.select(selectors.string()).columns
        }
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Columns are called c0, c1, ...: some libraries refuse some names."""
        table = _with_numbers(frame)
        columns = [self._column(table[name]) for name in table.columns]
        return pd.DataFrame({f"c{k}": column for k, column in enumerate(columns)})

    def _column(self, cells: pl.Series) -> Any:
        if cells.name not in self.categories:
            return cells.to_numpy()
        values = self.categories[cells.name]
        known = cells.to_numpy().astype(object)
        return pd.Categorical.from_codes(pd.Index(values, dtype=object).get_indexer(known), values)


class TextCategories:
    """A pandas table of float64 numbers and strings; a missing string is a value of its own."""

    def fit_transform(self, frame: pl.DataFrame) -> pd.DataFrame:
        """Nothing is learned: the method takes new values."""
        table = _objects(frame)
        return table.set_axis([f"c{k}" for k in range(table.shape[1])], axis=1)

    transform = fit_transform


class Matrix:
    """A matrix of float64 that a scikit-learn transformer makes of the table.

    Parameters
    ----------
    transformer : callable
        Gives the transformer for the training table; strings in it are objects.
    """

    def __init__(self, transformer: Callable[[pd.DataFrame], Any]) -> None:
        self.transformer = transformer

    def fit_transform(self, frame: pl.DataFrame) -> np.ndarray:
        """Learn medians, values, means and deviations, as far as they are used."""
        table = _objects(frame)
        self.fitted = self.transformer(table)
        return np.asarray(self.fitted.fit_transform(table), dtype=np.float64)

    def transform(self, frame: pl.DataFrame) -> np.ndarray:
        """The same for other rows."""
        return np.asarray(self.fitted.transform(_objects(frame)), dtype=np.float64)


def codes() -> Matrix:
    """For forests: indicators of few values, codes of many, missing numbers left missing."""
    return Matrix(lambda table: _columns(table, FunctionTransformer(), np.nan))


def filled_codes() -> Matrix:
    """The same with medians in missing cells, and a marker of them."""
    return Matrix(lambda table: _columns(table, _medians(), -1))


def standardised() -> Matrix:
    """Indicators, medians with markers, then zero mean and unit variance of every column."""

    def transformer(table: pd.DataFrame) -> Any:
        numbers, strings = _kinds(table)
        columns = ColumnTransformer(
            [("numbers", _medians(), numbers), ("values", _indicators(), strings)]
        )
        return make_pipeline(columns, StandardScaler())

    return Matrix(transformer)


def _columns(table: pd.DataFrame, for_numbers: Any, code_of_unknown: float) -> ColumnTransformer:
    numbers, strings = _kinds(table)
    few = [name for name in strings if table[name].nunique() <= FEW_VALUES]
    many = [name for name in strings if name not in few]
    encoder = OrdinalEncoder(handle_unknown="use_encoded_value", unknown_value=code_of_unknown)
    return ColumnTransformer(
        [("numbers", for_numbers, numbers), ("few", _indicators(), few), ("many", encoder, many)]
    )


def _medians() -> SimpleImputer:
    return SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)


def _indicators() -> OneHotEncoder:
    return OneHotEncoder(
        handle_unknown="infrequent_if_exist", max_categories=MOST_INDICATORS, sparse_output=False
    )


def _kinds(table: pd.DataFrame) -> tuple[list[str], list[str]]:
    strings = [name for name in table if table[name].dtype == object]
    return [name for name in table if name not in strings], strings


class Filled:
    """A polars table without missing cells: of numbers the median, of words a value of their own.

    Other columns, of 1 and 0, say where numbers are missing, as AutoGluon prepares such methods.
    """

    def fit_transform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Learn the medians, and the columns of numbers that have missing cells."""
        numbers = _with_numbers(frame).select(selectors.numeric().fill_nan(None))
        self.medians = {one.name: one.median() or 0.0 for one in numbers}
        self.missing = [one.name for one in numbers if one.null_count()]
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return these rows without missing cells."""
        table = _with_numbers(frame)
        return table.with_columns(
            *(
                pl.col(name).is_nan().cast(pl.Float64).alias(f"{name}, missing")
                for name in self.missing
            ),
            *(pl.col(name).fill_nan(value) for name, value in self.medians.items()),
            selectors.string().fill_null(MISSING),
        )


def _objects(frame: pl.DataFrame) -> pd.DataFrame:
    """A pandas table; a missing string is a value of its own."""
    table = _with_numbers(frame)
    return pd.DataFrame({cells.name: _cells(cells) for cells in table})


def _cells(cells: pl.Series) -> pd.Series:
    if cells.dtype == pl.String:
        return pd.Series(cells.fill_null(MISSING).to_list(), dtype=object)
    return pd.Series(cells.to_numpy())


def _with_numbers(frame: pl.DataFrame) -> pl.DataFrame:
    """Times as numbers, and all numbers as float64 with NaN in missing cells."""
    times = frame.select(selectors.temporal()).columns
    expanded = frame.with_columns(
        expression.alias(f"{name}, {what}")
        for name in times
        for what, expression in (
            ("seconds", pl.col(name).dt.epoch("s")),
            ("hour", pl.col(name).dt.hour()),
            ("weekday", pl.col(name).dt.weekday()),
        )
    ).drop(times)
    numbers = selectors.numeric() | selectors.boolean()
    return expanded.with_columns(numbers.cast(pl.Float64).fill_null(np.nan))
