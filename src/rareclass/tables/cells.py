"""The rules of one cell: what is empty, a number, a truth value, a date, a word."""

import re
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any, NamedTuple

import numpy as np
import polars as pl

# Written in text for "no value"; compared in lower case, without spaces around.
EMPTY_MARKS = (
    "", "?", "-", "--", ".", "na", "n/a", "n.a.", "#n/a", "<na>", "nan", "null", "(null)", "none",
    "nil", "\\n",  # \N, as databases export it
    "#value!", "#ref!", "#div/0!", "#name?", "#num!", "#null!",
)  # fmt: skip
TRUTH_VALUES = {"true": 1.0, "false": 0.0}
# Other spellings of truth values, understood where training had nothing but true and false.
_TRUE = ("true", "t", "yes", "y", "1", "1.0")
_FALSE = ("false", "f", "no", "n", "0", "0.0")
TRUTH_SPELLINGS = dict.fromkeys(_TRUE, 1.0) | dict.fromkeys(_FALSE, 0.0)
# Spellings that a column may have; it keeps its own.
TRUTH_PAIRS = ("true/false", "yes/no", "y/n", "t/f")
# Near the largest 32-bit float: a number beyond it is taken for a fault in the file.
LARGEST_NUMBER = 3.0e38
# A float64 tells whole numbers apart up to here.
LARGEST_EXACT = 2**53

_MARK = pl.List(pl.Null)  # of a cell that cannot be used, among others
_LONGEST_MARK = max(map(len, (*EMPTY_MARKS, *TRUTH_VALUES)))
# Spaces as polars strips them; Python's own strip takes off control characters, too.
SPACES = "\t\n\x0b\x0c\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(
    map(chr, range(0x2000, 0x200B))
)
# The zeros at the end of a fraction: 3.0 and 3.00 are the word 3, 1.50 is 1.5.
_LAST_ZEROS = r"^([+-]?[0-9]+)(?:\.0+|(\.[0-9]*[1-9])0+)$"
_NO_FRACTION = r"\.0{6}"  # of a second
_FEW_CELLS = 64  # so few are read faster one by one
_LOOK_CELLS = 512  # that say whether cells recur
_SHOWN = 60  # characters of a cell in a message

# How numbers are written that are more than digits and a point, by what marks the decimals; or
# hours, minutes and seconds, which are a number of seconds. Digits may be grouped, also by spaces
# and apostrophes; a currency, a percent sign or a unit may stand beside; and brackets mean a number
# below zero, as in accounts.
TIME_OF_DAY = "12:34:56"
NUMBER_STYLES = ("1,234.5", "1.234,5", TIME_OF_DAY)
_DIGITS = {
    "1,234.5": r"[1-9]\d{0,2}(?:[,' ]\d{3})+(?:\.\d+)?|[1-9]\d?(?:,\d\d)+,\d{3}(?:\.\d+)?"
    r"|\d+(?:\.\d+)?|\.\d+",
    "1.234,5": r"[1-9]\d{0,2}(?:[.' ]\d{3})+(?:,\d+)?|\d+(?:,\d+)?",
    TIME_OF_DAY: r"\d{1,3}:[0-5]\d(?::[0-5]\d(?:\.\d+)?)?",
}
_MONEY = (
    r"[A-Z]{0,2}\$|[€£¥₹₩₽₺₫₪฿]|(?i:usd|eur|gbp|chf|jpy|cny|inr|aud|cad|nzd|sek|nok|dkk|pln|czk|huf"
    r"|ron|try|rub|uah|brl|mxn|zar|krw|sgd|hkd|ils|aed|kr|rs|zł|kč|ft)\.?"
)
_UNITS = (
    r"%|‰|°[CF]?|(?i:[kmcµn]?m|[kmµ]?g|t|[mcd]?l|h|min|[mµn]?s|[kmgt]?i?b|[kmg]?wh?|[km]?v|[km]?hz|px"
    r"|pt|bps?)|k|M"
)
_SPACES_AND_SIGNS = (
    (r"[\x{a0}\x{2009}\x{202f}]", " "),
    (r"[\x{2212}\x{2013}]", "-"),
    ("\u2019", "'"),
)
_WRITTEN = {
    style: rf"^(\()? ?([+-])? ?({_MONEY})? ?([+-])?({digits})"
    rf"(?: ?({_MONEY}|{_UNITS})| ([\pL°µ²³/]{{1,12}}))?(-)? ?(\))?$"
    for style, digits in _DIGITS.items()
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
        stripped = cell.strip(SPACES)
        return len(stripped) <= _LONGEST_MARK and stripped.lower() in EMPTY_MARKS
    return is_missing(cell)


def numbers_in(
    cells: pl.Series, number_format: str | None = None, truth: Mapping[str, float] = TRUTH_VALUES
) -> pl.Series:
    """Read text cells as float64: null where a cell is empty or no number.

    `cells` are those of `without_empty_marks`. `number_format` is how numbers are written that are
    more than digits and a point, such as ``$1,234``. `truth`: words that are numbers, too.
    """
    numbers = cells.cast(pl.Float64, strict=False)
    if number_format is not None:
        # The unit is that of training, which cells may have or not.
        style, _, unit = number_format.partition(" ")
        formatted, units, _ = written_numbers(cells, style)
        formatted = formatted.set((units.is_not_null() & (units != unit)).fill_null(False), None)
        numbers = formatted.zip_with(formatted.is_not_null(), numbers)
    if not truth or numbers.null_count() == cells.null_count():
        return numbers
    rest = (numbers.is_null() & cells.is_not_null()).arg_true()
    words = cells.gather(rest).str.to_lowercase()
    return numbers.scatter(rest, words.replace_strict(truth, default=None, return_dtype=pl.Float64))


class WrittenNumbers(NamedTuple):
    """Text cells as float64, null where a cell is no number that is written so, and their units.

    A unit is null where there is none; one of money is `is_money`.
    """

    values: pl.Series
    units: pl.Series
    is_money: pl.Series


def written_numbers(cells: pl.Series, style: str) -> WrittenNumbers:
    """Read numbers such as ``€ 1.234,50``, ``12 %``, ``(1,234)`` or ``12 kg``.

    A percentage is its number: 12 % is 12.
    """
    text = cells
    for pattern, plain in _SPACES_AND_SIGNS:
        text = text.str.replace_all(pattern, plain)
    found = text.str.extract_groups(_WRITTEN[style]).struct.unnest()
    has = [pl.col(str(k)).is_not_null() for k in range(1, 10)]
    signs = [mark.cast(pl.Int8) for mark in (has[0], has[1], has[3], has[7])]
    is_good = (has[0] == has[8]) & (pl.sum_horizontal(signs) <= 1) & ~(has[2] & (has[5] | has[6]))
    is_below = has[0] | has[7] | (pl.col("2") == "-").fill_null(False)
    is_below |= (pl.col("4") == "-").fill_null(False)
    digits = pl.col("5")
    if style == TIME_OF_DAY:
        parts = [digits.str.split(":").list.get(k, null_on_oob=True) for k in range(3)]
        hours, minutes, seconds = (part.cast(pl.Float64).fill_null(0.0) for part in parts)
        number: pl.Expr = pl.when(digits.is_not_null()).then(3600 * hours + 60 * minutes + seconds)
    else:
        point, groups = (".", "[,' ]") if style == "1,234.5" else (",", "[.' ]")
        bare = digits.str.replace_all(groups, "").str.replace(point, ".", literal=True)
        number = bare.cast(pl.Float64, strict=False)
    unit = pl.coalesce("3", "6", "7").str.to_lowercase().str.strip_chars_end(".")
    read = found.select(
        values=pl.when(is_good).then(pl.when(is_below).then(-number).otherwise(number)),
        units=pl.when(is_good).then(unit),
        is_money=is_good & pl.coalesce("3", "6").str.contains(rf"^(?:{_MONEY})$").fill_null(False),
    )
    return WrittenNumbers(read["values"], read["units"], read["is_money"])


def are_written(numbers: pl.Series, style: str) -> bool:
    """Say whether text of numbers with a point can all be read in another style, too."""
    return bool(numbers.str.contains(_WRITTEN[style]).all())


def canonical_words(cells: pl.Series, marks: bool = True) -> pl.Series:
    """Write text cells as words: null where empty, one spelling for each value.

    ``3``, ``3.0`` and ``3.00`` are the word ``3``; ``True`` is ``true``.
    """
    if len(cells) <= _FEW_CELLS:
        return pl.Series(cells.name, [word_of(cell, marks) for cell in cells], pl.String)
    if cells.head(_LOOK_CELLS).n_unique() < _LOOK_CELLS // 8:  # each distinct one once
        distinct = cells.unique()
        return cells.replace_strict(distinct, _canonical(distinct, marks))
    return _canonical(cells, marks)


def _canonical(cells: pl.Series, marks: bool) -> pl.Series:
    words = without_empty_marks(cells, marks)
    zeros = words.str.ends_with("0") & words.str.contains(".", literal=True)
    if not zeros.any():
        return words
    return words.str.replace(_LAST_ZEROS, "${1}${2}")


def word_of(cell: Any, marks: bool = True) -> str | None:
    """Write one Python value as `canonical_words` writes text; None where it is empty.

    Raises ValueError for a list or a dictionary, which is not a single value.

    >>> word_of(" DE"), word_of("?"), word_of(True), word_of(3.0), word_of("3.00")
    ('DE', None, 'true', '3', '3')
    """
    if isinstance(cell, np.generic):
        cell = float(str(cell)) if isinstance(cell, np.floating) else cell.item()
    if isinstance(cell, list | dict | tuple | set | np.ndarray):
        raise ValueError(f"{cell!r} is not a single value")
    if is_empty(cell) if marks or not isinstance(cell, str) else not cell.strip(SPACES):
        return None
    if isinstance(cell, float):
        if cell.is_integer() and abs(cell) < 2**63:
            return str(int(cell))
        return str(pl.Series([cell]).cast(pl.String)[0])  # digits as a column of numbers gets them
    text = writable(f"{cell:f}" if isinstance(cell, Decimal) else str(cell)).strip(SPACES)
    if len(text) <= _LONGEST_MARK and text.lower() in TRUTH_VALUES:
        return text.lower()
    if text.endswith("0") and "." in text:
        return re.sub(_LAST_ZEROS, r"\1\2", text)
    return text


def words_of_numbers(cells: pl.Series) -> pl.Series:
    """Write numbers and times as words: whole ones without decimals, null where missing."""
    if isinstance(cells.dtype, pl.Datetime):
        cells = cells.dt.cast_time_unit("us").cast(pl.String).str.replace(_NO_FRACTION, "")
    elif cells.dtype == pl.Time:
        cells = cells.dt.to_string("%H:%M:%S%.6f").str.replace(_NO_FRACTION, "")
    if not cells.dtype.is_float():
        return canonical_words(cells.cast(pl.String))
    whole = cells.cast(pl.Int64, strict=False)
    is_whole = (whole.cast(pl.Float64) == cells.cast(pl.Float64)).fill_null(False)
    words = cells.fill_nan(None).cast(pl.String)
    return whole.cast(pl.String).zip_with(is_whole, words).alias(cells.name)


def writable(text: str) -> str:
    r"""Return text that UTF-8 can hold: half of a surrogate pair, as JSON may have, is escaped.

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


def type_name(dtype: pl.DataType) -> str:
    """Return the name of a type, which is all that `frame_of_arrow` keeps of an unusable one."""
    return _stood_for(dtype) or str(dtype)


def _stood_for(dtype: pl.DataType) -> str:
    """Return the name of the type that was unusable; "" for a type as it came."""
    fields = dtype.fields if isinstance(dtype, pl.Struct) else []
    is_kept = [each.dtype for each in fields] in ([pl.Null()], [_MARK])
    return fields[0].name if is_kept else ""


def unusable_cells(name: str, cells: Iterable[Any], source: str, *kinds: type) -> pl.Series:
    """Return a column of which some cells, of these `kinds`, cannot be used.

    Kept are the name of their type, which cells are empty, and which are of these kinds.
    """
    kept: list[Any] = [
        None if is_missing(cell) else {source: [] if isinstance(cell, kinds) else None}
        for cell in cells
    ]
    return pl.Series(name, kept, pl.Struct({source: _MARK}))


def first_unusable(cells: pl.Series) -> int:
    """Return the place of the first cell that cannot be used, in a column of an unfit type."""
    name = _stood_for(cells.dtype)
    marks = cells.struct.field(name) if name else cells
    wrong = cells if marks.null_count() == len(marks) else marks
    return int(wrong.is_not_null().arg_max() or 0)


def are_all_missing(cells: pl.Series) -> bool:
    """Say whether no cell has a value: each is null, or NaN.

    >>> are_all_missing(pl.Series([None, np.nan])), are_all_missing(pl.Series([None, ""]))
    (True, False)
    """
    n_null = cells.null_count()
    if n_null == len(cells) or not cells.dtype.is_float():
        return n_null == len(cells)
    # The first cell says so of most columns, without a pass.
    return is_missing(cells[0]) and int(cells.is_nan().sum()) + n_null == len(cells)


def are_empty(cells: pl.Series) -> pl.Series:
    """Say of each cell whether it says nothing: a missing value, or a mark such as ``NA``.

    >>> are_empty(pl.Series(["1", " NA ", None])).to_list()
    [False, True, True]
    """
    if is_text_type(cells.dtype):
        return without_empty_marks(cells.cast(pl.String)).is_null()
    return cells.is_null() | cells.is_nan() if cells.dtype.is_float() else cells.is_null()


def are_plain(cells: pl.Series | pl.DataFrame) -> bool:
    """Say whether float64 cells are numbers that can be computed with, or empty, all of them."""
    values = cells.to_numpy()  # of a column without a copy where no cell is empty
    # NaN is no null, and fails every comparison.
    n_plain = int(np.count_nonzero(np.abs(values) <= LARGEST_NUMBER))
    n_empty = cells.null_count()
    if isinstance(n_empty, pl.DataFrame):
        n_empty = sum(n_empty.row(0))
    return n_plain == values.size - n_empty
