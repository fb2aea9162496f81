"""The calendar days of cells of a stream, each read on its own."""

import datetime as dt
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.stream.moving_threshold import NO_DAY
from rareclass.tables.raw_cells import is_empty

_EPOCH = dt.date(1970, 1, 1).toordinal()
_LARGEST = 2.0**53


def days_of_cells(cells: NDArray[Any]) -> NDArray[np.int64]:
    """Number of the day of each cell; `NO_DAY` where it is empty or no time.

    Dates and text in ISO form, ``2026-03-01`` or ``2026-03-01T12:00``, count by their own clock,
    in days since 1970; a number is a number of days.

    >>> days_of_cells(np.array(["1970-01-02T23:59", "3.5", None], object)).tolist()[:2]
    [1, 3]
    """
    if cells.dtype != object:
        return np.array([_day_of_number(value) for value in cells.tolist()], np.int64)
    known: dict[Any, int] = {}
    found = np.empty(len(cells), np.int64)
    for row, cell in enumerate(cells.tolist()):
        if isinstance(cell, (list, dict)):
            found[row] = NO_DAY
            continue
        key = cell[:10] if isinstance(cell, str) and _begins_with_date(cell) else cell
        day = known.get(key)
        if day is None:
            day = known[key] = _day(key)
        found[row] = day
    return found


def _begins_with_date(text: str) -> bool:
    return len(text) > 10 and text[4:5] == "-" and text[10] in "T "


def _day(cell: Any) -> int:
    if isinstance(cell, dt.date):  # a datetime is one too
        return cell.toordinal() - _EPOCH
    if is_empty(cell) or isinstance(cell, bool):
        return NO_DAY
    if isinstance(cell, str):
        text = cell.strip()
        try:
            return dt.datetime.fromisoformat(text).toordinal() - _EPOCH
        except ValueError:
            pass
    try:
        return _day_of_number(float(cell))
    except (TypeError, ValueError):
        return NO_DAY


def _day_of_number(value: float) -> int:
    return math.floor(value) if abs(value) < _LARGEST else NO_DAY
