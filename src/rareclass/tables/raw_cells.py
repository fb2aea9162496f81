"""Raw cells of one column of a batch, read as numbers, as words or as labels.

Every cell is read on its own: what it becomes never depends on the cells that it came with.
"""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.tables.cells import EMPTY_MARKS, without_empty_marks

Cells = NDArray[Any]
Mask = NDArray[np.bool_]

RARE_LABELS = ("1", "+1", "true", "yes")
REST_LABELS = ("0", "-1", "false", "no")

_TRUTH_VALUES = ("true", "false")
_LONGEST_MARK = max(map(len, (*EMPTY_MARKS, *_TRUTH_VALUES)))
_WHOLE_NUMBER = re.compile(r"([+-]?\d+)\.0+")
_UNREADABLE = object()


def read_numbers(cells: Cells) -> tuple[NDArray[np.float64], Mask]:
    """Return the cells as float64, and where one holds something else.

    Truth values are 0 and 1; empty cells are NaN, and so are the unreadable ones.

    Examples
    --------
    >>> read_numbers(np.array(["1.5", " NA", True, "abc"], dtype=object))
    (array([1.5, nan, 1. , nan]), array([False, False, False,  True]))
    """
    if cells.dtype != object:
        return cells.astype(np.float64, copy=False), np.zeros(len(cells), dtype=np.bool_)
    text = _as_text(cells.tolist())
    if text is not None:
        return _numbers_of_text(text)
    values = np.full(len(cells), np.nan)
    wrong = np.zeros(len(cells), dtype=np.bool_)
    is_text = np.fromiter((isinstance(cell, str) for cell in cells), np.bool_, len(cells))
    if is_text.any():
        words = list(map(writable, cells[is_text]))
        values[is_text], wrong[is_text] = _numbers_of_text(pl.Series(words, dtype=pl.String))
    values[~is_text], wrong[~is_text] = _numbers_of_objects(cells[~is_text])
    return values, wrong


def read_words(cells: Cells) -> tuple[Cells, Mask]:
    """Return the cells as str or None (empty), and where one is no single value.

    Numbers are written out, whole ones without decimals; truth values are ``true`` and ``false``.

    Examples
    --------
    >>> read_words(np.array([" DE", "?", True, 3.0], dtype=object))[0].tolist()
    ['DE', None, 'true', '3']
    """
    words, wrong = _read_distinct(cells, _word)
    words[wrong] = None
    return words, wrong


def read_rare_or_rest(cells: Cells, positive: str | None) -> tuple[NDArray[np.float64], Mask]:
    """Return 1 for the rare class, 0 for the rest, NaN for empty; and where a cell is neither.

    ``1``, ``1.0`` and ``"1"`` are one label. Without `positive`, ``1``, ``true`` and ``yes`` are
    rare, ``0``, ``-1``, ``false`` and ``no`` are the rest, all else is neither; with it, everything
    but that label is the rest.

    Examples
    --------
    >>> read_rare_or_rest(np.array(["yes", 0, None, "maybe"], dtype=object), None)
    (array([ 1.,  0., nan, nan]), array([False, False, False,  True]))
    """
    rare = RARE_LABELS if positive is None else (_label_text(positive),)

    def label(cell: Any) -> float:
        text = _label_text(cell)
        if text in rare or (positive is None and text.lower() in rare):
            return 1.0
        if is_empty(text):
            return math.nan
        if positive is None and text.lower() not in REST_LABELS:
            raise ValueError
        return 0.0

    labels, wrong = _read_distinct(cells, label)
    labels[wrong] = math.nan
    return labels.astype(np.float64), wrong


def is_empty(cell: Any) -> bool:
    """Whether a raw cell says nothing: None, NaN, or a mark such as ``NA``."""
    if isinstance(cell, str):
        stripped = cell.strip()
        return len(stripped) <= _LONGEST_MARK and stripped.lower() in EMPTY_MARKS
    return cell is None or cell != cell


def writable(text: str) -> str:
    r"""Return text that UTF-8 can hold: half of a surrogate pair, as JSON may have, is escaped.

    Examples
    --------
    >>> print(writable("caf\u00e9 \ud800"))
    café \ud800
    """
    return text.encode("utf-8", "backslashreplace").decode()


def _as_text(cells: list[Any]) -> pl.Series | None:
    try:
        return pl.Series(cells, dtype=pl.String)
    except (TypeError, OverflowError, UnicodeEncodeError):
        return None


def _numbers_of_text(text: pl.Series) -> tuple[NDArray[np.float64], Mask]:
    numbers = text.cast(pl.Float64, strict=False)
    wrong = np.zeros(len(text), dtype=np.bool_)
    # A copy: the buffers of polars are read-only.
    values = np.array(numbers.to_numpy(), dtype=np.float64)
    if numbers.null_count() > text.null_count():
        # Blanks, marks and truth values are looked at alone: most columns have few.
        rest = (numbers.is_null() & text.is_not_null()).to_numpy()
        words = without_empty_marks(text.filter(rest)).replace({"true": "1", "false": "0"})
        read = words.cast(pl.Float64, strict=False)
        values[rest] = read.to_numpy()
        wrong[rest] = (read.is_null() & words.is_not_null()).to_numpy()
    return values, wrong


def _numbers_of_objects(cells: Cells) -> tuple[NDArray[np.float64], Mask]:
    wrong = np.zeros(len(cells), dtype=np.bool_)
    if set(map(type, cells)) <= {float, int, bool, type(None)}:
        try:
            return cells.astype(np.float64), wrong
        except OverflowError:
            pass
    values = np.full(len(cells), np.nan)
    for i, cell in enumerate(cells):
        try:
            values[i] = math.nan if cell is None else float(cell)
        except OverflowError:
            values[i] = math.inf
        except (TypeError, ValueError):
            wrong[i] = True
    return values, wrong


def _read_distinct(cells: Cells, read: Callable[[Any], Any]) -> tuple[Cells, Mask]:
    """Read each distinct cell once; `read` raises ValueError for what it cannot take."""

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
        return readings, np.zeros(len(listed), dtype=np.bool_)
    wrong = (reading is _UNREADABLE for reading in readings)
    return readings, np.fromiter(wrong, np.bool_, len(listed))


def _word(cell: Any) -> str | None:
    if isinstance(cell, (list, dict)):
        raise ValueError
    if is_empty(cell):
        return None
    if not isinstance(cell, (bool, float, np.bool_)):
        return _stripped(str(cell))
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < 2**63:
        return str(int(cell))
    return _stripped(str(cell))


def _stripped(text: str) -> str:
    text = writable(text.strip())
    if len(text) <= _LONGEST_MARK and text.lower() in _TRUTH_VALUES:
        return text.lower()
    return text


def _label_text(cell: Any) -> str:
    """Return the label in its one spelling; empty marks stay, as one may be the rare label."""
    if isinstance(cell, str):
        text = _stripped(cell)
        whole = _WHOLE_NUMBER.fullmatch(text)
        return whole[1] if whole else text
    return _word(cell) or ""
