"""Reading a column as training read it: the same for files, data frames, requests and streams."""

from dataclasses import dataclass
from typing import Literal

import polars as pl

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
    numbers_in,
    shown,
    without_empty_marks,
    words_of_numbers,
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
    zoned = _zoned(cells, date_format)
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


def _zoned(cells: pl.Series, date_format: str) -> pl.Series:
    if date_format in ISO_FORMATS or has_zone(date_format):
        return zones_in(cells)
    return pl.Series([False])


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
