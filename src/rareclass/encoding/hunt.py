"""Encoder for hunts: points in which every column counts alike, and back to the table's units."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.encoders import TableEncoder
from rareclass.tables.columns import Column

_SECONDS = "_total_seconds"
_SECONDS_A_YEAR = 365.2425 * 24 * 3600


@dataclass(frozen=True)
class Coordinate:
    """Meaning of one coordinate of the points.

    A coordinate v stands for ``v * unit + zero`` in the units of the table: a number; the year of a
    date; 0 or 1 for a value of a category. Other coordinates stand for themselves.
    """

    name: str  # in a description; unique
    column: str  # of the table that it comes from
    unit: float = 1.0
    zero: float = 0.0
    is_marker: bool = False  # marks empty cells
    is_number: bool = False  # a number of the table, or of a date


class HuntEncoder:
    """Encoder from typed columns to points whose distances compare rows column by column.

    `TableEncoder` standardises every coordinate, which is right for a model that learns weights
    and wrong for a distance: a category with thirty values would count as thirty numbers, and a
    value that few rows have would lie far from everything. Here every column counts about as
    much as one number, whose squared distance between two rows is 2 on average:

    - numbers: variance 1;
    - categories and truth values: squared distance 2 between rows with different values;
    - dates and text: k coordinates of variance 1/k;
    - columns with empty cells: the median, and squared distance 1 between empty and not empty.

    No label is used: from a handful of labels the rare share of a value would say little, so that
    categories with many values are read by their letters, like text.

    `random_state` is the seed of the text's singular value decomposition; ``coordinates_`` gives
    the meaning of each column of the points.
    """

    def __init__(self, columns: Sequence[Column], random_state: int = 0) -> None:
        self.columns = [
            replace(column, kind="text") if column.kind == "high-cardinality category" else column
            for column in columns
        ]
        self.random_state = random_state

    def fit_transform(self, frame: pl.DataFrame) -> NDArray[Any]:
        """Fit on typed rows and return them as points (n_rows, n_coordinates).

        Points are float64 for fewer than 100,000 rows, else float32.
        """
        encoder = TableEncoder(self.columns, self.random_state)
        # Without high-cardinality categories nothing in it looks at the classes.
        X = encoder.fit_transform(frame, np.zeros(frame.height, dtype=bool))
        features = self._describe(encoder)
        factors = self._factors(features, encoder.scaler_.var_ > 0.0)
        self.coordinates_ = [
            replace(feature, unit=feature.unit / float(factors[k]))
            for k, feature in enumerate(features)
            if factors[k] > 0.0
        ]
        self.encoder_, self.factors_ = encoder, factors
        return self._weighed(X)

    def transform(self, frame: pl.DataFrame) -> NDArray[Any]:
        """Return other typed rows as points; numbers are clipped to the training range."""
        return self._weighed(self.encoder_.transform(frame))

    def count_unseen(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how many cells of each category column hold a value not seen in training."""
        return self.encoder_.count_unseen(frame)

    def count_outside(self, frame: pl.DataFrame) -> dict[str, int]:
        """Return how many cells of each column of numbers lie outside the training range."""
        return self.encoder_.count_outside(frame)

    def _weighed(self, X: NDArray[Any]) -> NDArray[Any]:
        """Multiply standardised coordinates that vary by their factors; X is used up."""
        X *= self.factors_.astype(X.dtype)
        return X if self.factors_.all() else np.ascontiguousarray(X[:, self.factors_ > 0.0])

    def _describe(self, encoder: TableEncoder) -> list[Coordinate]:
        """Describe the encoder's coordinates in units of the table."""
        sources, n_marked = _sources(encoder)
        n_numbers, kinds = len(encoder.centre_), {c.name: c.kind for c in self.columns}
        features = []
        for k, (name, column) in enumerate(zip(encoder.feature_names_, sources, strict=True)):
            unit, zero = float(encoder.scaler_.scale_[k]), float(encoder.scaler_.mean_[k])
            is_marker = k >= len(sources) - n_marked
            if is_marker:
                name = f"{column} is empty"
            elif k < n_numbers:
                spread, centre = float(encoder.spread_[k]), float(encoder.centre_[k])
                unit, zero = unit * spread, zero * spread + centre
                if name == column + _SECONDS:
                    name = f"{column} (year)"
                    unit, zero = unit / _SECONDS_A_YEAR, 1970.0 + zero / _SECONDS_A_YEAR
            is_number = not is_marker and kinds[column] in ("number", "date")
            features.append(Coordinate(name, column, unit, zero, is_marker, is_number))
        return _with_unique_names(features)

    def _factors(
        self, features: list[Coordinate], varies: NDArray[np.bool_]
    ) -> NDArray[np.float64]:
        """Return the factor of each standardised coordinate; 0 for a constant one."""
        kinds = {column.name: column.kind for column in self.columns}
        n_values = Counter(
            feature.column
            for feature, counts in zip(features, varies, strict=True)
            if counts and not feature.is_marker
        )
        factors = np.zeros(len(features))
        for k in np.flatnonzero(varies):
            feature = features[k]
            # Undo the standardisation, to values of the table such as 0 and 1.
            plain = abs(feature.unit)
            if feature.is_marker:
                factors[k] = plain
            elif kinds[feature.column] in ("boolean", "category"):
                # One coordinate stands for both of two values.
                factors[k] = plain * (np.sqrt(2.0) if n_values[feature.column] == 1 else 1.0)
            else:
                factors[k] = 1.0 / np.sqrt(n_values[feature.column])
        return factors


def _with_unique_names(features: list[Coordinate]) -> list[Coordinate]:
    """Number names that occur twice: value "red" of "color" beside a column "color_red".

    A coordinate that is a column keeps the column's name.
    """
    taken = {feature.name for feature in features if feature.name == feature.column}
    apart = []
    for feature in features:
        name, number = feature.name, 2
        while name in taken and name != feature.column:
            name, number = f"{feature.name} ({number})", number + 1
        taken.add(name)
        apart.append(replace(feature, name=name))
    return apart


def _sources(encoder: TableEncoder) -> tuple[list[str], int]:
    """Return the column of each coordinate, and how many of the last ones mark empty cells."""
    direct = [column.name for column in encoder.columns if column.reads_as != "string"]
    if encoder.vectorizer_ is not None:
        outputs = encoder.vectorizer_.get_feature_names_out()
        direct += [encoder.vectorizer_.output_to_input_[name] for name in outputs]
    marked = [direct[k] for k in encoder.imputer_.indicator_.features_]
    return direct + marked, len(marked)
