"""A table as columns of four kinds: what every view of a table starts from."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypedDict

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from rareclass.encoding.raw_columns import (
    RawColumn,
    as_arrow,
    as_plain_as_can_be,
    checked_numbers,
    dates_in,
    numbers_in,
    read_cells,
    spread,
    words_of_numbers,
)
from rareclass.errors import InputError, counted, nearest_name
from rareclass.findings import Finding, FindingKind, warn

Kind = Literal["number", "category", "date", "text"]

# As the command line decides (tables/columns.py, which needs polars): a test holds them together.
FEWEST_MANY_VALUES = 40  # strings of fewer distinct values are categories, whatever they look like
TEXT_WORDS = 3.0
ID_SHARE = 0.95
ID_LEAST_ROWS = 20
ID_NAME = r"(^|[\s_.-])(id|uid|uuid|guid|key|pk|index|idx|rowid|row|row_?(no|num|number)|serial)$"
_ID_NAMES = re.compile(ID_NAME, re.IGNORECASE)
_CAMEL_ID_NAME = re.compile(r"[a-z](Id|ID|Key)$")
_EXPECTED = {"number": "numbers", "date": "dates", "category": "words", "text": "words"}
_SHOWN = 60  # characters of a cell in a message


@dataclass(frozen=True)
class TypedColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "text"}
    values : ndarray of shape (n_rows,)
        Numbers: float64, NaN where missing; truth values are 0 and 1. Dates: float64, seconds
        since 1970 in UTC, NaN where missing. Categories and texts: int32, the position of the
        cell's word in `levels`, -1 where missing.
    levels : ndarray of str objects, or None
        The words of a category or text, each once; some may not occur.
    """

    name: str
    kind: Kind
    values: NDArray[Any]
    levels: NDArray[np.object_] | None = None

    def words(self) -> NDArray[np.object_]:
        """The cells of a category or text as str, or None where missing: shape (n_rows,)."""
        assert self.levels is not None
        words = self.levels[self.values] if len(self.levels) else np.full(len(self.values), None)
        words[self.values < 0] = None
        return words

    def take(self, rows: Any) -> "TypedColumn":
        """These rows of the column."""
        return TypedColumn(self.name, self.kind, self.values[rows], self.levels)


class RememberedColumn(TypedDict):
    """What is kept of a column of the training table, plain data: one a column, in order.

    `kind` is "left out" for a column that is not learned from, and `why` says why it is not.
    """

    name: str
    kind: str
    why: str


@dataclass(frozen=True)
class TypedTable:
    """Typed columns of as many rows; `remembered` is how to read a table like this one.

    Examples
    --------
    >>> import numpy as np
    >>> table = read_table(np.array([[1.0, "a"], [np.nan, "b"]], dtype=object))
    >>> [(column.name, column.kind) for column in table.columns]
    [('x0', 'number'), ('x1', 'category')]
    >>> table.take([1]).column("x1").words().tolist()
    ['b']
    """

    n_rows: int
    columns: tuple[TypedColumn, ...]
    remembered: list[RememberedColumn] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def left_out(self) -> dict[str, str]:
        """The columns of the table that are not learned from, and why not."""
        return {each["name"]: each["why"] for each in self.remembered if each["why"]}

    def column(self, name: str) -> TypedColumn:
        """The column of this name."""
        return self.columns[self.names.index(name)]

    def of_kind(self, *kinds: Kind) -> list[int]:
        """Where in `columns` the columns of these kinds stand."""
        return [k for k, column in enumerate(self.columns) if column.kind in kinds]

    def take(self, rows: Any) -> "TypedTable":
        """These rows of the table; `rows` are row numbers, a mask or a slice."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        n_rows = len(np.empty(self.n_rows, np.bool_)[rows])
        columns = tuple(column.take(rows) for column in self.columns)
        return TypedTable(n_rows, columns, self.remembered)


def read_table(X: Any, like: Sequence[RememberedColumn] | None = None) -> TypedTable:
    """Read a table's columns as numbers, categories, dates and texts.

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or 2-d array
        Columns of an array are named x0, x1, ...; one of objects is looked at column by column.
    like : sequence of RememberedColumn, optional
        ``remembered`` of the table of training. Without it the kinds are found: strings that all
        are plain numbers, or ISO dates, are read as such; other strings are a category, or a text
        where at least half of at least 40 values are distinct and have three words on average. A
        type made for categories (Categorical, Enum, dictionary) is a category in any case. Truth
        values are the numbers 0 and 1. With it, columns are found by name in any order (those of
        an array by position) and read as they were in training: numbers from numeric strings,
        words from numbers (1.0 and 1 are "1"); other columns of X are not looked at.

    Returns
    -------
    table : TypedTable
        Without the columns that are always the same (silently), and without those that name a row
        instead of describing it (with a warning): strings that are all distinct, whole numbers
        that are distinct and in order, or distinct and named like an identifier.

    Raises
    ------
    InputError
        On a sparse matrix, a lazy frame, a number that is infinite or beyond 3e38, a type that is
        neither of the four kinds, a name that occurs twice, no column to learn from; with `like`,
        on a column that is missing or has a cell that cannot be read.

    Notes
    -----
    Time: one pass over the cells; strings are hashed once. Memory: a copy of the table, 8 bytes a
    number and 4 a word. Missing are None, NaN, NaT, null and strings of nothing but spaces.
    """
    names, arrays, n_rows, by_position = _columns_of(X)
    if like is not None:
        return _read_like(names, arrays, n_rows, by_position, like)
    columns: list[TypedColumn] = []
    remembered: list[RememberedColumn] = []
    for name, array in zip(names, arrays, strict=True):
        raw = as_plain_as_can_be(name, read_cells(name, array))
        why = _reason_to_leave_out(name, raw, n_rows)
        kind = "left out" if why else _kind_of(raw)
        remembered.append({"name": name, "kind": kind, "why": why})
        if not why:
            columns.append(TypedColumn(name, _kind_of(raw), raw.values, raw.levels))
    if not columns and n_rows == 1:
        raise InputError("X has one row (n_samples=1).", "Give rows of two classes.")
    if not columns:
        whys = "; ".join(f"{each['name']!r} is {each['why']}" for each in remembered[:6])
        raise InputError(
            f"X has no column to learn from: {whys or 'it has no columns'}.",
            "Give a column that differs between rows.",
        )
    return TypedTable(n_rows, tuple(columns), remembered)


def _columns_of(X: Any) -> tuple[list[str], Iterator[Any], int, bool]:
    """Names, columns as Arrow or numpy arrays, number of rows, and whether names are made up."""
    if sparse.issparse(X):
        raise InputError(
            "X is a sparse matrix, which holds no typed columns.",
            "Pass X.toarray() if that fits in memory; RankRC and MIBC take sparse rows as they "
            "are.",
        )
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        _refuse_twice([str(name) for name in getattr(X, "column_names", None) or list(X.columns)])
        raise
    if isinstance(frame, nw.LazyFrame):
        raise InputError("X is a lazy frame, which holds no rows yet.", "Pass X.collect().")
    if isinstance(frame, nw.DataFrame):
        names = [str(name) for name in frame.columns]
        _refuse_twice(names)  # 1 and "1" are two names to pandas
        columns = (as_arrow(frame[:, k]) for k in range(len(names)))
        return names, columns, len(frame), False
    array = np.asarray(X)
    if array.ndim != 2:
        raise InputError(
            f"Expected a table or a 2D array, got {array.ndim} dimension(s).",
            "Reshape your data: X.reshape(-1, 1) is one column, X.reshape(1, -1) one row.",
        )
    if array.dtype.kind == "c":
        raise InputError("Complex data not supported: X holds complex numbers.", "")
    names = [f"x{k}" for k in range(array.shape[1])]
    return names, iter(array.T), len(array), True


def _refuse_twice(names: list[str]) -> None:
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        raise InputError(
            f"X has two columns named {twice!r}.", "Give every column a name of its own."
        )


def _kind_of(raw: RawColumn) -> Kind:
    """What a column is learned from as."""
    if raw.kind == "word":
        return "text" if _is_text(raw) else "category"
    return "date" if raw.kind == "date" else "number"


def _is_text(raw: RawColumn) -> bool:
    n_distinct, n_present, counts = _distinct_words(raw)
    if raw.chosen or n_distinct < max(FEWEST_MANY_VALUES, 0.5 * n_present):
        return False
    assert raw.levels is not None
    n_words = np.array([len(level.split()) for level in raw.levels])
    return bool(n_words @ counts >= TEXT_WORDS * n_present)


def _distinct_words(raw: RawColumn) -> tuple[int, int, NDArray[np.int64]]:
    """Distinct words that occur, cells that are not missing, and cells of each level."""
    assert raw.levels is not None
    counts = np.bincount(raw.values[raw.values >= 0], minlength=len(raw.levels))
    return int(np.count_nonzero(counts)), int(counts.sum()), counts


def _reason_to_leave_out(name: str, raw: RawColumn, n_rows: int) -> str:
    """Why a column is not learned from; warns of one that names the row. Empty: it is."""
    if raw.kind == "word":
        n_distinct, n_present, _ = _distinct_words(raw)
        low = high = 0.0
    else:
        present = raw.values[~np.isnan(raw.values)]
        n_present = len(present)
        low, high = (present.min(), present.max()) if n_present else (0.0, 0.0)
        n_distinct = min(n_present, 1 if low == high else 2)
    if n_distinct == 0:
        return "always empty"
    if n_distinct == 1 and n_present == n_rows:
        return "always the same"
    why = _reason_for_id_of_words(raw) if raw.kind == "word" else _reason_for_id(name, raw)
    if why:
        warn(
            f"column {name!r} is left out: it is {why}, so it names a row instead of describing "
            "it. Make it a categorical column (or a float one, if it is a quantity) to have it "
            "used; drop it to silence this.",
            finding=Finding(FindingKind.ID_LIKE, {"column": name, "why": why}),
        )
    return why


def _reason_for_id_of_words(raw: RawColumn) -> str:
    n_distinct, n_present, _ = _distinct_words(raw)
    few = n_distinct < max(FEWEST_MANY_VALUES, ID_SHARE * n_present)
    return "" if few or raw.chosen or _is_text(raw) else "different in (nearly) every row"


def _reason_for_id(name: str, raw: RawColumn) -> str:
    values = raw.values
    if not raw.integer or len(values) < ID_LEAST_ROWS or np.isnan(values).any():
        return ""
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return "a different whole number in each row, in order"
    if len(np.unique(values)) < len(values):
        return ""
    if values.max() - values.min() + 1 == len(values):
        return "made of consecutive whole numbers, one a row"
    if _ID_NAMES.search(name) or _CAMEL_ID_NAME.search(name):
        return "named like an identifier and different in every row"
    return ""


def _read_like(
    names: list[str],
    arrays: Iterator[Any],
    n_rows: int,
    by_position: bool,
    like: Sequence[RememberedColumn],
) -> TypedTable:
    """Read the columns of training."""
    remembered = list(like)
    if by_position and len(names) != len(remembered):
        raise InputError(
            f"X has {counted(len(names), 'column')}, where the model was trained on "
            f"{len(remembered)}.",
            "Give the columns of training, in their order.",
        )
    trained = [each["name"] for each in remembered]
    used = {each["name"]: each["kind"] for each in remembered if not each["why"]}
    if by_position:
        names = trained
    absent = [name for name in used if name not in set(names)]
    if absent:
        raise _absent_columns(absent, [name for name in names if name not in used])
    found = {
        name: _read_as(name, used[name], array)
        for name, array in zip(names, arrays, strict=True)
        if name in used
    }
    return TypedTable(n_rows, tuple(found[name] for name in used), remembered)


def _absent_columns(absent: list[str], others: list[str]) -> InputError:
    near = {name: nearest_name(name, others) for name in absent}
    shown = [repr(name) + (f" (is it {near[name]!r}?)" if near[name] else "") for name in absent]
    more = f" and {len(absent) - 12} more" if len(absent) > 12 else ""
    return InputError(
        f"X lacks {counted(len(absent), 'column')} of training: {', '.join(shown[:12])}{more}.",
        "Give every column that the model was trained on; the order does not matter.",
    )


def _read_as(name: str, kind: str, array: Any) -> TypedColumn:
    """Read a column as the kind that it had in training."""
    raw = read_cells(name, array)
    if kind in ("category", "text"):
        if raw.kind == "date":
            raise _wrong_type(name, raw, kind)
        if raw.kind != "word":
            raw = words_of_numbers(raw)
        return TypedColumn(name, "text" if kind == "text" else "category", raw.values, raw.levels)
    wanted: Kind = "date" if kind == "date" else "number"
    if raw.kind == "word":
        return TypedColumn(name, wanted, _read_words_as(name, wanted, raw))
    if raw.kind not in (wanted, "empty"):
        raise _wrong_type(name, raw, wanted)
    return TypedColumn(name, wanted, raw.values)


def _wrong_type(name: str, raw: RawColumn, kind: str) -> InputError:
    return InputError(
        f"Column {name!r} holds cells of type {raw.source}, where the model was trained on "
        f"{_EXPECTED[kind]}.",
        "Give the column as it was in training.",
    )


def _read_words_as(name: str, kind: Kind, raw: RawColumn) -> NDArray[np.float64]:
    """Words as numbers or dates; the first that is none is named."""
    assert raw.levels is not None
    read = numbers_in if kind == "number" else dates_in
    levels = read(raw.levels)
    if levels is None and len(raw.levels):
        wrong = [k for k, level in enumerate(raw.levels) if read(raw.levels[k : k + 1]) is None]
        rows = np.flatnonzero(np.isin(raw.values, wrong))
        row = int(rows[0])
        word = repr(raw.levels[raw.values[row]])
        word = word if len(word) <= _SHOWN else word[: _SHOWN - 3] + "..."
        raise InputError(
            f"Column {name!r} holds {word} at row {row}, where the model was trained on "
            f"{_EXPECTED[kind]}.",
            "Correct that cell, or leave it empty if the value is not known.",
        )
    cells = np.full(len(raw.values), np.nan) if levels is None else spread(levels, raw)
    return checked_numbers(name, cells, "").values if kind == "number" else cells
