"""A rule for the threshold of a model, and the columns of times and costs that it needs."""

from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.decide.constraints import AtMostAlertsADay
from rareclass.decide.threshold_rule import ChosenThreshold, ThresholdRule
from rareclass.errors import ErrorKind, InputError
from rareclass.folds.dealing import read_times
from rareclass.tables.cells import shown
from rareclass.tables.reading import read_dates
from rareclass.tables.text_columns import CellProfile, reading_of_text

# Days a row must share, on average, with others: else the column is no time of days.
_LEAST_A_DAY = 2.0
_FEW_DAYS = 20


def times_of(column: pl.Series, rows: NDArray[np.int64], option: str) -> NDArray[Any]:
    """When some rows were, as `read_times` has it; dates may be written as those of a table may.

    `rows` are the numbers of the cells in the file, from 1 on. Raises `InputError` at the first
    cell that is empty or no time, naming column, row and value.
    """
    is_empty = column.is_null()
    if column.dtype == pl.String:
        profile = CellProfile()
        profile.add(column, 1)
        reading = reading_of_text(profile).reading
        if reading.reads_as == "date":
            column = read_dates(column, reading.date_format, 1, reading.zone)
        is_empty |= column.is_null() | (column.cast(pl.String).str.strip_chars() == "")
    elif column.dtype.is_float():
        is_empty |= column.is_nan()
    if is_empty.any():
        row = int(rows[int(is_empty.arg_max() or 0)])
        raise InputError(
            f"{option} {column.name}: the cell at row {row:,} is empty.",
            "Fill it in, or leave the row out.",
            ErrorKind.CELL,
            column=column.name,
            row=row,
        )
    try:
        return read_times(column.to_numpy(), len(column), f"{option} {column.name}")
    except InputError as error:
        raise _at_the_cell(error, column, rows, option) from None


def _at_the_cell(
    error: InputError, column: pl.Series, rows: NDArray[np.int64], option: str
) -> InputError:
    """The same error with the row of the file, where one cell is at fault."""
    for row, cell in zip(rows.tolist(), column.to_list(), strict=True):
        try:
            read_times([cell], 1)
        except InputError:
            return InputError(
                f"{option} {column.name}: {shown(cell)} at row {row:,} is no time.",
                error.remedy,
                ErrorKind.CELL,
                column=column.name,
                row=row,
            )
    return error


def check_days(time: NDArray[Any], option: str) -> None:
    """Refuse times of which hardly two are of one day: numbers of seconds, most often."""
    n_rows, n_days = len(time), len(np.unique(day_of(time)))
    if n_rows > _FEW_DAYS and n_rows < _LEAST_A_DAY * n_days:
        numbers = "" if time.dtype.kind == "M" else " Numbers are taken as days."
        raise InputError(
            f"{option}: {n_days:,} different days in {n_rows:,} rows.{numbers}",
            "Give dates, or a column of days: seconds divided by 86,400.",
            ErrorKind.SETTING,
        )


def day_of(time: NDArray[Any]) -> NDArray[Any]:
    """The day of each time, as a date or a whole number."""
    return time.astype("M8[D]") if time.dtype.kind == "M" else np.floor(time).astype(np.int64)


def costs_of(column: pl.Series, rows: NDArray[np.int64], option: str) -> NDArray[np.float64]:
    """What some rows cost; `rows` are the numbers of the cells in the file, from 1 on.

    Raises `InputError` at the first cell that is no finite number of at least 0.
    """
    costs = column.cast(pl.Float64, strict=False).to_numpy()
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        row, cell = int(rows[bad[0]]), column[int(bad[0])]
        what = "an empty cell" if cell is None or cell == "" else shown(cell)
        raise InputError(
            f"{option}: {what} at row {row:,} is no cost.",
            "Costs are finite numbers of at least 0.",
            ErrorKind.CELL,
            column=column.name,
            row=row,
        )
    return costs


class ScoredRows(NamedTuple):
    """Rows with scores by functions that did not learn from them."""

    y: NDArray[np.int16]  # codes
    scores: NDArray[np.float64]
    weight: NDArray[np.float64] | None  # how many rows each stands for
    places: NDArray[np.int64] | None = None  # where they stand in the table


@dataclass(frozen=True)
class DecisionRule:
    """A `ThresholdRule` whose costs are names of columns."""

    rule: ThresholdRule

    @property
    def columns(self) -> list[str]:
        """Columns with a cost for every row."""
        constraint = self.rule.constraint
        values = [getattr(constraint, each.name) for each in fields(constraint)]  # type: ignore[arg-type]
        return list(dict.fromkeys(value for value in values if isinstance(value, str)))

    @property
    def needs_time(self) -> bool:
        """Say whether it speaks of days."""
        return isinstance(self.rule.constraint, AtMostAlertsADay)

    def choose(
        self,
        scored: ScoredRows,
        beside: pl.DataFrame | None = None,
        time: str | None = None,
        numbers: NDArray[np.int64] | None = None,
    ) -> ChosenThreshold:
        """The threshold for these rows.

        `beside` has the columns named, a row for each, and `numbers` which row of the file each is,
        from 1 on. Raises `InputError` where the rule cannot be judged on them.
        """
        costs, moments = None, None
        if beside is not None:
            if numbers is None:
                numbers = np.arange(1, beside.height + 1)
            costs = {
                name: costs_of(beside[name], numbers, f"--cost {name}") for name in self.columns
            }
            if time is not None and self.needs_time:
                moments = times_of(beside[time], numbers, "--time")
                check_days(moments, f"--time {time}")
        return self.rule.choose(
            scored.y == 1, scored.scores, scored.weight, costs=costs, time=moments
        )
