"""Columns of times and of costs beside the rows of a model."""

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, setting
from rareclass.tables.cells import is_empty, shown
from rareclass.tables.dates import ISO_DAY, read_written, way_of_most
from rareclass.tables.reading import read_strings, typed_dates

# Days a row must share, on average, with others: else the column is no time of days.
_LEAST_A_DAY = 2.0
_FEW_DAYS = 20
# Numbers of days from 1980 to 2059, and names of columns of times.
_DAYS_SINCE_1970 = 3_652, 32_872
_TIME_NAME = re.compile(
    r"(?i:(^|[\W\d_])(t|ts|days?|dates?|times?|timestamp|when|hours?|weeks?|months?|steps?|period)"
    r"($|[\W\d_]))|[a-z](Day|Date|Time|Timestamp|Hour|Week|Step)"
)


def way_of_times(column: pl.Series) -> str | None:
    """Return how the days of a column of times are written (`way_of_most`); None for numbers."""
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        return ISO_DAY
    return way_of_most(_words(column))


def read_moments(column: pl.Series, way: str | None) -> pl.Series:
    """Return the dates that `way` reads, or numbers for None; null where a cell is no such time.

    Times with a zone count by their own clock, as the days of alerts are days of the place where
    rows come from.
    """
    if column.dtype == pl.Date or isinstance(column.dtype, pl.Datetime):
        local = typed_dates(column).local
        return local if way else local.clear(len(column))
    if way:
        return read_written(_words(column), way).local
    numbers = column if column.dtype.is_numeric() else _words(column)
    numbers = numbers.cast(pl.Float64, strict=False)
    return numbers.set(~numbers.is_finite(), None)


def _words(column: pl.Series) -> pl.Series:
    try:
        return read_strings(column)
    except InputError:  # a type of other cells
        return pl.repeat(None, len(column), dtype=pl.String, eager=True)


def times_of(column: pl.Series, rows: NDArray[np.int64], option: str) -> NDArray[Any]:
    """Return when some rows were, as `read_moments` reads them: dates or float64 numbers.

    `rows` are the numbers of the cells in the file, from 1 on. Raises `InputError` at the first
    cell that is empty or no time, naming column, row and value.
    """
    times = read_moments(column, way_of_times(column))
    if times.null_count():
        place = int(times.is_null().arg_max() or 0)
        cell, row = column[place], int(rows[place])
        remedy = "Correct it, or leave the row out: a time is a date, or a number of days."
        message = f"{option} {column.name}: {not_a_time(cell, f' at row {row:,}')}."
        raise ErrorKind.CELL.error(
            message, remedy, column=column.name, row=row, value=None if is_empty(cell) else cell
        )
    return times.to_numpy()


def not_a_time(cell: Any, place: str = "") -> str:
    """Return the fault of a cell of a column of times."""
    return f"{'an empty cell' if is_empty(cell) else shown(cell)}{place} is not a time"


def alert_times(column: pl.Series, rows: NDArray[np.int64]) -> NDArray[Any]:
    """Return `times_of` the column that --time names, checked by `check_days`."""
    time = times_of(column, rows, setting("time"))
    check_days(time, setting("time", column.name), column.name)
    return time


def check_days(time: NDArray[Any], option: str, column: str) -> None:
    """Refuse times of which hardly two are of one day, as seconds, and numbers that are no days.

    Numbers are days where their column is called so, where they are days since 1970, or where they
    never fall from row to row. An age is none of these.
    """
    n_rows, n_days = len(time), len(np.unique(day_of(time)))
    if n_rows > _FEW_DAYS and n_rows < _LEAST_A_DAY * n_days:
        numbers = "" if time.dtype.kind == "M" else " Numbers are taken as days."
        raise ErrorKind.SETTING.error(
            f"{option}: {n_days:,} different days in {n_rows:,} rows.{numbers}",
            "Give dates, or a column of days: seconds divided by 86,400.",
            column=column,
        )
    is_named = _TIME_NAME.search(column) is not None
    if time.dtype.kind == "M" or is_named or n_rows < 2 or (np.diff(time) >= 0).all():
        return
    low, high = _DAYS_SINCE_1970
    if not ((time >= low) & (time < high)).all():
        raise ErrorKind.SETTING.error(
            f"{option}: its numbers are not days: they rise and fall from row to row, are not "
            "counted from 1970, and the column is not called a time.",
            "Give a column of dates, or of days as numbers with the rows in their order.",
            column=column,
        )


def day_of(time: NDArray[Any]) -> NDArray[Any]:
    """Return the day of each time, as a date or a whole number."""
    return time.astype("M8[D]") if time.dtype.kind == "M" else np.floor(time).astype(np.int64)


def costs_of(column: pl.Series, rows: NDArray[np.int64], option: str) -> NDArray[np.float64]:
    """Return what some rows cost; `rows` are the numbers of the cells in the file, from 1 on.

    Raises `InputError` at the first cell that is no finite number of at least 0.
    """
    costs = column.cast(pl.Float64, strict=False).to_numpy()
    bad = np.flatnonzero(~(np.isfinite(costs) & (costs >= 0)))
    if len(bad):
        row, cell = int(rows[bad[0]]), column[int(bad[0])]
        what = "an empty cell" if cell is None or cell == "" else shown(cell)
        raise ErrorKind.CELL.error(
            f"{option}: {what} at row {row:,} is not a cost.",
            "Costs are finite numbers of at least 0.",
            column=column.name,
            row=row,
        )
    return costs
