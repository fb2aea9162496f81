"""A table as columns of four kinds, read from a data frame or an array: where each view starts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple

import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray

from rareclass.errors import ErrorKind, InputError, counted, first_names, nearest_name, no_rows
from rareclass.findings import Finding, FindingKind, warn
from rareclass.rows import LabelledRows, RowSource
from rareclass.tables.cells import are_plain, is_text_type
from rareclass.tables.columns import (
    Column,
    are_too_long,
    check_some_are_used,
    describe_column,
    facts_for_kind,
    facts_of,
    facts_of_words,
)
from rareclass.tables.frames import FrameColumn, read_frame, stored_index
from rareclass.tables.reading import CellReading, is_usable, read_cells
from rareclass.tables.text_columns import CellProfile, find_reading

# Missing columns that a message names.
_MOST_NAMED = 12
Kind = Literal["number", "category", "date", "text"]


@dataclass(frozen=True)
class TypedColumn:
    """One column of a table.

    Attributes
    ----------
    name : str
    kind : {"number", "category", "date", "text"}
    values : ndarray of shape (n_rows,)
        Numbers: float64, NaN where missing; truth values are 0 and 1. Dates: float64, seconds
        since 1970 by the clock of their own zone, NaN where missing. Categories and texts: int32,
        the position of the cell's word in `levels`, -1 where missing.
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

    @property
    def is_clock(self) -> bool:
        """Say whether the column only rises or only falls, as the time of rows in order does.

        Dates may be equal; of numbers half or more differ.
        """
        if self.kind not in ("number", "date"):
            return False
        step = np.diff(self.values)
        if not ((step >= 0).all() or (step <= 0).all()):
            return False
        n_steps = np.count_nonzero(step)
        return bool(n_steps and (self.kind == "date" or 2 * n_steps >= len(step)))

    def take(self, rows: Any) -> "TypedColumn":
        """Take some rows of the column."""
        return TypedColumn(self.name, self.kind, self.values[rows], self.levels)


@dataclass(frozen=True)
class TypedTable:
    """Typed columns of as many rows; `remembered` are all columns, the unused ones too, as read.

    `has_names`: the names were given, not made up for those of an array.

    Examples
    --------
    >>> import numpy as np
    >>> from rareclass.encoding.typed_table import read_table
    >>> table = read_table(np.array([[1.0, "a"], [np.nan, "b"]], dtype=object))
    >>> [(column.name, column.kind) for column in table.columns]
    [('x0', 'number'), ('x1', 'category')]
    >>> table.take([1]).column("x1").words().tolist()
    ['b']
    """

    n_rows: int
    columns: tuple[TypedColumn, ...]
    remembered: list[Column]
    has_names: bool = True

    @property
    def shape(self) -> tuple[int, int]:
        """Rows, and columns that are learned from."""
        return self.n_rows, len(self.columns)

    @property
    def names(self) -> list[str]:
        """The names of the columns, in order."""
        return [column.name for column in self.columns]

    @property
    def moment(self) -> NDArray[np.intp] | None:
        """The place of each row in time; None where no column says that they are in its order."""
        has_clock = any(column.is_clock for column in self.columns)
        return np.arange(self.n_rows) if has_clock else None

    def column(self, name: str) -> TypedColumn:
        """The column of this name."""
        return self.columns[self.names.index(name)]

    def of_kind(self, *kinds: Kind) -> list[int]:
        """Where in `columns` the columns of these kinds stand."""
        return [k for k, column in enumerate(self.columns) if column.kind in kinds]

    def groups_of_equal(self, *others: NDArray[Any] | None) -> NDArray[np.int64]:
        """Return the group of each row that is equal in all columns and in `others`."""
        cells = [column.values for column in self.columns]
        cells += [other for other in others if other is not None]
        return groups_of_equal(pl.DataFrame({str(k): each for k, each in enumerate(cells)}))

    def take(self, rows: Any) -> "TypedTable":
        """Take some rows of the table; `rows` are row numbers, a mask or a slice."""
        if not isinstance(rows, slice):
            rows = np.asarray(rows)
        n_rows = len(np.empty(self.n_rows, np.bool_)[rows])
        columns = tuple(column.take(rows) for column in self.columns)
        return replace(self, n_rows=n_rows, columns=columns)


# What a user of data frames can do about a column whose text may mean two things.
_OTHERWISE = "a categorical type takes the column as categories"


def read_table(X: Any, like: Sequence[Column] | None = None) -> TypedTable:
    """Read a table's columns as numbers, categories, dates and texts.

    Parameters
    ----------
    X : pandas, polars or pyarrow table, or 2-d array
        Columns of an array are named x0, x1, ...; one of objects is looked at column by column. A
        `TypedTable` is returned as it is.
    like : sequence of Column, optional
        ``remembered`` of the table of training. Without it the kinds are found as
        ``rareclass fit`` finds those of a file: strings that all are numbers, or dates written in
        one way, are read as such, and marks such as NA are empty; other strings are a category, or
        a text where at least half of at least 40 values are distinct and have three words on
        average. A type made for categories (Categorical, Enum, dictionary) is a category in any
        case. Truth values are the numbers 0 and 1, and strings with leading zeros (007) are words.
        With it, columns are found by name in any order (those of an array by position) and read as
        they were in training: numbers from numeric strings, words from numbers (1.0 and 1 are "1");
        other columns of X are not looked at.

    Returns
    -------
    table : TypedTable
        Without the columns that are always the same (silently), and without those that name a row
        instead of describing it (with a warning): strings that are all distinct, whole numbers
        that are distinct and in order, or distinct and named like an identifier. Columns of lists,
        bytes and other types that are none of the four kinds are left out, too (with a warning).

    Raises
    ------
    InputError
        On a sparse matrix, a lazy frame, a number that is infinite or beyond 3e38, strings that
        are numbers but for a stray cell or whose commas may mean two things, a name that occurs
        twice, no column to learn from; with `like`, on a column that is missing or has a cell that
        cannot be read.

    Notes
    -----
    Time: one pass over the cells; strings are hashed once. Memory: a copy of the table, 8 bytes a
    number and 4 a word. Missing are None, NaN, NaT, null, blank strings and marks such as NA.
    """
    if isinstance(X, TypedTable):
        return X
    frame = read_frame(X)
    if like is not None:
        by_position = not frame.has_names
        if by_position and len(frame.names) != len(like):
            raise ErrorKind.SHAPE.error(
                f"X has {counted(len(frame.names), 'column')}, where the model was trained on "
                f"{len(like)}.",
                "Give the columns of training, in their order.",
            )
        names = [column.name for column in like] if by_position else frame.names
        used = {column.name: column for column in like if column.is_used}
        check_all_there("X", used, names)
        found = {
            name: _typed_column(used[name], _read(cells.alias(name), used[name].reading))
            for name, (cells, _) in zip(names, frame.columns, strict=True)
            if name in used
        }
        return TypedTable(frame.n_rows, tuple(found[name] for name in used), list(like))
    if not frame.n_rows:
        raise no_rows("X")
    columns: list[TypedColumn] = []
    remembered: list[Column] = []
    index = stored_index(X.schema) if isinstance(X, pa.Table) else ()
    for each in frame.columns:
        column, typed = _understood(each, each.cells.name in index)
        remembered.append(column)
        if typed is not None:
            columns.append(typed)
    check_some_are_used(f"X (n_samples={frame.n_rows})", remembered, frame.n_rows)
    return TypedTable(frame.n_rows, tuple(columns), remembered, frame.has_names)


def in_memory(X: Any, chosen: NDArray[np.intp] | None = None) -> Any:
    """Return rows of a file, or those chosen, with their columns' names; other X as it is."""
    names = X.feature_names if isinstance(X, LabelledRows) else None
    source = X.source if isinstance(X, LabelledRows) else X
    if not isinstance(source, RowSource):
        return X
    rows = source.take(slice(None) if chosen is None else chosen)
    return rows if names is None else pa.table(dict(zip(names, rows.T, strict=True)))


class CodedText(NamedTuple):
    """Text cells by their distinct levels; the code of an empty cell is -1."""

    levels: pl.Series
    codes: NDArray[np.int32]

    @property
    def counts(self) -> NDArray[np.int64]:
        """Cells of each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))


def coded_text(cells: pl.Series) -> CodedText:
    """Return text cells by their distinct levels, in order of appearance."""
    coded = cells.cast(pl.String).to_arrow().dictionary_encode()
    # By way of polars: from and to NumPy, Arrow imports pandas where it is installed.
    codes = pl.Series(pl.from_arrow(coded.indices), dtype=pl.Int32).fill_null(-1).to_numpy()
    return CodedText(pl.Series(cells.name, pl.from_arrow(coded.dictionary), pl.String), codes)


def _read(cells: pl.Series | CodedText, reading: CellReading) -> pl.Series | CodedText:
    """Read cells; of text each distinct one once."""
    if isinstance(cells, pl.Series) and is_text_type(cells.dtype):
        cells = coded_text(cells)
    if not isinstance(cells, CodedText):
        typed = read_cells(cells, reading, 0)
        return coded_text(typed) if reading.reads_as == "string" else typed
    try:
        levels = read_cells(cells.levels, reading, 0)
    except InputError:  # again, for the row
        read_cells(cells.levels.gather(_places(cells.codes)), reading, 0)
        raise
    if reading.reads_as != "string":
        return levels.gather(_places(cells.codes))
    distinct = coded_text(levels)
    return CodedText(distinct.levels, np.append(distinct.codes, np.int32(-1))[cells.codes])


def _places(codes: NDArray[np.int32]) -> pl.Series:
    places = pl.Series(codes)
    return places.set(places < 0, None)


def _understood(given: FrameColumn, is_index: bool) -> tuple[Column, TypedColumn | None]:
    """Decide what a column of training holds and read its cells; warn of one that is left out."""
    is_text = is_text_type(given.cells.dtype)
    cells = coded_text(given.cells) if is_text else given.cells
    reading, integers = _reading_of(given, cells)
    typed = cells if reading is None else _read(cells, reading)
    if isinstance(typed, CodedText):
        levels = typed.levels.to_numpy()
        facts = facts_of_words(given.cells.name, levels, typed.counts, len(typed.codes))
    else:
        facts = facts_of(typed) if reading is None else facts_for_kind(typed, integers)
    column = describe_column(
        facts, reading, integers=integers, is_category=given.is_chosen, is_index=is_index
    )
    why = column.why_dropped
    if column.kind == "id-like":
        warn(
            f"column {column.name!r} is left out: it is {why}, so it names a row instead of "
            "describing it. Make it a categorical column (or a float one, if it is a quantity) to "
            "have it used; drop it to silence this.",
            finding=Finding(FindingKind.ID_LIKE, {"column": column.name, "why": why}),
        )
    elif column.kind == "unusable":
        warn(
            f"column {column.name!r} is left out: {why}. Turn it into columns of numbers or words "
            "to have it used; drop it to silence this.",
            finding=Finding(FindingKind.UNUSABLE, {"column": column.name, "why": why}),
        )
    return column, _typed_column(column, typed) if column.is_used else None


def _reading_of(
    given: FrameColumn, cells: pl.Series | CodedText
) -> tuple[CellReading | None, bool]:
    """How a column of training is read, None for none, and whether its numbers are whole."""
    name, dtype = given.cells.name, given.cells.dtype
    if given.is_chosen and is_usable(dtype):
        return CellReading("string", marks=False), False
    profile, is_too_long = None, False
    if isinstance(cells, CodedText):
        profile = CellProfile()
        profile.add(cells.levels, 0, cells.counts)
        profile.n_null = given.cells.null_count()
        profile.first_text_row = int(np.argmax(cells.codes == profile.first_text_row))
    else:
        is_too_long = are_too_long(cells)
    found = find_reading(name, dtype, profile, otherwise=_OTHERWISE, is_too_long=is_too_long)
    if found is None:
        return None, False
    if found.note is not None:
        found.note.tell(name, is_typed=True)
    return found.reading, found.integers


def read_as_trained(batch: pl.DataFrame, columns: Iterable[Column], first_row: int) -> pl.DataFrame:
    """Return the trained-on columns of a batch, typed as they were in training.

    `first_row` is the row in the file of the first one, counted from 1, for messages. Raises
    `InputError` at a cell that does not fit, naming column, row and value.
    """
    columns = list(columns)
    if all(dtype == pl.Float64 for dtype in batch.dtypes):  # one look at all cells
        is_same = batch.columns == [column.name for column in columns]
        if is_same and all(each.reads_as == "number" for each in columns) and are_plain(batch):
            return batch
    return pl.DataFrame(
        [read_cells(batch[column.name], column.reading, first_row) for column in columns]
    )


def typed_table(frame: pl.DataFrame | TypedTable, columns: Sequence[Column]) -> TypedTable:
    """Return columns of a frame, whose cells are read as `columns` say, as a typed table.

    A typed table is returned as it is.
    """
    if isinstance(frame, TypedTable):
        return frame
    typed = [
        _typed_column(
            each, coded_text(frame[each.name]) if each.reads_as == "string" else frame[each.name]
        )
        for each in columns
    ]
    return TypedTable(frame.height, tuple(typed), list(columns))


def _typed_column(column: Column, typed: pl.Series | CodedText) -> TypedColumn:
    if isinstance(typed, CodedText):
        levels = typed.levels.to_numpy()
        kind: Kind = "text" if column.kind == "text" else "category"
        return TypedColumn(column.name, kind, typed.codes, levels)
    if column.reads_as == "number":
        return TypedColumn(column.name, "number", typed.to_numpy())
    seconds = typed.dt.timestamp("us").cast(pl.Float64) / 1e6
    return TypedColumn(column.name, "date", seconds.to_numpy())


def check_all_there(title: str, used: Iterable[str], names: Sequence[str]) -> None:
    """Raise `InputError` where a table lacks columns that a model was trained on."""
    there, wanted = set(names), dict.fromkeys(used)
    absent = [name for name in wanted if name not in there]
    if not absent:
        return
    others = [name for name in names if name not in wanted]
    shown = [repr(name) for name in absent]
    for place, name in enumerate(absent[:_MOST_NAMED]):
        if near := nearest_name(name, others):
            shown[place] += f" (is it {near!r}?)"
    columns = "column" if len(absent) == 1 else "columns"
    raise ErrorKind.MISSING_COLUMN.error(
        f"{title} lacks {columns} {first_names(shown, _MOST_NAMED)}, "
        "which the model was trained on.",
        "Give every column of training, in any order, or fit without it.",
        column=absent[0],
    )


def groups_of_equal(rows: pl.DataFrame) -> NDArray[np.int64]:
    """Return the group of each row: rows equal in every column are one, numbered as they appear."""
    position = "\0row"
    groups = rows.with_row_index(position).group_by(rows.columns, maintain_order=True)
    members = groups.agg(pl.col(position))[position]
    group = np.empty(rows.height, np.int64)
    group[members.explode().to_numpy()] = np.repeat(np.arange(len(members)), members.list.len())
    return group


class DistinctRows(NamedTuple):
    """Rows that are learned from, in order, and how many rows each stands for; None for one.

    `place` is where among them each row as given is.
    """

    rows: NDArray[np.int64]
    copies: NDArray[np.float64] | None
    place: NDArray[np.int64]


def distinct_rows(
    group: NDArray[np.integer],
    code: NDArray[np.int16],
    weigh: bool = True,
    weight: NDArray[np.float64] | None = None,
) -> DistinctRows:
    """Return the first row of each group of copies; all rows where rows recur.

    group: a number from 0 on for each row, equal for rows that are equal in all columns; code: of
    its label; weight: that the copies of a row have together, by default their number. Rows recur
    where as many rare rows equal a row of the most frequent label as equal rare rows only. Without
    `weigh` only distinct rows count, whether they recur or not. Time: O(n log n).
    """
    every, is_rare = np.arange(len(code)), code != np.argmax(np.bincount(code))
    if weigh and _recur(group, is_rare):
        return DistinctRows(every, None, every)
    of_both = group.astype(np.int64) * (int(code.max()) + 1) + code
    _, first, which = np.unique(of_both, return_index=True, return_inverse=True)
    if len(first) == len(code):
        return DistinctRows(every, None, every)
    in_order = np.argsort(first)
    copies = np.bincount(which, weight)[in_order].astype(np.float64)
    return DistinctRows(first[in_order], copies, np.argsort(in_order)[which])


def _recur(group: NDArray[np.integer], is_rare: NDArray[np.bool_]) -> bool:
    n_groups = int(group.max(initial=-1)) + 1
    n_rare = np.bincount(group[is_rare], minlength=n_groups)
    has_others = np.bincount(group[~is_rare], minlength=n_groups) > 0
    n_recurring, n_copied = n_rare[has_others].sum(), n_rare[~has_others & (n_rare > 1)].sum()
    return bool(0 < n_recurring >= n_copied)


def with_equal_rows_together(
    group: NDArray[np.integer], is_rare: np.ndarray, fold: np.ndarray
) -> np.ndarray:
    """Move each majority row that equals a rare row to the fold of that rare row.

    `group`: equal for equal rows. For rows that stand for copies by their weight: held out apart
    from an equal rare row, one row for all copies is scored at the top of the list, with all of its
    weight, by functions that know the place by the rare row alone. The folds stay as they are where
    one would lose its last majority row.
    """
    rare = np.flatnonzero(is_rare & (fold >= 0))
    of_group = np.full(int(group.max(initial=-1)) + 1, -1)
    of_group[group[rare]] = fold[rare]
    equal = of_group[group]
    moved = np.where(~is_rare & (fold >= 0) & (equal >= 0), equal, fold)
    before, after = (len(np.unique(folds[~is_rare])) for folds in (fold, moved))
    return moved if after == before else fold
