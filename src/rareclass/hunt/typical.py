"""What is typical of a ball's rows, in the units and values of the table."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.hunt import Coordinate
from rareclass.hunt.hunting import Hunt
from rareclass.hunt.table import HuntTable

if TYPE_CHECKING:
    from rareclass.hyperball.description import Description

_SIZES = ("center", "inside_low", "inside_high", "outside_low", "outside_high")
_EMPTY = "(empty)"
# What is left of seven after a subtraction and a product.
_DIGITS = 6


class TypicalValue(NamedTuple):
    """The value of a category that the inside holds more often than the outside."""

    ball: int
    column: str
    value: str
    inside: float  # shares of the rows inside and outside that hold it
    outside: float


def describe_in_units(hunt: Hunt) -> "Description":
    """Return the description of numbers in the units of the table, rows counted from 1.

    Coordinates of categories and text are left out: `typical_values` says more of them than a
    range from 0 to 1 does.
    """
    description = hunt.model.describe()
    features = {feature.name: feature for feature in hunt.encoder.coordinates_}
    table = [
        _in_units(row, features[row["feature"]])
        for row in description.table
        if features[row["feature"]].is_number
    ]
    return replace(
        description,
        table=table,
        nearest_labelled=[near._replace(row=near.row + 1) for near in description.nearest_labelled],
        nearest_unlabelled=[
            near._replace(row=near.row + 1) for near in description.nearest_unlabelled
        ],
    )


def typical_values(table: HuntTable, hunt: Hunt) -> list[TypicalValue]:
    """Return, for each ball and category, the value that tells its inside best.

    Those that tell the inside from the outside best come first.
    """
    names = [
        column.name
        for column in table.columns
        if column.is_used and column.kind in ("category", "high-cardinality category", "boolean")
    ]
    found = [
        _typical_value(number, table.frame[name], rows)
        for number, rows in enumerate(hunt.members)
        for name in names
    ]
    return sorted(found, key=lambda one: (one.ball, one.outside - one.inside))


def text_of(description: "Description", values: Sequence[TypicalValue]) -> str:
    """Return the description and the typical values as one text."""
    lines = [str(description).rstrip("\n")]
    for number, summary in enumerate(description.summaries):
        own = [one for one in values if one.ball == number]
        if own:
            lines.append(f"\nTypical values in the ball of {summary.name}:")
        lines += [
            f"  {one.column} = {one.value}: {one.inside:.0%} inside, {one.outside:.0%} outside"
            for one in own
        ]
    return "\n".join(lines) + "\n"


def _in_units(row: dict[str, Any], feature: Coordinate) -> dict[str, Any]:
    return row | {name: _in_unit(row[name], feature) for name in _SIZES}


def _in_unit(coordinate: float, feature: Coordinate) -> float:
    """The number that a coordinate stands for, without digits that float32 has made up."""
    value, size = coordinate * feature.unit + feature.zero, abs(coordinate * feature.unit)
    size = max(size, abs(feature.zero))
    if not 0.0 < size < math.inf:
        return value
    return round(value, _DIGITS - math.ceil(math.log10(size))) + 0.0  # no -0.0


def _typical_value(number: int, cells: pl.Series, rows: NDArray[np.int64]) -> TypicalValue:
    """The value whose share inside exceeds its share outside most."""
    if cells.dtype.is_float():
        cells = cells.cast(pl.Int64)  # 0 and 1
    words = cells.cast(pl.String).fill_null(_EMPTY).alias("value")
    inside = words[rows].value_counts(name="inside")
    counts = inside.join(words.value_counts(name="all"), on="value").sort("value")
    n_inside, n_all = counts["inside"].to_numpy(), counts["all"].to_numpy()
    share = n_inside / len(rows)
    share_outside = (n_all - n_inside) / max(len(words) - len(rows), 1)
    best = int(np.argmax(share - share_outside))
    return TypicalValue(
        number, cells.name, counts["value"][best], float(share[best]), float(share_outside[best])
    )
