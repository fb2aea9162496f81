"""Reading a column as training read it: the same for files, data frames, requests and streams."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.tables.cells import (
    LARGEST_EXACT,
    LARGEST_NUMBER,
    TIME_OF_DAY,
    TRUTH_SPELLINGS,
    are_all_missing,
    are_plain,
    canonical_words,
    first_unusable,
    is_empty,
    is_text_type,
    numbers_in,
    shown,
    type_name,
    without_empty_marks,
    word_of,
    words_of_numbers,
    writable,
)
from rareclass.tables.dates import (
    HOW_TO_WRITE,
    ISO_DAY,
    DateProfile,
    WrittenDates,
    offsets_of_zone,
    read_written,
    way_in_words,
    way_of_most,
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


# What to do where a cell of a column of times is none.
HOW_TO_WRITE_TIMES = f"{HOW_TO_WRITE} Numbers are days."


def read_cells(cells: pl.Series, reading: CellReading, first_row: int) -> pl.Series:
    """Return the cells as float64, as dates with the time of day, or as words.

    Cells that are all empty are so whatever their type is: a column without a value may have any.
    `first_row` is the row of the first cell in the file, for messages. Raises `InputError` at the
    first cell that does not fit, naming column, row and value.
    """
    if reading.reads_as == "number" and cells.dtype == pl.Float64 and are_plain(cells):
        return cells
    if are_all_missing(cells):
        cells = pl.repeat(None, len(cells), dtype=pl.String, eager=True).alias(cells.name)
    if reading.reads_as == "number":
        return read_numbers(cells, first_row, reading)
    if reading.reads_as == "date":
        return read_dates(cells, reading.date_format, first_row, reading.zone)
    return read_strings(cells, reading, first_row)


_NUMBERS, _WORDS = CellReading("number"), CellReading("string")


def read_numbers(cells: pl.Series, first_row: int, reading: CellReading = _NUMBERS) -> pl.Series:
    """Return the cells as float64: durations and times of day in seconds, truth values 0 and 1.

    Raises `InputError` at the first cell that is text or infinite, naming column, row and value.
    """
    numbers, is_text, is_too_large = parse_numbers(cells, reading, first_row)
    if is_text.any():
        what = "the truth value" if cells.dtype == pl.Boolean else "text"
        raise _wrong_cell(cells, is_text, first_row, f"holds {what}", "numbers")
    if is_too_large.any():
        fault = ": infinite, or too large to compute with"
        remedy = "Correct that cell, leave it empty, or leave out the whole column."
        raise _at_first(numbers, is_too_large, first_row, "holds", fault, remedy)
    return numbers


class ParsedNumbers(NamedTuple):
    """Cells as float64, null where empty or text, and which are text or too large."""

    values: pl.Series
    is_text: pl.Series
    is_too_large: pl.Series


def parse_numbers(
    cells: pl.Series, reading: CellReading = _NUMBERS, first_row: int | None = None
) -> ParsedNumbers:
    """Read cells as numbers; raise `InputError` where their type holds none.

    Truth values are 1 and 0 where training had some, and text where it had none. The error names a
    row where the row of the first cell is given.
    """
    is_text = is_text_type(cells.dtype)
    if is_text or cells.dtype.is_float() or cells.dtype.is_integer():
        numbers = cells.cast(pl.Float64, strict=False)
        is_read = numbers.null_count() == cells.null_count() and not reading.number_format
        if is_read and are_plain(numbers):
            none = pl.Series(np.zeros(len(cells), np.bool_))
            return ParsedNumbers(numbers, none, none)
        if is_text and not is_read:
            cells = without_empty_marks(cells.cast(pl.String))
            truth = TRUTH_SPELLINGS if reading.truth else {}
            numbers = numbers_in(cells, reading.number_format, truth)
    elif cells.dtype == pl.Duration or (
        cells.dtype == pl.Time and reading.number_format == TIME_OF_DAY
    ):
        ns = cells.cast(pl.Duration("ns")).to_physical()
        numbers = ns // 10**9 + (ns % 10**9) / 1e9  # whole seconds exactly
    elif not is_usable(cells.dtype) or cells.dtype.is_temporal():
        raise _wrong_type(cells, "numbers", first_row)
    elif cells.dtype == pl.Boolean and not reading.truth:
        numbers = pl.repeat(None, len(cells), dtype=pl.Float64, eager=True)
    else:
        numbers = cells.cast(pl.Float64, strict=False)
    wrong = numbers.is_null() & cells.is_not_null()
    numbers = numbers.fill_nan(None).alias(cells.name)
    return ParsedNumbers(numbers, wrong, (numbers.abs() > LARGEST_NUMBER).fill_null(False))


def read_dates(
    cells: pl.Series, date_format: str | None, first_row: int, zone: str = ""
) -> pl.Series:
    """Return the cells as dates with the time of day, by the clock of the zone of training.

    Dates with a zone where training had none are refused: their hours are those of another clock.
    Raises `InputError` at the first cell that is not such a date, naming column, row and value.
    """
    if cells.dtype == pl.Date or isinstance(cells.dtype, pl.Datetime):
        _check_years(cells, first_row)
        return _by_the_clock_of(typed_dates(cells), cells, first_row, zone)
    if cells.dtype.is_numeric():  # 20241231 is a day, as in a file of text
        cells = words_of_numbers(cells)
    if not is_text_type(cells.dtype):
        raise _wrong_type(cells, "dates", first_row)
    cells = cells.cast(pl.String).str.replace(r"^\s*([0-9]{8})\.0\s*$", "$1")
    cells = without_zero_dates(without_empty_marks(cells))
    written = read_written(cells, date_format or _format_of(cells, first_row))
    wrong = written.local.is_null() & cells.is_not_null()
    if wrong.any():
        how = f"dates written as {way_in_words(date_format)}" if date_format else "dates"
        raise _wrong_cell(cells, wrong, first_row, "holds", how, HOW_TO_WRITE)
    return _by_the_clock_of(written, cells, first_row, zone)


def typed_dates(cells: pl.Series) -> WrittenDates:
    """Return dates by type as dates by their own clock, and the offset of that clock."""
    zone = cells.dtype.time_zone if isinstance(cells.dtype, pl.Datetime) else None
    local = cells.cast(pl.Datetime("us", zone))
    if zone is None:
        return WrittenDates(local, pl.repeat(None, len(cells), dtype=pl.Int64, eager=True))
    local, utc = local.dt.replace_time_zone(None), local.dt.convert_time_zone("UTC")
    offset = (local - utc.dt.replace_time_zone(None)).dt.total_seconds()
    return WrittenDates(local, offset)


def _format_of(cells: pl.Series, first_row: int) -> str:
    """Find how dates are written that were dates by type in training."""
    profile, present = DateProfile(), cells.drop_nulls()
    profile.add(present)
    ways = profile.ways if len(present) else ()
    if len(ways) > 1:
        either = " or ".join(map(way_in_words, ways[:2]))
        fault = f", which may be {either}, where the model was trained on dates"
        raise _at_first(cells, cells.is_not_null(), first_row, "holds", fault, HOW_TO_WRITE)
    return ways[0] if ways else ISO_DAY


_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896  # of the years 1 to 9999, as those of Python are


def _check_years(cells: pl.Series, first_row: int) -> None:
    """Raise `InputError` at a typed date beyond the years 1 to 9999."""
    days = cells.cast(pl.Date, strict=False).to_physical()
    wrong = cells.is_not_null() & ~days.is_between(_FIRST_DAY, _LAST_DAY).fill_null(False)
    if wrong.any():
        row = first_row + int(wrong.arg_max() or 0)
        fault = f"Column {cells.name!r} holds a date beyond the years 1 to 9999 at row {row}."
        remedy = "Correct that cell, or leave it empty if the date is not known."
        raise ErrorKind.CELL.error(fault, remedy, column=cells.name, row=row)


def read_strings(
    cells: pl.Series, reading: CellReading = _WORDS, first_row: int | None = None
) -> pl.Series:
    """Return the cells as words, one spelling for each value; null where empty.

    Raises `InputError` for types that hold none, as `parse_numbers` does.
    """
    if is_text_type(cells.dtype):
        words = canonical_words(cells.cast(pl.String), reading.marks)
    elif not is_usable(cells.dtype) or cells.dtype == pl.Duration:
        raise _wrong_type(cells, "words", first_row)
    else:
        words = words_of_numbers(cells)
    if not reading.truth:
        return words
    yes, no = reading.truth.split("/")
    truth = numbers_in(words, truth=TRUTH_SPELLINGS)
    spelt = truth.replace_strict({1.0: yes, 0.0: no}, default=None, return_dtype=pl.String)
    return spelt.zip_with(spelt.is_not_null(), words).alias(cells.name)


_NO_ZONE = "times without a zone"
_BY_ITS_CLOCK = "Write times by the clock of the training file."


def _by_the_clock_of(
    written: WrittenDates, cells: pl.Series, first_row: int, zone: str
) -> pl.Series:
    """Dates as the clock of the zone of training shows them, without a zone."""
    local, offset = written.local.alias(cells.name), written.offset
    is_zoned = offset.is_not_null()
    if not zone:
        if is_zoned.any():
            raise _wrong_cell(cells, is_zoned, first_row, "holds", _NO_ZONE, _BY_ITS_CLOCK)
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
            raise _wrong_cell(cells, strange, first_row, "holds", f"times at {zone}", _BY_ITS_CLOCK)
        return local
    utc = local - (1_000_000 * offset.fill_null(0)).cast(pl.Duration("us"))
    if offsets is None:
        own = utc.dt.replace_time_zone("UTC").dt.convert_time_zone(zone).dt.replace_time_zone(None)
    else:
        own = utc.dt.offset_by(f"{offsets[0]}s")
    return own.zip_with(is_zoned, local)


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

    `rows` are the numbers of the cells, of a file from 1 on; `option` is what names the column.
    Raises `InputError` at the first cell that is empty or no time, naming column, row and value.
    """
    times = read_moments(column, way_of_times(column))
    if times.null_count():
        place = int(times.is_null().arg_max() or 0)
        cell, row = column[place], int(rows[place])
        fault = f"{option} {column.name}".lstrip() + f": {not_a_time(cell, f' at row {row:,}')}."
        name, value = column.name, None if is_empty(cell) else cell
        raise ErrorKind.CELL.error(fault, HOW_TO_WRITE_TIMES, column=name, row=row, value=value)
    return times.to_numpy()


def group_words(cells: pl.Series, rows: NDArray[np.int64], option: str) -> pl.Series:
    """Return what each row's group is called, as words: one spelling for each value.

    `rows` and `option` as in `times_of`. Raises `InputError` at a cell that is empty, and for a
    type that is none of words, numbers or dates.
    """
    if not is_usable(cells.dtype) or cells.dtype == pl.Duration:
        bad, fault = cells.is_not_null(), f"holds cells of type {type_name(cells.dtype)}"
        remedy = "Give a column of words, numbers or dates."
    else:
        words = read_strings(cells)
        bad, fault = words.is_null(), "has no value"
        remedy = "Fill it in, or leave the row out."
    if bad.any():
        place = bad.arg_max() or 0
        row, cell = int(rows[place]), cells[place]
        mark = f": {shown(cell)} is read as empty" if isinstance(cell, str) and cell.strip() else ""
        message = f"{option} {fault} at row {row:,}{mark}."
        raise ErrorKind.CELL.error(message, remedy, column=cells.name, row=row)
    return words


def not_a_time(cell: Any, place: str = "") -> str:
    """Return the fault of a cell of a column of times."""
    return f"{'an empty cell' if is_empty(cell) else shown(cell)}{place} is not a time"


def is_usable(dtype: pl.DataType) -> bool:
    """Say whether cells of this type may be numbers, words or times."""
    return not (dtype.is_nested() or dtype in (pl.Binary, pl.Object))


def _wrong_cell(
    cells: pl.Series, wrong: pl.Series, first_row: int, holds: str, expected: str, how: str = ""
) -> InputError:
    remedy = f"Correct that cell, or leave it empty if the value is not known. {how}".rstrip()
    fault = f", where the model was trained on {expected}"
    return _at_first(cells, wrong, first_row, holds, fault, remedy)


def _at_first(
    cells: pl.Series, wrong: pl.Series, first_row: int, holds: str, fault: str, remedy: str
) -> InputError:
    """The error to raise at the first of the cells that is wrong."""
    place = int(wrong.arg_max() or 0)
    cell, row, name = cells[place], first_row + place, cells.name
    message = f"Column {name!r} {holds} {shown(cell)} at row {row}{fault}."
    return ErrorKind.CELL.error(message, remedy, column=name, row=row, value=cell)


def _wrong_type(cells: pl.Series, expected: str, first_row: int | None) -> InputError:
    row = None if first_row is None else first_row + first_unusable(cells)
    at = "" if row is None else f" at row {row}"
    return ErrorKind.CELL.error(
        f"Column {cells.name!r} holds cells of type {type_name(cells.dtype)}{at}, where the model "
        f"was trained on {expected}.",
        "Write the column as it was in the training file.",
        column=cells.name,
        row=row,
    )


def text_of_values(cells: Sequence[Any]) -> pl.Series:
    """Write Python values as the text that a file would hold.

    Each by itself, whatever stands beside it. Raises ValueError for a list or a dictionary.

    >>> text_of_values([" DE", "?", True, 3.0, 2, None]).to_list()
    [' DE', '?', 'true', '3', '2', None]
    """
    kinds = set(map(type, cells)) - {type(None)}
    if kinds <= {float, int} and all(abs(c) <= LARGEST_EXACT for c in cells if type(c) is int):
        return words_of_numbers(pl.Series(cells, dtype=pl.Float64, strict=False))
    words = (writable(c) if type(c) is str else word_of(c, marks=False) for c in cells)
    return pl.Series(list(words), dtype=pl.String)
