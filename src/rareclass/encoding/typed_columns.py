"""Typed columns handed on as they are, to a model that encodes tables itself."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import polars as pl
from sklearn.base import BaseEstimator

from rareclass.tables.columns import Column, Kind

_TREATMENTS: dict[Kind, str] = {
    "number": "value, rank, logarithm",
    "category": "commonest values, log-odds",
    "high-cardinality category": "commonest values, log-odds",
    "date": "hour, weekday, month, day",
}


class TypedColumns(BaseEstimator):
    """Stands where an encoder does and hands typed columns on.

    Numbers stay float64 and dates datetimes. Words that are categories become a type that says so:
    what was read as words stays words to the model, even if it looks like numbers or is different
    in every row.

    `columns` are those that are learned from.
    """

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def fit_transform(
        self, frame: pl.DataFrame, y: Any = None, sample_weight: Any = None
    ) -> pl.DataFrame:
        """Return the typed rows; nothing is learned."""
        return self.transform(frame)

    def transform(self, frame: pl.DataFrame) -> pl.DataFrame:
        """Return rows, typed as `read_as_trained` types them, with categories as such."""
        categories = [
            pl.col(column.name).cast(pl.Categorical)
            for column in self.columns
            if column.reads_as == "string" and column.kind != "text"
        ]
        return frame.with_columns(categories)

    def count_outside(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return nothing: the model knows the range of its numbers."""
        return {}

    def count_unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return nothing: the model knows what it saw."""
        return {}


def treated_by_model(column: Column) -> Column:
    """Return the column with what a model that encodes tables itself does with it.

    >>> treated_by_model(Column("a", "number", "standardised", "number", n_missing=3)).treatment
    'value, rank, logarithm; empty: marked'
    """
    if column.kind not in _TREATMENTS:
        return column
    treatment = _TREATMENTS[column.kind]
    if column.n_missing and column.kind != "text":
        treatment += "; empty: a value too" if column.reads_as == "string" else "; empty: marked"
    return replace(column, treatment=treatment)
