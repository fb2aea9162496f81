"""Columns beside those that a model learns from: when a row was, and what it costs."""

from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.folds.times import read_times
from rareclass.tables.cells import CellProfile, read_dates, shown

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
        if profile.date_formats and profile.n_present:
            column = read_dates(column, profile.date_formats[0], 1)
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
