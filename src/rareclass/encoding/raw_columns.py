"""The cells of one column, of any make, as numbers, dates or words."""

import math
import re
from typing import Any, Literal, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from rareclass.errors import InputError

LARGEST_NUMBER = 3.0e38
_WHOLE = re.compile(r"[+-]?\d+")
_LEADING_ZERO = re.compile(r"[+-]?0\d")
_ISO_DATE = re.compile(r"\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d(\.\d{1,9})?)?(Z|[+-]\d\d:?\d\d)?)?")


class RawColumn(NamedTuple):
    """A column as its cells say: not yet decided what it is to be learned as.

    Words are `values` of int32 and `levels` as those of a TypedColumn. `source` is what the cells
    are in the words of whoever made them; `chosen`: a type that was chosen to mean categories.
    """

    kind: Literal["number", "date", "word", "empty"]
    values: NDArray[Any]
    levels: NDArray[np.object_] | None = None
    source: str = ""
    integer: bool = False
    chosen: bool = False


def as_arrow(series: Any) -> Any:
    """A column as an Arrow array, or as an array of objects where its cells have several types."""
    try:
        return series.to_arrow()
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return np.asarray(series.to_list(), dtype=object)


def read_cells(name: str, array: Any) -> RawColumn:
    """Read a column by what its cells are."""
    if isinstance(array, np.ndarray):
        if array.dtype.kind in "fiub":
            integer = array.dtype.kind in "iu"
            return checked_numbers(name, array.astype(np.float64), str(array.dtype), integer)
        if array.dtype.kind == "O":
            return _of_objects(name, array)
        array = _arrow(array.astype(str) if array.dtype.kind in "SU" else array)
    return _of_arrow(name, array)


def _arrow(array: NDArray[Any]) -> Any:
    return pa.array(array, from_pandas=True)


def _of_objects(name: str, cells: NDArray[np.object_]) -> RawColumn:
    """Read a column of Python objects: one type as that type, several as words."""
    try:
        return _of_arrow(name, _arrow(cells))
    except (pa.ArrowException, OverflowError, UnicodeEncodeError):
        pass
    if any(isinstance(cell, list | tuple | dict | set | bytes | np.ndarray) for cell in cells):
        raise _unusable(name, "lists, bytes or other objects")
    if all(_is_number_or_nothing(cell) for cell in cells):
        numbers = [math.nan if cell is None else float(cell) for cell in cells]
        return checked_numbers(name, np.array(numbers), "object")
    words = [_word(cell) for cell in cells]
    return _of_arrow(name, pa.array(words, pa.large_string()))


def _is_number_or_nothing(cell: Any) -> bool:
    return cell is None or isinstance(cell, int | float | np.number | np.bool_)


def _word(cell: Any) -> str | None:
    """A cell as a word: whole numbers without decimals, None where missing."""
    if isinstance(cell, np.generic):
        cell = cell.item()
    if cell is None or cell != cell:
        return None
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    # Half of a surrogate pair cannot be written in UTF-8.
    return str(cell).encode("utf-8", "backslashreplace").decode()


def _of_arrow(name: str, array: Any) -> RawColumn:
    """Read an Arrow array or chunked array."""
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    kind = array.type
    source = str(kind)
    if pa.types.is_null(kind):
        return RawColumn("empty", np.full(len(array), np.nan), source=source)
    if pa.types.is_dictionary(kind):
        return _of_dictionary(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or kind == pa.string_view():
        return _of_dictionary(array.cast(pa.large_string()).dictionary_encode(), source)
    if pa.types.is_boolean(kind):
        return checked_numbers(name, _floats(array.cast(pa.uint8())), source)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        return checked_numbers(name, _floats(array), source, pa.types.is_integer(kind))
    if pa.types.is_duration(kind) or pa.types.is_time(kind):
        seconds = _floats(array.cast(pa.int32() if kind.bit_width == 32 else pa.int64()))
        return checked_numbers(name, seconds / _PER_SECOND[kind.unit], source)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind):
        if pa.types.is_date(kind):
            array = array.cast(pa.timestamp("ms"))
        seconds = _floats(array.cast(pa.int64())) / _PER_SECOND[array.type.unit]
        return RawColumn("date", seconds, source=source)
    raise _unusable(name, source)


_PER_SECOND = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}


def _floats(array: Any) -> NDArray[np.float64]:
    """An Arrow array as float64, NaN where null."""
    floats = array.cast(pa.float64(), safe=False)
    return floats.to_numpy(zero_copy_only=False)


def _of_dictionary(array: Any, source: str = "") -> RawColumn:
    """Words of a dictionary-encoded array; of strings unless `source` is empty: then chosen."""
    words = np.empty(len(array.dictionary), dtype=object)
    words[:] = [_word(level) or "" for level in array.dictionary.to_pylist()]
    codes = array.indices.cast(pa.int32()).fill_null(-1).to_numpy(zero_copy_only=False)
    kept = np.array([bool(word.strip()) for word in words], dtype=np.bool_)
    position = np.append(np.where(kept, np.cumsum(kept) - 1, -1), -1).astype(np.int32)
    levels, codes = words[kept], position[codes]
    return RawColumn("word", codes, levels, source or str(array.type), chosen=not source)


def _unusable(name: str, source: str) -> InputError:
    return InputError(
        f"Column {name!r} holds cells of type {source}, which are neither numbers, words nor "
        "dates.",
        "Leave the column out, or turn it into columns of numbers or words.",
    )


def checked_numbers(
    name: str, values: NDArray[np.float64], source: str, integer: bool = False
) -> RawColumn:
    """Numbers as a column; refuses one that is infinite or beyond 3e38, naming its row."""
    with np.errstate(invalid="ignore"):
        wrong = np.abs(values) > LARGEST_NUMBER
    if wrong.any():
        row = int(np.argmax(wrong))
        raise InputError(
            f"Column {name!r} holds {values[row]} at row {row}: infinite, or too large to compute "
            "with.",
            "Correct that cell, or leave it empty (NaN) if the value is not known.",
        )
    return RawColumn("number", values, source=source, integer=integer)


def as_plain_as_can_be(name: str, raw: RawColumn) -> RawColumn:
    """Strings that all are numbers or dates, read as such."""
    if raw.kind != "word" or raw.chosen:
        return raw
    assert raw.levels is not None
    numbers = numbers_in(raw.levels, strict=True)
    if numbers is not None:
        whole = all(map(_WHOLE.fullmatch, raw.levels))
        return checked_numbers(name, spread(numbers, raw), raw.source, whole)
    dates = dates_in(raw.levels)
    return raw if dates is None else RawColumn("date", spread(dates, raw), source=raw.source)


def spread(of_levels: NDArray[np.float64], raw: RawColumn) -> NDArray[np.float64]:
    """A number for each cell from one for each level; NaN where missing."""
    return np.append(of_levels, np.nan)[raw.values]


def numbers_in(words: NDArray[np.object_], strict: bool = False) -> NDArray[np.float64] | None:
    """Words as numbers; None if one is none. `strict`: 007 is a code, not the number 7."""
    try:
        numbers = pc.cast(pa.array(words, pa.large_string()), pa.float64())
    except pa.ArrowInvalid:
        return None
    if len(words) == 0 or (strict and any(map(_LEADING_ZERO.match, words))):
        return None
    return numbers.to_numpy(zero_copy_only=False)


def dates_in(words: NDArray[np.object_]) -> NDArray[np.float64] | None:
    """ISO dates as seconds since 1970, UTC; None if one word is none."""
    if len(words) == 0 or not all(map(_ISO_DATE.fullmatch, words)):
        return None
    stamps = pa.array([_with_time(word) for word in words], pa.large_string())
    try:
        dates = pc.cast(stamps, pa.timestamp("us", tz="UTC"))
    except pa.ArrowInvalid:
        return None
    return dates.cast(pa.int64()).to_numpy(zero_copy_only=False) / 1e6


def _with_time(word: str) -> str:
    """An ISO date with time of day and zone, as Arrow reads it."""
    word = word.replace(" ", "T") if "T" in word or " " in word else f"{word}T00:00"
    day, time = word.split("T")
    if not re.search(r"(Z|[+-]\d\d:?\d\d)$", time):
        time += "Z"
    return f"{day}T{time}"


def words_of_numbers(raw: RawColumn) -> RawColumn:
    """Numbers written as training would have written them."""
    numbers, codes = np.unique(raw.values, return_inverse=True)
    words = np.empty(len(numbers), dtype=object)
    truth = raw.source in ("bool", "boolean")
    words[:] = [_word(bool(number) if truth else number) for number in numbers]
    codes = np.where(np.isnan(raw.values), -1, codes).astype(np.int32)
    return RawColumn("word", codes, words[~np.isnan(numbers)])
