"""Encoder for hunts: points in which every column counts alike, and back to the table's units."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.column_values import (
    CYCLES,
    RecurringDates,
    known_words,
    rows_of_text,
    text_components,
)
from rareclass.encoding.encoders import DOUBLE_PRECISION_ROWS, ReadsColumns
from rareclass.encoding.label_statistics import side_by_side
from rareclass.encoding.table_statistics import MOST_EXAMPLES, ExampleCells, UnlikeCells
from rareclass.encoding.typed_table import TypedColumn, TypedTable
from rareclass.tables.columns import Column

Floats = NDArray[np.float64]

_DAYS_A_YEAR = 365.2425


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


class CoordinateValues(NamedTuple):
    """Values of one coordinate in units of the table: (n_rows,), none missing."""

    coordinate: Coordinate
    values: Floats


class HuntEncoder(ReadsColumns):
    """Encoder from typed columns to points whose distances compare rows column by column.

    Every column counts about as much as one number, whose squared distance between two rows is 2
    on average; an encoder for weights, as `TableEncoder` is one, would make of a category with
    thirty values thirty numbers:

    - numbers: variance 1;
    - categories and truth values: squared distance 2 between rows with different values;
    - dates and text: k coordinates of variance 1/k;
    - columns with empty cells: the median, and squared distance 1 between empty and not empty.

    No label is used: from a handful of labels the rare share of a value would say little, so that
    categories with many values are read by their letters, like text.

    Attributes
    ----------
    coordinates_ : list of Coordinate
        Meaning of each column of the points.
    low_, high_, median_ : ndarray of shape (n_numbers,)
        Range and median of each number and part of a date in training.
    words_ : list of KnownWords
        Values of each category.
    """

    statistics_: None = None

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = [
            replace(column, kind="text") if column.kind == "high-cardinality category" else column
            for column in columns
        ]

    def fit_transform(self, frame: pl.DataFrame) -> NDArray[Any]:
        """Fit on typed rows and return them as points (n_rows, n_coordinates).

        Points are float64 for fewer than 100,000 rows, else float32.
        """
        self.dtype_ = "float64" if frame.height < DOUBLE_PRECISION_ROWS else "float32"
        table = self.read(frame)
        every = np.ones(table.n_rows)
        self.dates_ = RecurringDates(absolute_time=True).fit(self._moments(table))
        numbers = self._numbers(table)
        present = np.isnan(numbers).sum(axis=0) < table.n_rows
        filled = np.where(present, numbers, 0.0)  # a column that is always empty
        self.median_ = np.nanmedian(filled, axis=0)
        self.low_, self.high_ = np.nanmin(filled, axis=0), np.nanmax(filled, axis=0)
        self.marked_ = np.flatnonzero(np.isnan(numbers).any(axis=0) & present)
        self.words_ = [known_words(each, every) for each in self._of_kind(table, "category")]
        self.texts_ = [text_components(each, every) for each in self._of_kind(table, "text")]
        parts = list(self._parts(table))
        self.kept_ = self._varying(parts)
        parts = [parts[k] for k in self.kept_]
        self.coordinates_ = _with_unique_names(self._scaled(parts))
        return self._points(parts)

    def transform(self, rows: pl.DataFrame | TypedTable) -> NDArray[Any]:
        """Return other typed rows as points; numbers are clipped to the training range."""
        parts = list(self._parts(self.read(rows)))
        return self._points([parts[k] for k in self.kept_])

    def find_unlike(self, rows: pl.DataFrame | TypedTable) -> UnlikeCells:
        """Find the cells that are unlike all of training, of columns that have some.

        Dates are left out: later rows have later ones.
        """
        table = self.read(rows)
        categories, numbers = (self._of_kind(table, kind) for kind in ("category", "number"))
        return UnlikeCells.of(
            (
                (column.name, known.levels_in(column) > known.n_known)
                for column, known in zip(categories, self.words_, strict=True)
            ),
            (
                (column.name, (column.values < low) | (column.values > high))
                for column, low, high in zip(numbers, self.low_, self.high_, strict=False)
            ),
        )

    def examples(self) -> ExampleCells:
        """Return cells of training as examples."""
        words = {name: known[:MOST_EXAMPLES] for name, known in self.choices.items()}
        names = [column.name for column in self.columns if column.reads_as == "number"]
        return ExampleCells(words, dict(zip(names, self.median_.tolist(), strict=False)))

    @property
    def choices(self) -> dict[str, list[str]]:
        """The values of each category in training, the most frequent first."""
        names = [c.name for c in self.columns if c.reads_as == "string" and c.kind != "text"]
        return {
            name: [known.name(level) for level in range(known.n_known)]
            for name, known in zip(names, self.words_, strict=True)
        }

    def _of_kind(self, table: TypedTable, kind: Any) -> list[TypedColumn]:
        return [table.columns[k] for k in table.of_kind(kind)]

    def _moments(self, table: TypedTable) -> Floats:
        return side_by_side([each.values for each in self._of_kind(table, "date")], table.n_rows)

    def _numbers(self, table: TypedTable) -> Floats:
        """Numbers and parts of dates, NaN where missing: (n_rows, n_numbers)."""
        numbers = [each.values for each in self._of_kind(table, "number")]
        parts = self.dates_.transform(self._moments(table))
        return side_by_side([*numbers, *parts.T], table.n_rows)

    def _parts(self, table: TypedTable) -> Iterator[CoordinateValues]:
        """Every coordinate that these columns can have, in units of the table."""
        numbers = self._numbers(table)
        missing = np.isnan(numbers)
        meant = self._meant_by_numbers(table)
        n_plain = len(meant) - len(self.dates_.features_)
        for k, coordinate in enumerate(meant):
            values = np.where(missing[:, k], self.median_[k], numbers[:, k])
            values = np.clip(values, self.low_[k], self.high_[k])
            if k >= n_plain and self.dates_.features_[k - n_plain][0] == "time":
                values = 1970.0 + values / _DAYS_A_YEAR
            yield CoordinateValues(coordinate, values)
        once: set[str] = set()
        for k in self.marked_.tolist():
            name = meant[k].column
            if name not in once:  # parts of a date are empty together
                once.add(name)
                marker = Coordinate(f"{name} is empty", name, is_marker=True)
                yield CoordinateValues(marker, missing[:, k].astype(np.float64))
        for column, known in zip(self._of_kind(table, "category"), self.words_, strict=True):
            levels = known.levels_in(column)
            for level in range(known.n_known + 1):  # the last is that of empty cells
                name = f"{column.name}_{known.name(level)}"
                if level == known.n_known:
                    name = f"{column.name} is empty"
                yield CoordinateValues(
                    Coordinate(name, column.name), (levels == level).astype(np.float64)
                )
        for column, components in zip(self._of_kind(table, "text"), self.texts_, strict=True):
            for k, values in enumerate(rows_of_text(column, components).T):
                yield CoordinateValues(
                    Coordinate(f"{column.name}: letters {k + 1}", column.name), values
                )

    def _meant_by_numbers(self, table: TypedTable) -> list[Coordinate]:
        switches = {column.name for column in self.columns if column.kind == "boolean"}
        numbers = [column.name for column in self._of_kind(table, "number")]
        meant = [Coordinate(name, name, is_number=name not in switches) for name in numbers]
        dates = [column.name for column in self._of_kind(table, "date")]
        for part, first, second in self.dates_.features_:
            name = f"{dates[first]}: {part}"
            if part == "days":
                name = f"{dates[first]} to {dates[second]}: days"
            elif part == "time":
                name = f"{dates[first]} (year)"
            is_number = part not in CYCLES  # a sine says nothing to a reader
            meant.append(Coordinate(name, dates[first], is_number=is_number))
        return meant

    def _varying(self, parts: list[CoordinateValues]) -> NDArray[np.intp]:
        """Places of coordinates that vary; of a category with two values, of the rarer one."""
        own: dict[str, list[int]] = {name: [] for name in self.choices}
        kept = [k for k, part in enumerate(parts) if np.ptp(part.values) > 0.0]
        for k in kept:
            if parts[k].coordinate.column in own:
                own[parts[k].coordinate.column].append(k)
        doubled = {places[0] for places in own.values() if len(places) == 2}
        return np.array([k for k in kept if k not in doubled], np.intp)

    def _scaled(self, parts: list[CoordinateValues]) -> list[Coordinate]:
        """The coordinates that vary, with the unit that makes each column count as one number."""
        kinds = {column.name: column.kind for column in self.columns}
        n_values = Counter(p.coordinate.column for p in parts if not p.coordinate.is_marker)
        scaled = []
        for coordinate, values in parts:
            n_own = n_values[coordinate.column]
            if coordinate.is_marker:
                unit = 1.0
            elif kinds[coordinate.column] in ("boolean", "category"):
                # One coordinate stands for both of two values.
                unit = 1.0 / np.sqrt(2.0) if n_own == 1 else 1.0
            else:
                unit = float(np.std(values)) * np.sqrt(n_own)
            scaled.append(replace(coordinate, unit=float(unit), zero=float(np.mean(values))))
        return scaled

    def _points(self, parts: Sequence[CoordinateValues]) -> NDArray[Any]:
        X = np.empty((len(parts[0].values) if parts else 0, len(parts)), self.dtype_)
        for k, (part, scaled) in enumerate(zip(parts, self.coordinates_, strict=True)):
            X[:, k] = (part.values - scaled.zero) / scaled.unit
        return X


def _with_unique_names(features: list[Coordinate]) -> list[Coordinate]:
    """Number names that occur twice: value "red" of "color" beside a column "color_red"."""
    taken = {feature.name for feature in features if feature.name == feature.column}
    apart = []
    for feature in features:
        name, number = feature.name, 2
        while name in taken and name != feature.column:
            name, number = f"{feature.name} ({number})", number + 1
        taken.add(name)
        apart.append(replace(feature, name=name))
    return apart
