"""Single cells: what counts as empty, as a number, as a date; errors that name the cell."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import polars as pl

from rareclass.errors import ErrorKind, InputError

# Written in files for "no value" (compared in lower case, spaces taken off).
EMPTY_MARKS = ("", "?", "na", "n/a", "nan", "null", "none", "#n/a", "-", "<na>")

# The first format under which every cell of a column can be read is taken.
DATE_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%d %H:%M:%S%.f%z",
    "%Y-%m-%dT%H:%M:%S%.f%z",
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S%.f",
    "%d.%m.%Y",
    "%d.%m.%Y %H:%M:%S%.f",
    "%d.%m.%Y %H:%M",
    "%d/%m/%Y",
    "%d/%m/%Y %H:%M:%S%.f",
    "%d/%m/%Y %H:%M",
    "%m/%d/%Y",
    "%m/%d/%Y %H:%M:%S%.f",
    "%m/%d/%Y %H:%M",
    "%d-%m-%Y",
    "%d-%b-%Y",
    "%d %b %Y",
)
# Near the largest 32-bit float: a number beyond it is taken for a fault in the file.
LARGEST_NUMBER = 3.0e38
MANY_VALUES = 20
_SHOWN = 60  # characters of a cell in a message
# 1,234 and 1,234,567.8 and 0,5 and 1.234,5
_COMMA_NUMBER = r"^[+-]?(\d{1,3}(,\d{3})+(\.\d+)?|\d+,\d+|\d{1,3}(\.\d{3})+,\d+)$"

_CODE = r"^0\d+$"


@dataclass
class CellProfile:
    """What the text cells of one column look like, gathered batch by batch.

    Counted are the cells that are not empty, that read as a number, that read as a whole number,
    and that are numbers to a reader but for the commas in them. The formats are those that have
    fitted every cell so far; the first text is the first cell that is not a number, its row counted
    from 1; the first code is the first whole number that begins with a zero, as zip codes do.
    """

    n_present: int = 0
    n_numbers: int = 0
    n_integers: int = 0
    date_formats: list[str] = field(default_factory=lambda: list(DATE_FORMATS))
    first_text: str = ""
    first_text_row: int = 0
    n_comma_numbers: int = 0
    first_code: str = ""
    _values: set[str] = field(default_factory=set)

    @property
    def has_many_values(self) -> bool:
        """Whether the column takes more than a handful of values."""
        return len(self._values) > MANY_VALUES

    def add(self, cells: pl.Series, first_row: int) -> None:
        """Take in the next cells of the column; `first_row` is the first one's row."""
        cells = without_empty_marks(cells)
        present = cells.drop_nulls()
        if present.is_empty():
            return
        numbers = cells.cast(pl.Float64, strict=False)
        is_text = numbers.is_null() & cells.is_not_null()
        n_text = int(is_text.sum())
        if n_text and not self.first_text_row:
            position = int(is_text.arg_max() or 0)
            self.first_text, self.first_text_row = cells[position], first_row + position
        if n_text:
            self.n_comma_numbers += int(cells.filter(is_text).str.contains(_COMMA_NUMBER).sum())
        self.n_present += len(present)
        self.n_numbers += len(present) - n_text
        if not n_text:
            self.n_integers += int(present.str.contains(r"^[+-]?\d+$").sum())
        if not self.first_code:
            codes = present.filter(present.str.contains(_CODE))
            self.first_code = codes[0] if len(codes) else ""
        if not self.has_many_values:
            self._values.update(present.unique().head(2 * MANY_VALUES))
        self._keep_fitting_dates(present)

    def _keep_fitting_dates(self, present: pl.Series) -> None:
        if self.n_numbers:
            # Years and day counts are numbers.
            self.date_formats = []
        sample = present.head(50)
        self.date_formats = [
            pattern
            for pattern in self.date_formats
            if _reads_as_date(sample, pattern) and _reads_as_date(present, pattern)
        ]


def without_empty_marks(cells: pl.Series) -> pl.Series:
    """Return the text cells stripped, marks such as ``NA`` made null, ``True`` made ``true``.

    Programs write truth values in either case, and a model must read them alike.
    """
    cell = pl.col("cell")
    lower = cell.str.to_lowercase()
    # Only short cells can be one of these: lower-casing every cell would double the time.
    is_short = cell.str.len_bytes() <= 5
    stripped = pl.DataFrame({"cell": cells.str.strip_chars()})
    kept = stripped.select(
        pl.when(is_short & lower.is_in(EMPTY_MARKS))
        .then(None)
        .when(is_short & lower.is_in(("true", "false")))
        .then(lower)
        .otherwise(cell)
        .alias("cell")
    )
    return kept.to_series().alias(cells.name)


def shown(cell: Any) -> str:
    """Return the cell as a user would know it, cut to a length that can be read."""
    plain = cell.item() if isinstance(cell, np.generic) else cell
    text = repr(plain)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def is_text_type(dtype: pl.DataType) -> bool:
    """Whether cells of this type are words."""
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def read_numbers(cells: pl.Series, first_row: int) -> pl.Series:
    """Return the cells as float64.

    `first_row` is the row in the file of the first cell, counted from 1. Raises `InputError` at the
    first cell that is text or infinite, naming column, row and value.
    """
    if cells.dtype == pl.Float64 and are_plain(cells):
        return cells
    if is_text_type(cells.dtype):
        cells = without_empty_marks(cells.cast(pl.String))
    elif cells.dtype == pl.Duration:
        cells = cells.dt.total_seconds(fractional=True)
    elif cells.dtype.is_temporal() or cells.dtype.is_nested() or cells.dtype == pl.Binary:
        raise _wrong_type(cells, "numbers")
    numbers = cells.cast(pl.Float64, strict=False)
    is_text = numbers.is_null() & cells.is_not_null()
    if is_text.any():
        position = int(is_text.arg_max() or 0)
        raise InputError(
            f"Column {cells.name!r} holds text at row {first_row + position}: "
            f"{shown(cells[position])}, where the model was trained on numbers.",
            "Correct that cell, or leave it empty if the value is not known.",
            ErrorKind.CELL,
            column=cells.name,
            row=first_row + position,
        )
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
        )
    return numbers


def read_dates(cells: pl.Series, date_format: str | None, first_row: int) -> pl.Series:
    """Return the cells as dates with the time of day, zones turned into UTC.

    Raises `InputError` at the first cell that is not such a date, naming column, row and value.
    """
    if cells.dtype.is_temporal() and cells.dtype not in (pl.Duration, pl.Time):
        dates = cells.cast(pl.Datetime("us"))
        return dates
    if not is_text_type(cells.dtype):
        raise _wrong_type(cells, "dates")
    cells = without_empty_marks(cells.cast(pl.String))
    if date_format is None:
        # Dates by type in training, as text now: the way most of the first are written.
        first = cells.drop_nulls().head(100)
        date_format = min(DATE_FORMATS, key=lambda way: _parse_dates(first, way).null_count())
    dates = _parse_dates(cells, date_format)
    wrong = dates.is_null() & cells.is_not_null()
    if wrong.any():
        position = int(wrong.arg_max() or 0)
        raise InputError(
            f"Column {cells.name!r} holds {shown(cells[position])} at row {first_row + position}, "
            f"which is not a date written as {date_format}.",
            "Correct that cell, or leave it empty if the date is not known.",
            ErrorKind.CELL,
            column=cells.name,
            row=first_row + position,
        )
    return dates


def read_strings(cells: pl.Series) -> pl.Series:
    """Return the cells as words: numbers are written out, whole ones without decimals."""
    if is_text_type(cells.dtype):
        return without_empty_marks(cells.cast(pl.String))
    if cells.dtype == pl.Boolean:
        return cells.cast(pl.String)
    if cells.dtype.is_float():
        whole = cells.cast(pl.Int64, strict=False)
        is_whole = (whole.cast(pl.Float64) == cells.cast(pl.Float64)).fill_null(False)
        words = cells.fill_nan(None).cast(pl.String)
        return whole.cast(pl.String).zip_with(is_whole, words).alias(cells.name)
    if cells.dtype.is_nested() or cells.dtype in (pl.Binary, pl.Duration, pl.Object):
        raise _wrong_type(cells, "words")
    return cells.cast(pl.String)


def are_plain(cells: pl.Series | pl.DataFrame) -> bool:
    """Whether float64 cells are numbers that can be computed with, or empty, all of them."""
    values = cells.to_numpy()  # of a column without a copy where no cell is empty
    # NaN is no null, and fails every comparison.
    n_plain = int(np.count_nonzero(np.abs(values) <= LARGEST_NUMBER))
    n_empty = cells.null_count()
    if isinstance(n_empty, pl.DataFrame):
        n_empty = sum(n_empty.row(0))
    return n_plain == values.size - n_empty


def _wrong_type(cells: pl.Series, expected: str) -> InputError:
    return InputError(
        f"Column {cells.name!r} holds cells of type {cells.dtype}, where the model was trained "
        f"on {expected}.",
        "Write the column as it was in the training file.",
        ErrorKind.CELL,
        column=cells.name,
    )


def _reads_as_date(cells: pl.Series, pattern: str) -> bool:
    return _parse_dates(cells, pattern).null_count() == 0


def _parse_dates(cells: pl.Series, pattern: str) -> pl.Series:
    if "%H" not in pattern:
        return cells.str.to_date(pattern, strict=False).cast(pl.Datetime("us"))
    if "%z" in pattern:
        dates = cells.str.to_datetime(pattern, strict=False, time_unit="us", time_zone="UTC")
        return dates.dt.replace_time_zone(None)
    return cells.str.to_datetime(pattern, strict=False, time_unit="us")
