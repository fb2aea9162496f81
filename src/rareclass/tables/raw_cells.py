"""Raw cells of a column of a batch, Python values in an array, read as numbers or words.

Every cell is read on its own: what it becomes never depends on the cells that it came with.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.tables.cells import number_of, numbers_in, without_empty_marks, word_of, writable

Cells = NDArray[Any]
Mask = NDArray[np.bool_]
_UNREADABLE = object()


class ReadCells(NamedTuple):
    """Cells that were read, and which of them could not be: those are empty in `values`."""

    values: NDArray[Any]
    wrong: Mask


def read_numbers(cells: Cells, number_format: str | None = None) -> ReadCells:
    """Read cells as float64, NaN where empty; truth values are 0 and 1.

    Examples
    --------
    >>> read_numbers(np.array(["1.5", " NA", True, "abc"], dtype=object)).values
    array([1.5, nan, 1. , nan])
    """
    if cells.dtype != object:
        return ReadCells(cells.astype(np.float64, copy=False), np.zeros(len(cells), np.bool_))
    text = _as_text(cells.tolist())
    if text is not None:
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


def _as_text(cells: list[Any]) -> pl.Series | None:
    try:
        return pl.Series(cells, dtype=pl.String)
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None


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
