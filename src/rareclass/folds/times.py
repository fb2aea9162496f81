"""One value a row, of groups or of times: as its place among the distinct ones, or as a number."""

from typing import Any

import narwhals as nw
import numpy as np

from rareclass.errors import ErrorKind, InputError, counted
from rareclass.labels.two_classes import missing_labels, plain


def places(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Number groups or times by their order, from 0 on; `name` is what errors call them.

    Raises `InputError` on a wrong number of values, a missing one (naming its row), or values of
    several types. O(n log n) time.
    """
    array = one_a_row(values, n_rows, name)
    try:
        return np.unique(array, return_inverse=True)[1]
    except TypeError:
        raise InputError(
            f"{name} holds values of several types, which have no order.",
            "Make them all numbers, words or dates.",
            ErrorKind.CELL,
            column=name,
        ) from None


def one_a_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Return the values as an array of one a row, none of them missing."""
    array = np.asarray(values)
    if array.shape != (n_rows,):
        raise InputError(
            f"{name} has the shape {array.shape} and X {counted(n_rows, 'row')}.",
            "Give one value a row.",
            ErrorKind.SHAPE,
            column=name,
        )
    is_time = array.dtype.kind in "mM"
    missing = np.flatnonzero(np.isnat(array)) if is_time else missing_labels(array)
    if len(missing):
        raise InputError(
            f"{name} has no value at row {missing[0]}.",
            "Fill it in, or leave the row out.",
            ErrorKind.CELL,
            column=name,
            row=int(missing[0]),
        )
    return array


_DAY = np.timedelta64(1, "D")


def read_times(time: Any, n_rows: int, name: str = "time") -> np.ndarray:
    """Times as datetime64 in microseconds, or as float64 where they are numbers.

    Dates of numpy, pandas, polars and datetime, and text such as "2026-03-01" or
    "2026-03-01T12:00", are dates; those with a zone count by their own clock. Text that is numbers
    throughout is numbers. Raises `InputError` naming the row of a value that is missing or no time.
    """
    array = one_a_row(_by_its_clock(time), n_rows, name)
    if array.dtype.kind == "U" or all(isinstance(value, str) for value in array[:1]):
        array = _numbers(array)
    if array.dtype.kind == "M":
        return array.astype("M8[us]")
    if array.dtype.kind in "iuf":
        return array.astype(np.float64)
    if array.dtype.kind == "b":
        raise _no_times(name, "holds True and False, which are no times")
    try:
        if array.dtype.kind == "U" and not np.strings.isdigit(array).any():
            moments = array.astype("M8[us]")
            if not np.isnat(moments).any():
                return moments
        return np.array([_moment(value) for value in array], dtype="M8[us]")
    except (ValueError, TypeError):
        pass
    for row, value in enumerate(array):
        try:
            _moment(value)
        except (ValueError, TypeError):
            raise _no_times(name, f"at row {row} is {plain(value)!r}: no time", row) from None
    raise _no_times(name, "holds values that are no times")


def days_of(time: np.ndarray) -> np.ndarray:
    """Number of the day of each time, from 0 on, only days that occur; numbers are in days."""
    days = time.astype("M8[D]") if time.dtype.kind == "M" else np.floor(time)
    return np.unique(days, return_inverse=True)[1]


def read_span(name: str, value: Any, time: np.ndarray) -> Any:
    """A length of time that can be added to times: a timedelta for dates, else a number.

    A plain number beside dates is so many days. Raises `ValueError` on what is no length of time,
    or one below 0.
    """
    is_date = time.dtype.kind == "M"
    number = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(
        value, bool
    )
    try:
        if number and is_date:
            span: Any = np.timedelta64(round(float(value) * 86_400_000_000), "us")
        elif number:
            span = float(value)
        elif is_date:
            span = np.timedelta64(value).astype("m8[us]")
        else:
            raise TypeError
        if span < 0 * span or span != span:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"{name}={value!r} must be a length of time of at least 0: a number (of days, where "
            "time is dates), or a timedelta beside dates."
        ) from None
    return span


def _by_its_clock(time: Any) -> Any:
    """A column of polars or pyarrow with a zone as what its own clock shows; others as they are."""
    column = nw.from_native(time, series_only=True, pass_through=True)
    if isinstance(column, nw.Series) and getattr(column.dtype, "time_zone", None) is not None:
        return column.dt.replace_time_zone(None).to_numpy()
    return time


def _numbers(text: np.ndarray) -> np.ndarray:
    """Text as numbers where all of it is: numpy would take "12" for a year."""
    try:
        numbers = np.array([float(value) for value in text])
    except (TypeError, ValueError):
        return text
    return numbers if np.isfinite(numbers).all() else text


def _moment(value: Any) -> np.datetime64:
    """One value of a column of objects."""
    if isinstance(value, (bool, int, float, np.number)):
        raise TypeError(value)
    if getattr(value, "tzinfo", None) is not None:
        value = value.replace(tzinfo=None)
    moment = np.datetime64(value).astype("M8[us]")
    if np.isnat(moment) or (isinstance(value, str) and value.strip().isdigit()):
        raise ValueError(value)  # no time at all, or a number among dates
    return moment


def _no_times(name: str, what: str, row: int | None = None) -> InputError:
    remedy = 'Give dates, text such as "2026-03-01T12:00", or numbers of days.'
    return InputError(f"{name} {what}.", remedy, ErrorKind.CELL, column=name, row=row)
