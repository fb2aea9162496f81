"""Rows dealt to folds, so that rare rows and then the others are even: by group, or by time."""

import heapq
import re
from typing import Any, NamedTuple

import numpy as np

from rareclass.errors import ErrorKind, counted
from rareclass.labels.spelling import missing_labels, plain, refuse_missing, rows_of_each, unmasked
from rareclass.labels.two_classes import class_position, classes_of, label_column, rarest, with_zone
from rareclass.parameters import is_number

# The fold of rows that every fold learns from, and none scores.
ALWAYS_LEARNED = -1
# Numbers that span more are no days.
_MOST_DAYS = 36_525.0  # a century
# Rows of a day, on average, from which on numbers of more than so many rows are surely days.
_LEAST_A_DAY, _FEW_DAYS = 2.0, 20
# Numbers from here on may be dates such as 20240131.
_FIRST_DATE = 10_000_101
# Numbers of days from 1980 to 2059, and names of columns of times.
_DAYS_SINCE_1970, _DAYS_OF_SPREADSHEETS = (3_652, 32_872), (29_221, 58_441)
_TIME_NAME = re.compile(
    r"(?i:(^|[\W\d_])(t|ts|days?|dates?|times?|timestamp|when|hours?|weeks?|months?|steps?|period)"
    r"($|[\W\d_]))|[a-z](Day|Date|Time|Timestamp|Hour|Week|Step)"
)


def rare_rows(y: Any, pos_label: Any = None) -> np.ndarray:
    """Mask of the rows with the label `pos_label`, or with the one of the fewest rows.

    Among labels of equally few rows the last in their order. Raises `InputError` on one label
    only, a row without one (naming it), or a `pos_label` that does not occur.
    """
    labels = label_column(y, None)
    refuse_missing(labels)
    classes, code = classes_of(labels)
    if len(classes) < 2:
        only = f"the label {plain(classes[0])!r} only" if len(classes) else "no row"
        raise ErrorKind.LABELS.error(
            f"y holds {only}.", "Folds with rare rows need rows of two labels."
        )
    if pos_label is not None:
        return code == class_position(pos_label, classes)
    return code == rarest(classes.tolist(), rows_of_each(code))


def dealt(n_folds: int, seed: int, is_rare: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Number of the fold of each row; rows of a group stay together.

    Groups with the most rare rows come first, each to the fold that has the fewest; those of
    equally many rows are in an order by chance. Groups without rare rows even out the others.
    With at least `n_folds` groups that hold rare rows, each fold gets one.

    `is_rare` and `group`, numbered from 0 on, have one entry a row. O(n + g log g) time for g
    groups.
    """
    n_rare, n_rest, order = _in_order(seed, is_rare, group)
    fold = np.zeros(len(order), dtype=np.int64)
    with_rare, without = np.split(order, [np.count_nonzero(n_rare)])
    heap = [(0, 0, k) for k in range(n_folds)]
    # Rare rows are evened out first, then the others.
    for groups, one, other in ((with_rare, n_rare, n_rest), (without, n_rest, n_rare)):
        for each in groups:
            first, second, k = heap[0]
            fold[each] = k
            heapq.heapreplace(heap, (first + int(one[each]), second + int(other[each]), k))
        heap = [(second, first, k) for first, second, k in heap]
        heapq.heapify(heap)
    return fold[group]


def most_folds(is_rare: np.ndarray, group: np.ndarray) -> int:
    """The most folds that can each hold rows of both classes, groups being kept together.

    A fold needs one group of both classes, or one of rare rows alone and one of others alone:
    ``n_both + min(n_rare_alone, n_rest_alone)``.
    """
    has_rare, has_rest = np.bincount(group, is_rare) > 0, np.bincount(group, ~is_rare) > 0
    both = np.count_nonzero(has_rare & has_rest)
    return int(both + min(np.count_nonzero(~has_rest), np.count_nonzero(~has_rare)))


def dealt_with_both(n_folds: int, seed: int, is_rare: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Deal as `dealt`, each fold with rows of both classes; `n_folds` at most `most_folds`.

    `dealt` where that does so already. Where it leaves a fold without majority rows, each fold is
    begun with what it cannot do without (a group of both classes, or one of either), and the other
    groups are dealt as before: always possible, a little less even.
    """
    fold = dealt(n_folds, seed, is_rare, group)
    if len(np.unique(fold[~is_rare])) == n_folds:
        return fold
    n_rare, n_rest, order = _in_order(seed, is_rare, group)
    both, rare, rest = (
        order[mask[order]] for mask in ((n_rare > 0) & (n_rest > 0), n_rest == 0, n_rare == 0)
    )
    n_pairs = max(n_folds - len(both), 0)
    fold_of = np.full(len(order), -1)
    fold_of[both[:n_folds]] = np.arange(min(len(both), n_folds))
    for begun in (rare[:n_pairs], rest[:n_pairs]):
        fold_of[begun] = np.arange(n_folds - n_pairs, n_folds)
    for count in (n_rare, n_rest):
        begun = np.flatnonzero(fold_of >= 0)
        held = np.bincount(fold_of[begun], count[begun], n_folds)
        heap = [(int(number), k) for k, number in enumerate(held)]
        heapq.heapify(heap)
        for each in order[(fold_of[order] < 0) & (count[order] > 0)]:
            number, k = heap[0]
            fold_of[each] = k
            heapq.heapreplace(heap, (number + int(count[each]), k))
    return fold_of[group]


class _Groups(NamedTuple):
    """Rare rows and others of each group, and the groups, those of the most rare rows first."""

    n_rare: np.ndarray
    n_rest: np.ndarray
    order: np.ndarray


def _in_order(seed: int, is_rare: np.ndarray, group: np.ndarray) -> _Groups:
    n_groups = int(group.max()) + 1
    n_rare = np.bincount(group, is_rare, n_groups)
    n_rest = np.bincount(group, ~is_rare, n_groups)
    by_chance = np.random.default_rng(seed).permutation(n_groups)
    order = by_chance[np.lexsort((-n_rest[by_chance], -n_rare[by_chance]))]
    return _Groups(n_rare, n_rest, order)


def stretches(n_stretches: int, is_rare: np.ndarray, moment: np.ndarray) -> np.ndarray:
    """Cut time into stretches of about as many rare rows; return the number of each row's stretch.

    Rows of a moment stay together. A stretch ends after the moment that gives it its share of the
    rare rows that are left. There are fewer stretches where fewer moments have rare rows, or where
    the last of them has most.

    `is_rare` and `moment`, numbered from 0 on in the order of time, have one entry a row. O(n)
    time.
    """
    return _cut(n_stretches, is_rare, moment, exact=False)


def exactly(n_stretches: int, is_rare: np.ndarray, moment: np.ndarray) -> np.ndarray | None:
    """Cut as `stretches`, into just as many; None where fewer moments than that have rare rows.

    A stretch also ends where each moment of rare rows that is left is needed for a stretch. It ends
    half-way to the next such moment, so that stretches have other rows, too.
    """
    if np.count_nonzero(np.bincount(moment, is_rare)) < n_stretches:
        return None
    return _cut(n_stretches, is_rare, moment, exact=True)


def _cut(n_stretches: int, is_rare: np.ndarray, moment: np.ndarray, exact: bool) -> np.ndarray:
    rare = np.bincount(moment, is_rare)
    moments = np.flatnonzero(rare)
    n_left = n_stretches if exact else min(n_stretches, len(moments))
    ends: list[int] = []
    held, left = 0.0, float(rare.sum())
    for number, each in enumerate(moments[:-1]):
        held += rare[each]
        is_needed = exact and len(moments) - number == n_left
        if n_left > 1 and (held >= left / n_left or is_needed):
            ends.append(int(each + moments[number + 1] - 1) // 2 if exact else int(each))
            left, held, n_left = left - held, 0.0, n_left - 1
    if not exact and not ends and len(moments) > 1:
        ends = [int(moments[-2])]
    return np.searchsorted(ends, moment, side="left")


def group_numbers(values: Any, n_rows: int, name: str = "groups") -> np.ndarray:
    """Number groups as they first appear, from 0 on: what they are called decides no fold.

    Names are read as those of a file (`group_words`). Raises `InputError` on a wrong number of
    values, a missing one or a list (naming its row; `name` is what named the groups). O(n) time.
    """
    array = one_a_row(values, n_rows, name)
    each, number = array.tolist(), dict[Any, int]()
    if array.dtype.kind not in "iufbM":
        from rareclass.tables.reading import group_words  # polars, which takes a while to load

        each = group_words(_cells(array, name), np.arange(n_rows), name).to_list()
    return np.array([number.setdefault(value, len(number)) for value in each], dtype=int)


def _cells(array: np.ndarray, name: str) -> Any:
    """Column of polars with the type that the values have in a data frame."""
    from rareclass.tables.frames import read_frame

    return next(read_frame(array[:, None]).columns).cells.alias(name)


def moments(time: Any, n_rows: int) -> np.ndarray:
    """Number times by their order, from 0 on; see `read_times`. O(n log n) time."""
    return np.unique(read_times(time, n_rows), return_inverse=True)[1]


def one_a_row(values: Any, n_rows: int, name: str) -> np.ndarray:
    """Return the values as an array of one a row, none of them missing."""
    array = np.asarray(unmasked(values))
    if array.shape != (n_rows,):
        fault = f"{name} has the shape {array.shape} and X {counted(n_rows, 'row')}."
        raise ErrorKind.SHAPE.error(fault, "Give one value a row.", column=name)
    for row in missing_labels(array)[:1].tolist():
        fault, remedy = f"{name} has no value at row {row}.", "Fill it in, or leave the row out."
        raise ErrorKind.CELL.error(fault, remedy, column=name, row=row)
    return array


def read_times(time: Any, n_rows: int) -> np.ndarray:
    """Times as datetime64 in microseconds, or as float64 where they are numbers.

    Dates of numpy, pandas, polars and datetime, and text that a column of times in a file may hold,
    are dates; those with a zone count by their own clock. Text that is numbers throughout is
    numbers; numbers such as 20240131 are dates. Warns where days may be before months or after
    them. Raises `InputError` naming the row of a value that is missing or no time.
    """
    array = one_a_row(with_zone(time), n_rows, "time")
    if array.dtype.kind == "M":
        return array.astype("M8[us]")
    if array.dtype.kind in "iuf" and not (n_rows and array.min() >= _FIRST_DATE):
        return array.astype(np.float64)
    # Not at the top: polars takes a while to load, and other folds do without.
    from rareclass.tables.cells import is_text_type
    from rareclass.tables.reading import times_of
    from rareclass.tables.text_columns import warn_of_two_ways

    cells = _cells(array, "time")
    times = times_of(cells, np.arange(n_rows), "")
    if is_text_type(cells.dtype):
        warn_of_two_ways(cells)
    return times


def day_of(time: np.ndarray) -> np.ndarray:
    """Return the day of each time, as a date or a whole number."""
    return time.astype("M8[D]") if time.dtype.kind == "M" else np.floor(time).astype(np.int64)


def days_of(time: np.ndarray) -> np.ndarray:
    """Number of the day of each time, from 0 on, only days that occur; numbers are in days."""
    return np.unique(day_of(time), return_inverse=True)[1]


def are_days(time: np.ndarray) -> bool:
    """Say whether times are dates, or numbers that may be days.

    Seconds span more than a century of days, or hardly two are of one. Numbers of which hardly two
    are of one day are days where all are of the years 1980 to 2059, since 1970 or by a spreadsheet.
    """
    if time.dtype.kind == "M" or not len(time):
        return True
    if len(time) <= _FEW_DAYS or len(time) >= _LEAST_A_DAY * len(np.unique(day_of(time))):
        return float(np.ptp(time)) <= _MOST_DAYS
    return bool(((time >= _DAYS_SINCE_1970[0]) & (time < _DAYS_OF_SPREADSHEETS[1])).all())


def check_days(time: np.ndarray, option: str, column: str) -> None:
    """Refuse numbers that are no days: those of `are_days`, and an age.

    Numbers are days where their column is called so, where they are days since 1970, or where they
    never fall from row to row. Dates are what they are.
    """
    if time.dtype.kind == "M":
        return
    if not are_days(time):
        n_days, years = len(np.unique(day_of(time))), f"{np.ptp(time) / 365.25:,.0f} years"
        raise ErrorKind.SETTING.error(
            f"{option}: its numbers are taken as days: {n_days:,} different ones in {len(time):,} "
            f"rows, over {years}.",
            "Give dates, or a column of days: seconds divided by 86,400, milliseconds by "
            "86,400,000.",
            column=column,
        )
    if _TIME_NAME.search(column) is not None or len(time) < 2 or (np.diff(time) >= 0).all():
        return
    low, high = _DAYS_SINCE_1970
    if not ((time >= low) & (time < high)).all():
        raise ErrorKind.SETTING.error(
            f"{option}: its numbers are not days: they rise and fall from row to row, are not "
            "counted from 1970, and the column is not called a time.",
            "Give a column of dates, or of days as numbers with the rows in their order.",
            column=column,
        )


def read_span(name: str, value: Any, time: np.ndarray) -> Any:
    """A length of time that can be added to times: a timedelta for dates, else a number.

    A plain number beside dates is so many days. Raises `ValueError` on what is no length of time,
    or one below 0.
    """
    is_date = time.dtype.kind == "M"
    number = is_number(value, -np.inf, np.inf, "[]")
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
        raise ErrorKind.SETTING.error(
            f"{name}={value!r} must be a length of time of at least 0: a number (of days, where "
            "time is dates), or a timedelta where time is dates."
        ) from None
    return span
