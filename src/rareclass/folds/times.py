"""Times of rows, as numbers that can be subtracted: dates, or plain numbers."""

from typing import Any

import narwhals as nw
import numpy as np

from rareclass.errors import InputError
from rareclass.folds.places import one_a_row
from rareclass.labels.two_classes import plain

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
        raise InputError(f"{name} holds True and False, which are no times.", _remedy())
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
            raise InputError(
                f"{name} at row {row} is {plain(value)!r}: no time.", _remedy()
            ) from None
    raise InputError(f"{name} holds values that are no times.", _remedy())


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


def _remedy() -> str:
    return 'Give dates, text such as "2026-03-01T12:00", or numbers of days.'
