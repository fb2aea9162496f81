"""The rules of one cell: what is empty, a number, a truth value, a date, a word."""

import re
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl

# Written in text for "no value"; compared in lower case, without spaces around.
EMPTY_MARKS = (
    "",
    "?",
    "-",
    "na",
    "n/a",
    "n.a.",
    "#n/a",
    "<na>",
    "nan",
    "null",
    "(null)",
    "none",
    "\\n",  # \N, as databases export it
)
TRUTH_VALUES = {"true": 1.0, "false": 0.0}
# Other spellings of truth values, understood where training had nothing but true and false.
_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_FALSE = ("false", "f", "no", "n", "0", "0.0")
TRUTH_SPELLINGS = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, 0.0)
# Near the largest 32-bit float: a number beyond it is taken for a fault in the file.
LARGEST_NUMBER = 3.0e38
# A float64 tells whole numbers apart up to here.
LARGEST_EXACT = 2**53

_LONGEST_MARK = max(map(len, (*EMPTY_MARKS, *TRUTH_VALUES)))
# Spaces as polars strips them; Python's own strip takes off control characters, too.
_SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
_NUMBER = re.compile(
    r"[+-]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[+-]?[0-9]+)?|inf(?:inity)?|nan)", re.IGNORECASE
)
# The zeros at the end of a fraction: 3.0 and 3.00 are the word 3, 1.50 is 1.5.
_LAST_ZEROS = r"^([+-]?[0-9]+)(?:\.0+|(\.[0-9]*[1-9])0+)$"
_FEW_CELLS = 64  # so few are read faster one by one
_SHOWN = 60  # characters of a cell in a message

# How numbers are written that are more than digits and a point, by what marks the decimals. In
# both, digits may be grouped, also by apostrophes; a currency sign or a percent sign may stand
# beside; and brackets mean a number below zero, as in accounts.
NUMBER_FORMATS = ("1,234.5", "1.234,5")
SIGNS = "$€£¥₹%"
_GROUPED = {
    "1,234.5": r"(?:[0-9]{1,3}(?:[,'\x{2019}\x{a0}\x{202f}][0-9]{3})+|[0-9]+)(?:\.[0-9]+)?",
    "1.234,5": r"(?:[0-9]{1,3}(?:[.'\x{2019}\x{a0}\x{202f}][0-9]{3})+|[0-9]+)(?:,[0-9]+)?",
}
_WRITTEN = {
    name: rf"^(?:\([{SIGNS}]? ?{digits} ?[{SIGNS}]?\)"
    rf"|[+-]? ?[{SIGNS}]? ?[+-]?{digits}[ \x{{a0}}]?[{SIGNS}]?)$"
    for name, digits in _GROUPED.items()
}


def without_empty_marks(cells: pl.Series, marks: bool = True) -> pl.Series:
    """Strip text cells, make empty ones null, and write ``True`` as ``true``.

    `marks`: NA and the like are empty, too; otherwise blank cells only.
    """
    cell = pl.col("cell")
    lower = cell.str.to_lowercase()
    # Only short cells can be one of these: lower-casing every cell would double the time.
    is_short = cell.str.len_bytes() <= _LONGEST_MARK
    is_empty = is_short & lower.is_in(EMPTY_MARKS) if marks else cell == ""
    kept = pl.DataFrame({"cell": cells.str.strip_chars()}).select(
        pl.when(is_empty)
        .then(None)
        .when(is_short & lower.is_in(tuple(TRUTH_VALUES)))
        .then(lower)
        .otherwise(cell)
        .alias("cell")
    )
    return kept.to_series().alias(cells.name)


def is_missing(cell: Any) -> bool:
    """Say whether a Python value is none: None, NaN, NaT or pandas' NA, whatever made it."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(cell, float | np.floating | Decimal) and bool(cell != cell)


def is_empty(cell: Any) -> bool:
    """Say whether a cell says nothing: a missing value, or a mark such as ``NA``."""
    if isinstance(cell, str):
        stripped = cell.strip(_SPACES)
        return len(stripped) <= _LONGEST_MARK and stripped.lower() in EMPTY_MARKS
    return is_missing(cell)


def numbers_in(
    cells: pl.Series,
    number_format: str | None = None,
    truth: Mapping[str, float] = TRUTH_VALUES,
) -> pl.Series:
    """Read text cells as float64: null where a cell is empty or no number.

    `cells` are those of `without_empty_marks`. `number_format` is how numbers are written that are
    more than digits and a point, such as ``$1,234``. `truth`: words that are numbers, too.
    """
    numbers = cells.cast(pl.Float64, strict=False)
    if number_format is not None:
        formatted = _formatted_numbers(cells, number_format)
        numbers = formatted.zip_with(formatted.is_not_null(), numbers)
    if not truth or numbers.null_count() == cells.null_count():
        return numbers
    rest = (numbers.is_null() & cells.is_not_null()).arg_true()
    words = cells.gather(rest).str.to_lowercase()
    return numbers.scatter(rest, words.replace_strict(truth, default=None, return_dtype=pl.Float64))


def are_written_as(cells: pl.Series, number_format: str) -> bool:
    """Say whether all text cells are numbers written in one of the NUMBER_FORMATS."""
    written = _WRITTEN[number_format]
    return all(some.str.contains(written).all() for some in (cells.head(50), cells))


def _formatted_numbers(cells: pl.Series, number_format: str) -> pl.Series:
    """Read numbers such as ``€ 1.234,50``, ``12 %`` or ``(1,234)``; null where a cell is none.

    A percentage is its number: 12 % is 12.
    """
    point, comma = (".", ",") if number_format == "1,234.5" else (",", ".")
    good = cells.set(~cells.str.contains(_WRITTEN[number_format]).fill_null(False), None)
    plain = good.str.replace_all(rf"[{SIGNS}'\x{{2019}}\s\x{{a0}}\x{{202f}})]", "")
    plain = plain.str.replace_all(comma, "", literal=True)
    plain = plain.str.replace(point, ".", literal=True).str.replace("(", "-", literal=True)
    return plain.cast(pl.Float64, strict=False)


def number_of(cell: Any) -> float | None:
    """Read one Python value as a number: NaN where it is empty, None where it is none.

    Examples
    --------
    >>> number_of(" 1.5"), number_of("NA"), number_of(True), number_of("abc")
    (1.5, nan, 1.0, None)
    """
    if is_empty(cell):
        return np.nan
    if isinstance(cell, str):
        text = cell.strip(_SPACES)
        if _NUMBER.fullmatch(text):
            return float(text)
        return TRUTH_VALUES.get(text.lower())
    try:
        return float(cell)
    except OverflowError:
        return np.inf if cell > 0 else -np.inf
    except (TypeError, ValueError):
        return None


def canonical_words(cells: pl.Series, marks: bool = True) -> pl.Series:
    """Write text cells as words: null where empty, one spelling for each value.

    ``3``, ``3.0`` and ``3.00`` are the word ``3``; ``True`` is ``true``.
    """
    if len(cells) <= _FEW_CELLS and marks:
        return pl.Series(cells.name, list(map(word_of, cells)), pl.String)
    words = without_empty_marks(cells, marks)
    zeros = words.str.ends_with("0") & words.str.contains(".", literal=True)
    if not zeros.any():
        return words
    return words.str.replace(_LAST_ZEROS, "${1}${2}")


def word_of(cell: Any) -> str | None:
    """Write one Python value as `canonical_words` writes text; None where it is empty.

    Raises ValueError for a list or a dictionary, which is no single value.

    Examples
    --------
    >>> word_of(" DE"), word_of("?"), word_of(True), word_of(3.0), word_of("3.00")
    ('DE', None, 'true', '3', '3')
    """
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, list | dict | tuple | set | np.ndarray):
        raise ValueError(f"{cell!r} is no single value")
    if is_empty(cell):
        return None
    if isinstance(cell, float):
        if cell.is_integer() and abs(cell) < 2**63:
            return str(int(cell))
        return str(pl.Series([cell]).cast(pl.String)[0])  # digits as a column of numbers gets them
    text = writable(f"{cell:f}" if isinstance(cell, Decimal) else str(cell)).strip(_SPACES)
    if len(text) <= _LONGEST_MARK and text.lower() in TRUTH_VALUES:
        return text.lower()
    if text.endswith("0") and "." in text:
        return re.sub(_LAST_ZEROS, r"\1\2", text)
    return text


def words_of_numbers(cells: pl.Series) -> pl.Series:
    """Write numbers as words: whole ones without decimals, null where missing."""
    if not cells.dtype.is_float():
        return canonical_words(cells.cast(pl.String))
    whole = cells.cast(pl.Int64, strict=False)
    is_whole = (whole.cast(pl.Float64) == cells.cast(pl.Float64)).fill_null(False)
    words = cells.fill_nan(None).cast(pl.String)
    return whole.cast(pl.String).zip_with(is_whole, words).alias(cells.name)


def writable(text: str) -> str:
    r"""Return text that UTF-8 can hold: half of a surrogate pair, as JSON may have, is escaped.

    Examples
    --------
    >>> print(writable("caf\u00e9 \ud800"))
    café \ud800
    """
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode()


def shown(cell: Any) -> str:
    """Return the cell as a user would know it, cut to a length that can be read."""
    plain = cell.item() if isinstance(cell, np.generic) else cell
    text = repr(plain)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 3] + "..."


def is_text_type(dtype: pl.DataType) -> bool:
    """Say whether cells of this type are words."""
    return dtype in (pl.String, pl.Categorical, pl.Enum)


def are_plain(cells: pl.Series | pl.DataFrame) -> bool:
    """Say whether float64 cells are numbers that can be computed with, or empty, all of them."""
    values = cells.to_numpy()  # of a column without a copy where no cell is empty
    # NaN is no null, and fails every comparison.
    n_plain = int(np.count_nonzero(np.abs(values) <= LARGEST_NUMBER))
    n_empty = cells.null_count()
    if isinstance(n_empty, pl.DataFrame):
        n_empty = sum(n_empty.row(0))
    return n_plain == values.size - n_empty


# ISO 8601 in any of its spellings is one way to write dates: the first format that fits a column is
# what a reader is told, and the last one fits all of them, with and without time and zone.
ISO_FORMATS = (
    "%Y-%m-%d",
    "%Y-%m-%d %H:%M:%S%.f",
    "%Y-%m-%dT%H:%M:%S%.f",
    "%Y-%m-%d %H:%M",
    "%Y-%m-%dT%H:%M",
    "%Y-%m-%dT%H:%M:%S%.f%z",
)
# The first format under which every cell of a column can be read is taken: day before month where
# both fit. Years of two digits are 1970 to 2069.
DATE_FORMATS = (
    *ISO_FORMATS,
    "%Y/%m/%d",
    "%Y/%m/%d %H:%M:%S%.f",
    "%Y/%m/%d %H:%M",
    *(
        f"{day}{time}"
        for day in ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")
        for time in ("", " %H:%M:%S%.f", " %H:%M", " %I:%M:%S %p", " %I:%M %p")
    ),
    "%d-%m-%Y",
    "%d-%m-%Y %H:%M:%S%.f",
    "%d-%m-%Y %H:%M",
    "%d-%b-%Y",
    "%d %b %Y",
    "%d %B %Y",
    "%b %d, %Y",
    "%B %d, %Y",
    "%a, %d %b %Y %H:%M:%S %z",  # RFC 2822
)
_EARLIEST = 1000  # a year before it is one of two digits, which %Y would take as it is
_ISO_ZONE = r"\s?(Z|z|[+-]\d\d(?::?\d\d)?)$"
_ISO = (
    r"^\d{4}-\d{1,2}-\d{1,2}(?:[T ]\d{1,2}:\d\d(?::\d\d(?:\.\d+)?)?"
    r"(?:\s?(?:Z|z|[+-]\d\d(?::?\d\d)?))?)?$"
)
_LIKE_A_DATE = r"\d[-/.]\d|\d[- ]\pL{3}|\pL{3},? \d"
_TWO_DIGITS = r"^\d\d[./-]\d\d[./-]\d\d(?:\D|$)"


def dates_in(cells: pl.Series, date_format: str) -> pl.Series:
    """Read text as dates and times of day: null where a cell is empty or not written so.

    A time with an offset becomes UTC. ISO formats stand for each other.
    """
    if date_format in ISO_FORMATS:
        return _iso_dates(cells)
    return _dates_written_as(cells, date_format)


def formats_that_fit(cells: pl.Series, formats: list[str]) -> list[str]:
    """Return those of the formats under which all text cells, none of them null, are dates."""
    if not formats or not cells.head(50).str.contains(_LIKE_A_DATE).all():
        return []
    return [each for each in formats if all(_fits(some, each) for some in (cells.head(50), cells))]


def has_zone(date_format: str | None) -> bool:
    """Say whether dates that are written so say their offset from UTC."""
    return date_format is not None and "%z" in date_format


def zones_in(cells: pl.Series) -> pl.Series:
    """Mark the text cells that say an offset from UTC."""
    return cells.str.contains(rf"\d{_ISO_ZONE}") & cells.str.contains(":", literal=True)


def _fits(cells: pl.Series, date_format: str) -> bool:
    if date_format == ISO_FORMATS[-1]:
        return _iso_dates(cells).null_count() == 0
    return _dates_written_as(cells, date_format).null_count() == 0


def _dates_written_as(cells: pl.Series, date_format: str) -> pl.Series:
    if "%y" in date_format:  # codes such as 1.2.3 are no dates
        cells = _null_unless(cells, cells.str.contains(_TWO_DIGITS))
    if "%H" not in date_format and "%I" not in date_format:
        dates = cells.str.to_date(date_format, strict=False).cast(pl.Datetime("us"))
    elif has_zone(date_format):
        zoned = cells.str.to_datetime(date_format, strict=False, time_unit="us", time_zone="UTC")
        dates = zoned.dt.replace_time_zone(None)
    else:
        dates = cells.str.to_datetime(date_format, strict=False, time_unit="us")
    if "%Y" in date_format:
        dates = _null_unless(dates, dates.dt.year() >= _EARLIEST)
    return dates


def _iso_dates(cells: pl.Series) -> pl.Series:
    """ISO 8601: a day, or a day and a time after T or a space, with or without an offset."""
    days = _dates_written_as(cells, "%Y-%m-%d")
    if days.null_count() == cells.null_count():
        return days
    cells = _null_unless(cells, cells.str.contains(_ISO))
    is_zoned = zones_in(cells).fill_null(False)
    local = cells
    if is_zoned.any():
        local = cells.zip_with(~is_zoned, cells.str.replace(_ISO_ZONE, ""))
    local = local.str.replace(" ", "T", literal=True)
    dates = days
    for each in ("%Y-%m-%dT%H:%M:%S%.f", "%Y-%m-%dT%H:%M"):
        if dates.null_count() > cells.null_count():
            dates = dates.zip_with(dates.is_not_null(), _dates_written_as(local, each))
    if not is_zoned.any():
        return dates
    return dates - _offsets(cells.str.extract(_ISO_ZONE), is_zoned)


def _null_unless(cells: pl.Series, condition: pl.Series) -> pl.Series:
    return cells.zip_with(condition.fill_null(False), pl.Series([None], dtype=cells.dtype))


def _offsets(zones: pl.Series, is_zoned: pl.Series) -> pl.Series:
    """Offsets such as Z, +02, +0200 and +02:00 as durations; 0 for cells without one."""
    digits = zones.str.replace(":", "", literal=True)
    hours = digits.str.slice(1, 2).cast(pl.Int64, strict=False).fill_null(0)
    minutes = digits.str.slice(3, 2).cast(pl.Int64, strict=False).fill_null(0)
    sign = 1 - 2 * digits.str.starts_with("-").fill_null(False).cast(pl.Int64)
    seconds = is_zoned.cast(pl.Int64) * sign * (3600 * hours + 60 * minutes)
    return (1_000_000 * seconds).cast(pl.Duration("us"))
