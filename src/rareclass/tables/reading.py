"""Reading a column as training read it: the same for files, data frames, requests and streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import Finding, FindingKind, warn
from rareclass.tables import TableWarning
from rareclass.tables.cells import (
    DATE_FORMATS,
    ISO_FORMATS,
    LARGEST_NUMBER,
    TRUTH_SPELLINGS,
    are_plain,
    canonical_words,
    dates_in,
    has_zone,
    is_text_type,
    number_of,
    numbers_in,
    shown,
    without_empty_marks,
    word_of,
    words_of_numbers,
    writable,
    zones_in,
)

ReadsAs = Literal["number", "date", "string"]


@dataclass(frozen=True)
class CellReading:
    """How the cells of a column are read, in training and ever after.

    `date_format` and `number_format`: how text cells are written; None for typed dates and plain
    numbers. `zone`: the time zone in whose clock dates are read, "" where they have none. `marks`:
    text such as NA is empty. `truth`: training had truth values; as words, nothing else.
    """

    reads_as: ReadsAs
    date_format: str | None = None
    number_format: str | None = None
    zone: str = ""
    marks: bool = True
    truth: bool = False


def read_cells(cells: pl.Series, reading: CellReading, first_row: int) -> pl.Series:
    """Return the cells as float64, as dates with the time of day, or as words.

    `first_row` is the row of the first cell in the file, for messages. Raises `InputError` at the
    first cell that does not fit, naming column, row and value.
    """
    if reading.reads_as == "number":
        return read_numbers(cells, first_row, reading)
    if reading.reads_as == "date":
        return read_dates(cells, reading.date_format, first_row, reading.zone)
    return read_strings(cells, reading)


_NUMBERS, _WORDS = CellReading("number"), CellReading("string")


def read_numbers(cells: pl.Series, first_row: int, reading: CellReading = _NUMBERS) -> pl.Series:
    """Return the cells as float64: durations and times of day in seconds, truth values 0 and 1.

    Raises `InputError` at the first cell that is text or infinite, naming column, row and value.
    """
    if cells.dtype.is_float() or cells.dtype.is_integer():
        numbers = cells if cells.dtype == pl.Float64 else cells.cast(pl.Float64)
        if are_plain(numbers):
            return numbers
    elif is_text_type(cells.dtype):
        cells = without_empty_marks(cells.cast(pl.String))
        truth = TRUTH_SPELLINGS if reading.truth else {}
        numbers = numbers_in(cells, reading.number_format, truth)
    elif cells.dtype in (pl.Duration, pl.Time):
        numbers = cells.cast(pl.Duration("ns")).dt.total_seconds(fractional=True)
    elif _is_of_other_types(cells.dtype) or cells.dtype.is_temporal():
        raise _wrong_type(cells, "numbers")
    else:
        numbers = cells.cast(pl.Float64, strict=False)
    is_text = numbers.is_null() & cells.is_not_null()
    if is_text.any():
        raise _wrong_cell(cells, is_text, first_row, "holds text", "numbers")
    numbers = numbers.fill_nan(None)
    too_large = (numbers.abs() > LARGEST_NUMBER).fill_null(False)
    if too_large.any():
        position = int(too_large.arg_max() or 0)
        raise InputError(
            f"Column {cells.name!r} holds {numbers[position]} at row {first_row + position}: "
            "infinite, or too large to compute with.",
            "Correct that cell or leave it empty; --drop leaves the whole column out of a fit.",
            ErrorKind.CELL,
            column=cells.name,
            row=first_row + position,
            value=numbers[position],
        )
    return numbers


def read_dates(
    cells: pl.Series, date_format: str | None, first_row: int, zone: str = ""
) -> pl.Series:
    """Return the cells as dates with the time of day, by the clock of the zone of training.

    Dates with a zone where training had none are refused: their hours are those of another clock.
    Raises `InputError` at the first cell that is not such a date, naming column, row and value.
    """
    if cells.dtype == pl.Date:
        return cells.cast(pl.Datetime("us"))
    if isinstance(cells.dtype, pl.Datetime):
        return _by_the_clock_of(cells.cast(pl.Datetime("us", cells.dtype.time_zone)), zone)
    if not is_text_type(cells.dtype):
        raise _wrong_type(cells, "dates")
    cells = without_empty_marks(cells.cast(pl.String))
    if date_format is None:
        # Dates by type in training, as text now: the way most of the first are written.
        first = cells.drop_nulls().head(100)
        date_format = min(DATE_FORMATS, key=lambda way: dates_in(first, way).null_count())
    dates = dates_in(cells, date_format)
    wrong = dates.is_null() & cells.is_not_null()
    if wrong.any():
        raise _wrong_cell(cells, wrong, first_row, "holds", f"dates written as {date_format}")
    may_be_zoned = date_format in ISO_FORMATS or has_zone(date_format)
    zoned = zones_in(cells) if may_be_zoned else pl.Series([False])
    if zone:
        return _by_the_clock_of(dates.dt.replace_time_zone("UTC") if zoned.any() else dates, zone)
    if zoned.any():
        raise _other_clock(cells, first_row + int(zoned.arg_max() or 0))
    return dates


def read_strings(cells: pl.Series, reading: CellReading = _WORDS) -> pl.Series:
    """Return the cells as words, one spelling for each value; null where empty."""
    if is_text_type(cells.dtype):
        words = canonical_words(cells.cast(pl.String), reading.marks)
    elif _is_of_other_types(cells.dtype) or cells.dtype == pl.Duration:
        raise _wrong_type(cells, "words")
    else:
        words = words_of_numbers(cells)
    if not reading.truth:
        return words
    truth = numbers_in(words, truth=TRUTH_SPELLINGS)
    spelt = truth.replace_strict({1.0: "true", 0.0: "false"}, default=None, return_dtype=pl.String)
    return spelt.zip_with(spelt.is_not_null(), words).alias(cells.name)


def _by_the_clock_of(dates: pl.Series, zone: str) -> pl.Series:
    """Dates without a zone, as the clock of the zone of training shows them."""
    assert isinstance(dates.dtype, pl.Datetime)
    own = dates.dtype.time_zone
    if own is None and not zone:
        return dates
    if own is None:
        warn(
            f"column {dates.name!r} has times without a zone; they are taken for those of {zone}, "
            "as the model was trained on.",
            TableWarning,
            Finding(FindingKind.NO_ZONE, {"column": dates.name, "zone": zone}),
        )
        return dates
    if not zone:
        raise _other_clock(dates, None)
    return dates.dt.convert_time_zone(zone).dt.replace_time_zone(None)


def _other_clock(cells: pl.Series, row: int | None) -> InputError:
    where = "" if row is None else f" at row {row}"
    return InputError(
        f"Column {cells.name!r} holds times with a zone{where}, where the model was trained on "
        "times without one.",
        "Write them by the clock of the training file, without a zone.",
        ErrorKind.CELL,
        column=cells.name,
        row=row,
    )


def _is_of_other_types(dtype: pl.DataType) -> bool:
    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def _wrong_cell(
    cells: pl.Series, wrong: pl.Series, first_row: int, holds: str, expected: str
) -> InputError:
    position = int(wrong.arg_max() or 0)
    return InputError(
        f"Column {cells.name!r} {holds} {shown(cells[position])} at row {first_row + position}, "
        f"where the model was trained on {expected}.",
        "Correct that cell, or leave it empty if the value is not known.",
        ErrorKind.CELL,
        column=cells.name,
        row=first_row + position,
        value=cells[position],
    )


def _wrong_type(cells: pl.Series, expected: str) -> InputError:
    return InputError(
        f"Column {cells.name!r} holds cells of type {cells.dtype}, where the model was trained "
        f"on {expected}.",
        "Write the column as it was in the training file.",
        ErrorKind.CELL,
        column=cells.name,
    )


Cells = NDArray[Any]
Mask = NDArray[np.bool_]
_UNREADABLE = object()


class ReadCells(NamedTuple):
    """Cells that were read, and which of them could not be: those are empty in `values`."""

    values: NDArray[Any]
    wrong: Mask


def read_raw_numbers(cells: Cells, number_format: str | None = None) -> ReadCells:
    """Read cells as float64, NaN where empty; truth values are 0 and 1.

    Examples
    --------
    >>> read_raw_numbers(np.array(["1.5", " NA", True, "abc"], dtype=object)).values
    array([1.5, nan, 1. , nan])
    """
    if cells.dtype != object:
        return ReadCells(cells.astype(np.float64, copy=False), np.zeros(len(cells), np.bool_))
    try:
        text = pl.Series(cells.tolist(), dtype=pl.String)
    except (TypeError, OverflowError, UnicodeEncodeError):
        pass
    else:
        return _numbers_of_text(text, number_format)
    values = np.full(len(cells), np.nan)
    wrong = np.zeros(len(cells), dtype=np.bool_)
    is_text = np.fromiter((isinstance(cell, str) for cell in cells), np.bool_, len(cells))
    if is_text.any():
        words = pl.Series(list(map(writable, cells[is_text])), dtype=pl.String)
        values[is_text], wrong[is_text] = _numbers_of_text(words, number_format)
    values[~is_text], wrong[~is_text] = _numbers_of_objects(cells[~is_text])
    return ReadCells(values, wrong)


def read_words(cells: Cells) -> ReadCells:
    """Read cells as words, None where empty; wrong is a list or a dictionary.

    Examples
    --------
    >>> read_words(np.array([" DE", "?", True, 3.0, "3.00"], dtype=object)).values.tolist()
    ['DE', None, 'true', '3', '3']
    """
    words, wrong = read_distinct(cells, word_of)
    words[wrong] = None
    return ReadCells(words, wrong)


def text_of(cells: Cells) -> pl.Series:
    """Write cells as the text that a file would have, for `CellProfile`."""
    words, wrong = read_words(cells)
    words[wrong] = [str(cell) for cell in cells[wrong]]
    return pl.Series(words.tolist(), dtype=pl.String)


def read_distinct(cells: Cells, read: Callable[[Any], Any]) -> ReadCells:
    """Read each distinct cell once; `read` raises ValueError for a cell that it cannot take."""

    def attempt(cell: Any) -> Any:
        try:
            return read(cell)
        except ValueError:
            return _UNREADABLE

    listed = cells.tolist()
    types = set(map(type, listed)) - {type(None)}
    readings = np.empty(len(listed), dtype=object)
    if len(types) == 1 and types <= {str, float, int, bool}:
        known = {cell: attempt(cell) for cell in set(listed)}
        readings[:] = list(map(known.__getitem__, listed))
        all_read = _UNREADABLE not in known.values()
    else:
        # 1, 1.0 and True would be one key of a dictionary, and lists are none.
        readings[:] = list(map(attempt, listed))
        all_read = False
    if all_read:
        return ReadCells(readings, np.zeros(len(listed), dtype=np.bool_))
    wrong = (reading is _UNREADABLE for reading in readings)
    return ReadCells(readings, np.fromiter(wrong, np.bool_, len(listed)))


def _numbers_of_text(text: pl.Series, number_format: str | None) -> ReadCells:
    numbers = text.cast(pl.Float64, strict=False)
    wrong = np.zeros(len(text), dtype=np.bool_)
    if number_format is None and numbers.null_count() == text.null_count():
        return ReadCells(np.array(numbers.to_numpy(), dtype=np.float64), wrong)
    words = without_empty_marks(text)
    numbers = numbers_in(words, number_format)
    wrong = (numbers.is_null() & words.is_not_null()).to_numpy()
    # A copy: the buffers of polars are read-only.
    return ReadCells(np.array(numbers.to_numpy(), dtype=np.float64), wrong)


def _numbers_of_objects(cells: Cells) -> ReadCells:
    if set(map(type, cells)) <= {float, int, bool, type(None)}:
        try:
            return ReadCells(cells.astype(np.float64), np.zeros(len(cells), dtype=np.bool_))
        except OverflowError:
            pass
    numbers = list(map(number_of, cells))
    wrong = np.fromiter((number is None for number in numbers), np.bool_, len(numbers))
    return ReadCells(np.array(numbers, dtype=np.float64), wrong)
