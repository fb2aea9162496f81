"""Columns of times and of costs beside the rows of a model."""

import re
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, setting
from rareclass.tables.cells import shown
from rareclass.tables.reading import times_of

# Days a row must share, on average, with others: else the column is no time of days.
_LEAST_A_DAY = 2.0
_FEW_DAYS = 20
# Numbers of days from 1980 to 2059, and names of columns of times.
_DAYS_SINCE_1970 = 3_652, 32_872
_TIME_NAME = re.compile(
    r"(?i:(^|[\W\d_])(t|ts|days?|dates?|times?|timestamp|when|hours?|weeks?|months?|steps?|period)"
    r"($|[\W\d_]))|[a-z](Day|Date|Time|Timestamp|Hour|Week|Step)"
)


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
