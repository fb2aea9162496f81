"""Rows of a stream turned into numbers, by statistics that follow the stream."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding._numbers_jit import ASINH, CLIP, LINEAR, scale_and_learn, scale_only
from rareclass.encoding.schema import Schema
from rareclass.encoding.typed_table import CodedText, coded_text
from rareclass.parameters import check_number, check_whole
from rareclass.tables.text_reader import Batch

TAILS = {"asinh": ASINH, "clip": CLIP, "linear": LINEAR}
_STATISTICS = 4  # count, mean, what the mean lost to rounding, variance


class Encoded(NamedTuple):
    """Rows as numbers.

    X has one column a feature, in order of birth; a feature is 0 in the rows before its birth.
    `births` has for each the row of this batch at which it first appears, 0 if it is older: it
    never falls.
    """

    X: NDArray[np.float64]
    births: NDArray[np.int64]


class Feature(NamedTuple):
    """One column of X: of which column of the stream, and what it says.

    The role is "number", the scaled number; "value", 1 where the category is `value`; "other", 1
    where the category has no feature of its own; "missing", 1 where the cell is empty.
    """

    column: str
    role: str
    value: str = ""

    @property
    def name(self) -> str:
        """The feature for a reader: ``amount``, ``country=DE``, ``amount is missing``."""
        if self.role == "number":
            return self.column
        if self.role == "missing":
            return f"{self.column} is missing"
        # A category that is spelt like the shared feature is told apart from it.
        value = repr(self.value) if self.value == "other" else self.value
        return f"{self.column}={value or 'other'}"


class _Birth(NamedTuple):
    row: int
    column: int  # place of the column in the schema
    rank: int  # a number comes before "is missing" of the same cell
    feature: Feature


class OnlineEncoder:
    """Scales numbers and spreads categories, learning from each row as it passes.

    Numbers: x becomes z = (x - mean) / deviation, with the mean and variance of its column up to
    and including this row, and then asinh(z) by default. With d = x - mean and
    a = max(1 / count, 1 - 2^(-1 / half_life)),

        mean <- mean + a d,    variance <- (1 - a) (variance + a d^2),

    so that the first 1.44 half_life rows count alike, and from then on the weight of the past
    halves every `half_life` rows. A column that has not varied yet gives 0. So does an empty cell,
    and from the first one on the column has a feature "is missing". A scale that grows is followed
    at once; one that shrinks k-fold takes about 2 log2(k) half-lives.

    Categories: a feature 0 or 1 for each of the first `max_categories` values of a column, born
    when the value first appears; all later values share one feature "other".

    A feature is added at the end of X in the row where it is born; those born in one row in the
    order of the schema's columns. So every row is encoded by the rows before it and itself, and the
    result is the same, to the last bit, however the stream is cut into batches.

    More `max_categories` (at least 1) tell more values apart, at one more feature each. A longer
    `half_life`, in rows, is steadier, a shorter one follows drift more closely. `tails` is what
    becomes of z: "asinh", like z near 0 and like its logarithm far out, so that order is kept up to
    the ends; "clip" cuts it off at -10 and 10; "linear" is z. Rare rows often lie far out, and few
    columns are linear there (docs/decisions/0039). Raises ValueError when a parameter is out of
    range.

    Notes
    -----
    A pass over the cells in time; max_categories values a column in memory, however long the
    stream.

    Examples
    --------
    >>> cells = pl.DataFrame({"amount": [10.0, 20.0], "land": ["DE", "FR"]})
    >>> batch = Batch(cells, np.array([2, 3]), "a.csv", [], 2, {})
    >>> encoder = OnlineEncoder(Schema("y", {"amount": "number", "land": "category"}))
    >>> encoder.encode(batch)
    Encoded(X=array([[0.        , 1.        , 0.        ],
           [0.88137359, 0.        , 1.        ]]), births=array([0, 0, 1]))
    >>> encoder.feature_names
    ['amount', 'land=DE', 'land=FR']
    """

    def __init__(
        self,
        schema: Schema,
        max_categories: int = 32,
        half_life: float = 100_000,
        tails: str = "asinh",
    ) -> None:
        check_whole("max_categories", max_categories)
        check_number("half_life", half_life, "a number of rows above 0")
        if tails not in TAILS:
            raise ValueError(f"tails must be one of {', '.join(TAILS)}, not {tails!r}")
        self.schema = schema
        self.tails = tails
        self.max_categories = max_categories
        self.half_life = half_life
        self._kinds = schema.features
        numbers = [name for name, kind in self._kinds.items() if kind == "number"]
        self._line_of = {name: line for line, name in enumerate(numbers)}
        self._statistics = np.zeros((len(numbers), _STATISTICS))
        self._features: list[Feature] = []
        self._places: dict[Feature, int] = {}
        self._n_values = dict.fromkeys(self._kinds, 0)

    @property
    def n_features(self) -> int:
        """The number of features born so far: the width of the next X, if nothing new comes."""
        return len(self._features)

    @property
    def features(self) -> tuple[Feature, ...]:
        """Meaning of each column of X."""
        return tuple(self._features)

    @property
    def feature_names(self) -> list[str]:
        """A name for each column of X."""
        return [feature.name for feature in self._features]

    def encode(self, batch: Batch, *, learn: bool = True) -> Encoded:
        """Return the rows as numbers.

        Without `learn` the encoder stays as it is, for scoring: rows are scaled by the statistics
        so far, a value without a feature counts as "other" if there is such a feature and is 0
        everywhere if not, and no feature is born. Raises ValueError when a column is not there or
        has not been parsed by `Schema.check`.
        """
        cells = self._cells(batch)
        births = self._births(cells) if learn and batch.n_rows else []
        old = len(self._features)
        X = np.zeros((batch.n_rows, old + len(births)))
        for birth in births:
            self._add(birth.feature)
        for name, column in cells.items():
            if isinstance(column, CodedText):
                self._spread(name, column, X)
            else:
                self._scale(name, column, X, learn)
        born = np.array([birth.row for birth in births], dtype=np.int64)
        return Encoded(X, np.concatenate([np.zeros(old, dtype=np.int64), born]))

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: the schema, an array, "statistics", and plain values."""
        return {
            "schema": self.schema,
            "max_categories": self.max_categories,
            "half_life": self.half_life,
            "tails": self.tails,
            "features": [list(feature) for feature in self._features],
            "statistics": self._statistics.copy(),
        }

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> OnlineEncoder:
        """Return the encoder that `to_state` wrote down, to go on where it was."""
        encoder = cls(state["schema"], state["max_categories"], state["half_life"], state["tails"])
        for feature in state["features"]:
            encoder._add(Feature(*feature))
        encoder._statistics[:] = state["statistics"]
        return encoder

    def _cells(self, batch: Batch) -> dict[str, NDArray[np.float64] | CodedText]:
        cells: dict[str, NDArray[np.float64] | CodedText] = {}
        for name, kind in self._kinds.items():
            wanted = pl.Float64 if kind == "number" else pl.String
            if batch.frame.schema.get(name) != wanted:
                raise ValueError(f"column {name!r} has not been parsed: call Schema.check first")
            column = batch.frame[name]
            cells[name] = np.array(column) if kind == "number" else coded_text(column)
        return cells

    def _births(self, cells: Mapping[str, NDArray[np.float64] | CodedText]) -> list[_Birth]:
        """Return the features that appear in these rows, in order of birth."""
        births: list[_Birth] = []
        for place, (name, column) in enumerate(cells.items()):
            if isinstance(column, CodedText):
                empty = column.codes < 0
                births += (_Birth(row, place, 0, f) for row, f in self._new_values(name, column))
            else:
                empty = ~np.isfinite(column)
                if (number := Feature(name, "number")) not in self._places:
                    births.append(_Birth(0, place, 0, number))
            missing = Feature(name, "missing")
            if missing not in self._places and empty.any():
                births.append(_Birth(int(empty.argmax()), place, 1, missing))
        return sorted(births, key=lambda birth: birth[:3])

    def _new_values(self, name: str, column: CodedText) -> Iterator[tuple[int, Feature]]:
        other = Feature(name, "other")
        if other in self._places:
            return
        features = [Feature(name, "value", value) for value in column.levels]
        unknown = [code for code, feature in enumerate(features) if feature not in self._places]
        if not unknown:
            return
        first = np.zeros(len(features) + 1, dtype=np.int64)  # the last is that of code -1
        # Written from the last row to the first: the first row of each code is what stays.
        first[column.codes[::-1]] = np.arange(len(column.codes))[::-1]
        unknown.sort(key=lambda code: int(first[code]))
        room = self.max_categories - self._n_values[name]
        for code in unknown[:room]:
            yield int(first[code]), features[code]
        if len(unknown) > room:
            yield int(first[unknown[room]]), other

    def _add(self, feature: Feature) -> None:
        self._places[feature] = len(self._features)
        self._features.append(feature)
        self._n_values[feature.column] += feature.role == "value"

    def _spread(self, name: str, column: CodedText, X: NDArray[np.float64]) -> None:
        other = self._places.get(Feature(name, "other"), -1)
        places = [self._places.get(Feature(name, "value", v), other) for v in column.levels]
        # Code -1, an empty cell, finds the last one.
        places.append(self._places.get(Feature(name, "missing"), -1))
        place = np.array(places)[column.codes]
        rows = np.flatnonzero(place >= 0)
        X[rows, place[rows]] = 1.0

    def _scale(
        self, name: str, column: NDArray[np.float64], X: NDArray[np.float64], learn: bool
    ) -> None:
        place = self._places.get(Feature(name, "number"))
        if place is None:  # not one row has been learned from
            return
        statistics = self._statistics[self._line_of[name]]
        if learn:
            slowest = -math.expm1(-math.log(2) / self.half_life)
            scale_and_learn(column, statistics, slowest, TAILS[self.tails], X, place)
        else:
            scale_only(column, statistics, TAILS[self.tails], X, place)
        missing = self._places.get(Feature(name, "missing"))
        if missing is not None:
            X[:, missing] = ~np.isfinite(column)
