"""Reading a column as training read it: the same for files, data frames, requests and streams."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import InputError, bad_cell
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.tables.cells import (
    LARGEST_NUMBER,
    TRUTH_SPELLINGS,
    are_all_missing,
    are_plain,
    canonical_words,
    is_text_type,
    number_of,
    numbers_in,
    shown,
    type_name,
    without_empty_marks,
    word_of,
    words_of_numbers,
    writable,
)
from rareclass.tables.dates import (
    ISO_DAY,
    DateProfile,
    WrittenDates,
    offsets_of_zone,
    read_written,
    without_zero_dates,
)

ReadsAs = Literal["number", "date", "string"]


@dataclass(frozen=True)
class CellReading:
    """How the cells of a column are read, in training and ever after.

    `date_format` and `number_format`: how text cells are written; None for typed dates and plain
    numbers; a number format ends with the unit, if there is one. `zone`: the time zone in whose
    clock dates are read, "" where they have none. `marks`: text such as NA is empty. `truth`: how
    the truth values of training were spelt, "" where there were none; as words, nothing else.
    """

    reads_as: ReadsAs
    date_format: str | None = None
    number_format: str | None = None
    zone: str = ""
    marks: bool = True
    truth: str = ""


def read_cells(cells: pl.Series, reading: CellReading, first_row: int) -> pl.Series:
    """Return the cells as float64, as dates with the time of day, or as words.

    Cells that are all empty are so whatever their type is: a column without a value may have any.
    `first_row` is the row of the first cell in the file, for messages. Raises `InputError` at the
    first cell that does not fit, naming column, row and value.
    """
    if are_all_missing(cells):
        cells = pl.repeat(None, len(cells), dtype=pl.String, eager=True).alias(cells.name)
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
        raise bad_cell(
            f"Column {cells.name!r} holds {numbers[position]} at row {first_row + position}: "
            "infinite, or too large to compute with.",
            "Correct that cell or leave it empty; --drop leaves the whole column out of a fit.",
            cells.name,
            first_row + position,
            numbers[position],
        )
    return numbers


def read_dates(
    cells: pl.Series, date_format: str | None, first_row: int, zone: str = ""
) -> pl.Series:
    """Return the cells as dates with the time of day, by the clock of the zone of training.

    Dates with a zone where training had none are refused: their hours are those of another clock.
    Raises `InputError` at the first cell that is not such a date, naming column, row and value.
    """
    if cells.dtype == pl.Date or isinstance(cells.dtype, pl.Datetime):
        _check_years(cells, first_row)
        return _by_the_clock_of(_typed_dates(cells), cells, first_row, zone)
    if not is_text_type(cells.dtype):
        raise _wrong_type(cells, "dates")
    cells = without_zero_dates(without_empty_marks(cells.cast(pl.String)))
    written = read_written(cells, date_format or _format_of(cells))
    wrong = written.local.is_null() & cells.is_not_null()
    if wrong.any():
        how = f"dates written as {date_format}" if date_format else "dates"
        raise _wrong_cell(cells, wrong, first_row, "holds", how)
    return _by_the_clock_of(written, cells, first_row, zone)


def _typed_dates(cells: pl.Series) -> WrittenDates:
    zone = cells.dtype.time_zone if isinstance(cells.dtype, pl.Datetime) else None
    local = cells.cast(pl.Datetime("us", zone))
    if zone is None:
        return WrittenDates(local, pl.repeat(None, len(cells), dtype=pl.Int64, eager=True))
    local, utc = local.dt.replace_time_zone(None), local.dt.convert_time_zone("UTC")
    offset = (local - utc.dt.replace_time_zone(None)).dt.total_seconds()
    return WrittenDates(local, offset)


def _format_of(cells: pl.Series) -> str:
    """Find how dates are written that were dates by type in training.

    Raises `InputError` where the cells may be day or month first.
    """
    profile, present = DateProfile(), cells.drop_nulls()
    profile.add(present)
    ways = profile.ways if len(present) else ()
    if len(ways) > 1:
        cell = present[0]
        raise bad_cell(
            f"Column {cells.name!r} holds {shown(cell)}, which may be {' or '.join(ways[:2])}, "
            "where the model was trained on dates.",
            "Write days as 2024-12-31.",
            cells.name,
            value=cell,
        )
    return ways[0] if ways else ISO_DAY


_DAY = 86_400
# Seconds of the years 1 to 9999, as those of Python are.
_FIRST_SECOND, _LAST_SECOND = -62_135_596_800, 253_402_300_799


def _check_years(cells: pl.Series, first_row: int) -> None:
    """Raise `InputError` at a typed date beyond the years 1 to 9999."""
    unit = _DAY
    numbers = cells.to_physical()
    if isinstance(cells.dtype, pl.Datetime):
        numbers = (
            numbers // {"ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}[cells.dtype.time_unit]
        )
        unit = 1
    wrong = ((numbers < _FIRST_SECOND // unit) | (numbers > _LAST_SECOND // unit)).fill_null(False)
    if wrong.any():
        row = first_row + int(wrong.arg_max() or 0)
        raise bad_cell(
            f"Column {cells.name!r} holds a date beyond the years 1 to 9999 at row {row}.",
            "Correct that cell, or leave it empty if the date is not known.",
            cells.name,
            row,
        )


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
    yes, no = reading.truth.split("/")
    truth = numbers_in(words, truth=TRUTH_SPELLINGS)
    spelt = truth.replace_strict({1.0: yes, 0.0: no}, default=None, return_dtype=pl.String)
    return spelt.zip_with(spelt.is_not_null(), words).alias(cells.name)


def _by_the_clock_of(
    written: WrittenDates, cells: pl.Series, first_row: int, zone: str
) -> pl.Series:
    """Dates as the clock of the zone of training shows them, without a zone."""
    local, offset = written.local.alias(cells.name), written.offset
    is_zoned = offset.is_not_null()
    if not zone:
        if is_zoned.any():
            raise _other_clock(cells, first_row + int(is_zoned.arg_max() or 0), "without one")
        return local
    if not is_zoned.any() and local.null_count() < len(local):
        warn(
            f"column {cells.name!r} has times without a zone; they are read as times of {zone}, "
            "as the model was trained on.",
            TableWarning,
            Finding(FindingKind.NO_ZONE, {"column": cells.name, "zone": zone}),
        )
    offsets = offsets_of_zone(zone)
    if offsets is not None and len(offsets) > 1:
        strange = (is_zoned & ~offset.is_in(offsets)).fill_null(False)
        if strange.any():
            raise _other_clock(cells, first_row + int(strange.arg_max() or 0), f"at {zone}")
        return local
    utc = local - (1_000_000 * offset.fill_null(0)).cast(pl.Duration("us"))
    if offsets is None:
        own = utc.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    else:
        own = utc.dt.offset_by(f"{offsets[0]}s")
    return own.zip_with(is_zoned, local)


def _other_clock(cells: pl.Series, row: int, trained: str) -> InputError:
    return bad_cell(
        f"Column {cells.name!r} holds times with a zone at row {row}, where the model was trained "
        f"on times {trained}.",
        "Write them by the clock of the training file.",
        cells.name,
        row,
    )


def _is_of_other_types(dtype: pl.DataType) -> bool:
    return dtype.is_nested() or dtype in (pl.Binary, pl.Object)


def _wrong_cell(
    cells: pl.Series, wrong: pl.Series, first_row: int, holds: str, expected: str
) -> InputError:
    position = int(wrong.arg_max() or 0)
    return bad_cell(
        f"Column {cells.name!r} {holds} {shown(cells[position])} at row {first_row + position}, "
        f"where the model was trained on {expected}.",
        "Correct that cell, or leave it empty if the value is not known.",
        cells.name,
        first_row + position,
        cells[position],
    )


def _wrong_type(cells: pl.Series, expected: str) -> InputError:
    return bad_cell(
        f"Column {cells.name!r} holds cells of type {type_name(cells.dtype)}, where the model was "
        f"trained on {expected}.",
        "Write the column as it was in the training file.",
        cells.name,
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


# Every word as it is, marks such as NA too: what they say depends on the column.
AS_WRITTEN = CellReading("string", marks=False)


def read_words(cells: Cells, reading: CellReading = _WORDS) -> ReadCells:
    """Read cells as words, None where empty; wrong is a list or a dictionary.

    Examples
    --------
    >>> read_words(np.array([" DE", "?", True, 3.0, "3.00"], dtype=object)).values.tolist()
    ['DE', None, 'true', '3', '3']
    >>> answers = CellReading("string", truth="yes/no")
    >>> read_words(np.array(["Yes", 0, "maybe"], dtype=object), answers).values.tolist()
    ['yes', 'no', 'maybe']
    """
    words, wrong = read_distinct(cells, partial(word_of, marks=reading.marks))
    words[wrong] = None
    if reading.truth:
        yes, no = reading.truth.split("/")
        spelt = {word: yes if value else no for word, value in TRUTH_SPELLINGS.items()}
        words[:] = [word and spelt.get(word.lower(), word) for word in words]
    return ReadCells(words, wrong)


def text_of(cells: Cells) -> pl.Series:
    """Write cells as the text that a file would have, for `CellProfile`."""
    words, wrong = read_words(cells, AS_WRITTEN)
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
