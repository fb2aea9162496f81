"""Data frames of any make, and arrays, as columns of polars."""

import datetime as dt
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
from numpy.typing import NDArray
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.labels.spelling import unmasked
from rareclass.tables.batch import (
    BYTES,
    is_plain,
    plain_array,
    plain_names,
    refuse_twice,
    type_in_words,
)
from rareclass.tables.cells import is_missing, type_name, unusable_cells
from rareclass.tables.reading import text_of_values

_MADE_FOR_CATEGORIES = (pl.Categorical, pl.Enum)
_OTHERS = (pl.String, pl.Boolean, pl.Null, pl.Binary)
# Units of NumPy's dates and durations that Arrow has; of days it has dates only.
_UNITS_OF_ARROW = tuple((unit, 1) for unit in ("s", "ms", "us", "ns"))
# Types that only pandas has: their text is what a file of the table holds.
_OF_PANDAS = ("pandas.interval", "pandas.period")


class FrameColumn(NamedTuple):
    """A column; `is_chosen`: its type was made for categories."""

    cells: pl.Series
    is_chosen: bool


class Frame(NamedTuple):
    """A table of any make: its columns come one by one. The names of an array are made up."""

    names: list[str]
    n_rows: int
    columns: Iterator[FrameColumn]
    has_names: bool


def stored_index(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns that pandas stored as the index of a table."""
    try:
        stored: Any = schema.pandas_metadata
        return tuple(name for name in stored["index_columns"] if isinstance(name, str))
    except (KeyError, TypeError, ValueError):  # none, or not written by pandas
        return ()


def category_columns(schema: pa.Schema) -> tuple[str, ...]:
    """Return the columns whose type was made for categories."""
    return tuple(field.name for field in schema if pa.types.is_dictionary(field.type))


def read_frame(X: Any, only: Sequence[str] | None = None) -> Frame:
    """Read a table of pandas, polars, pyarrow or another library, or a 2-d array.

    Types that say something stay: categories, dates with their zone, whole numbers, decimals,
    durations. Columns of Python objects get the type of their cells; cells of several types become
    words. Names are `plain_names`. Sparse and lazy tables, other dimensions, and a name that occurs
    twice are refused. `only` are the columns of a table to read, by default all.
    """
    if sparse.issparse(X):
        raise ErrorKind.UNSUPPORTED.error(
            "X is a sparse matrix, which holds no typed columns.",
            "Pass X.toarray() if that fits in memory; RankRC and MIBC take sparse rows as they "
            "are.",
        )
    frame = as_frame(X)
    if isinstance(frame, nw.DataFrame):
        check_not_forked()
        names = plain_names(map(str, frame.columns))
        refuse_twice("X", names)
        native, wanted = frame.to_native(), list(names if only is None else only)
        of_polars = isinstance(native, pl.DataFrame)
        given = dict(zip(names, (native if of_polars else frame).iter_columns(), strict=True))
        read: Any = _of_polars if of_polars else _of_series
        return Frame(wanted, len(frame), (read(name, given[name]) for name in wanted), True)
    array = np.asarray(unmasked(X))
    if array.ndim != 2:
        raise ErrorKind.SHAPE.error(
            f"Expected a table or a 2D array, got {array.ndim} dimension(s).",
            "Reshape your data: X.reshape(-1, 1) is one column; or pass pandas.DataFrame(X).",
        )
    if array.dtype.kind == "c":
        raise ErrorKind.SHAPE.error("Complex data not supported: X holds some.", "")
    names = [f"x{k}" for k in range(array.shape[1])]
    return Frame(names, len(array), map(_of_numpy, names, array.T), False)


def as_frame(X: Any) -> Any:
    """Return a table as one of narwhals, anything else as it is.

    Raises `InputError` on a lazy table and a name that occurs twice.
    """
    if isinstance(X, pa.RecordBatch):
        X = pa.table(X)
    try:
        frame = nw.from_native(X, pass_through=True)
    except nw.exceptions.DuplicateError:
        names = X.column_names if isinstance(X, pa.Table) else X.columns
        refuse_twice("X", [str(name) for name in names])
        raise
    if isinstance(frame, nw.LazyFrame):
        raise ErrorKind.SHAPE.error(
            "X is a lazy frame, which holds no rows yet.",
            "Pass X.collect(); what has fit_rows takes rareclass.rows.from_table(X, target), which "
            "reads it in parts.",
        )
    if isinstance(frame, nw.DataFrame):
        refuse_twice("X", [str(name) for name in frame.columns])  # pandas may have 1 and "1"
    return frame


def native_table(X: Any) -> Any:
    """Return a table as other libraries take it, anything else as it is; refusals of `as_frame`."""
    return nw.to_native(as_frame(X), pass_through=True)


def numbers_of(X: Any) -> pl.DataFrame:
    """Read columns of any make as numbers: nullable, sparse, decimals, objects, categories.

    Raises `ValueError` for a column of words or dates.
    """
    columns = [cells for cells, _ in read_frame(X).columns]
    for cells in columns:
        if not (cells.dtype.is_numeric() or cells.dtype in (pl.Boolean, pl.Null)):
            raise ErrorKind.CELL.error(
                f"column {cells.name!r} holds {type_name(cells.dtype)}, not numbers. Encode it "
                "first (skrub.TableVectorizer does), or use RareClassifier or the command line, "
                "which encode tables."
            )
    return pl.DataFrame(columns)


# Python objects that are no words, though they have a text.
_NO_WORDS = (list, tuple, dict, set, frozenset, bytes, bytearray, complex, np.ndarray)
# Kinds of Python objects that are never read as one another; the first that fits a type.
_KINDS: dict[str, tuple[type, ...]] = {
    "truth value": (bool, np.bool_),
    "duration": (dt.timedelta, np.timedelta64),
    "moment": (dt.datetime,),
    "day": (dt.date,),
    "number": (int, float, Decimal, np.number),
}


def series_of_objects(name: str, cells: NDArray[np.object_]) -> pl.Series:
    """Read Python objects: of one kind as their type, of several as text, as a file has them.

    Numbers that no type holds exactly are text, too. Lists, bytes and objects that have no text of
    their own make a column that cannot be used, as they do in a file.
    """
    if len(_kinds_of(cells)) <= 1:  # Arrow takes 5 for a day where a date comes first
        with suppress(pa.ArrowException, OverflowError, UnicodeEncodeError, TypeError):
            return _of_arrow(name, pa.array(cells, from_pandas=True)).cells
    for each in dict.fromkeys(map(type, cells)):
        by_place = each.__str__ is object.__str__ and each.__repr__ is object.__repr__  # in memory
        if by_place or issubclass(each, _NO_WORDS):
            return unusable_cells(name, cells, each.__name__, each)
    return text_of_values(list(cells)).alias(name)


def _kinds_of(cells: NDArray[np.object_]) -> set[object]:
    types = set(map(type, cells)) - {type(None)}
    if len(types) > 1:
        types = {type(cell) for cell in cells if not is_missing(cell)}
    kinds: set[object] = {
        next((kind for kind, known in _KINDS.items() if issubclass(each, known)), each)
        for each in types
    }
    if "moment" in kinds:  # whose clocks differ
        moments = (c for c in cells if isinstance(c, dt.datetime) and not is_missing(c))
        return kinds - {"moment"} | {str(moment.tzinfo) for moment in moments}
    return kinds


def _of_polars(name: str, cells: pl.Series) -> FrameColumn:
    dtype, cells = cells.dtype, cells.alias(name)
    if dtype == pl.Object:
        objects = np.array([*cells, None], dtype=object)[:-1]
        return FrameColumn(series_of_objects(cells.name, objects), False)
    if dtype in _MADE_FOR_CATEGORIES:
        return FrameColumn(cells.cast(pl.String), True)
    is_known = dtype.is_numeric() or dtype.is_temporal() or dtype.is_nested() or dtype in _OTHERS
    # What is not known is an extension type.
    return FrameColumn(cells, False) if is_known else _of_arrow(cells.name, cells.to_arrow())


def _of_series(name: str, series: "nw.Series[Any]") -> FrameColumn:
    # Narwhals has no name for some types of pyarrow.
    if not (series.implementation.is_pandas_like() and series.to_native().dtype == object):
        with suppress(pa.ArrowException, TypeError, ValueError, OverflowError):
            array = series.to_arrow()
            is_chosen = pa.types.is_dictionary(array.type)
            kind = array.type.value_type if is_chosen else array.type
            if isinstance(kind, pa.BaseExtensionType) and kind.extension_name in _OF_PANDAS:
                words = [None if is_missing(cell) else str(cell) for cell in series.to_list()]
                return FrameColumn(pl.Series(name, words, pl.String), is_chosen)
            return _of_arrow(name, array)
    cells = np.array([*series.to_list(), None], dtype=object)[:-1]
    return FrameColumn(series_of_objects(name, cells), False)


def _of_numpy(name: str, cells: NDArray[Any]) -> FrameColumn:
    if cells.dtype.kind in "fiub":
        if cells.dtype.kind == "f" and cells.dtype.itemsize not in (4, 8):  # polars has no others
            cells = cells.astype(np.float32 if cells.dtype == np.float16 else np.float64)
        return FrameColumn(pl.Series(name, np.ascontiguousarray(cells)), False)
    if cells.dtype.kind == "O":
        return FrameColumn(series_of_objects(name, cells), False)
    if cells.dtype.kind in "SU":
        cells = cells.astype(str)
    elif np.datetime_data(cells.dtype) not in _UNITS_OF_ARROW:  # of which it may read another
        cells = cells.astype(f"{cells.dtype.kind}8[us]")
    return _of_arrow(name, pa.array(cells, from_pandas=True))


def _of_arrow(name: str, array: Any) -> FrameColumn:
    cells = frame_of_arrow(pa.Table.from_arrays([array], [name])).to_series()
    return FrameColumn(cells.alias(name), pa.types.is_dictionary(array.type))


def frame_of_arrow(rows: pa.RecordBatch | pa.Table) -> pl.DataFrame:
    """Return Arrow rows in types that polars knows: the one way from Arrow to polars.

    Of a column that polars cannot hold only the name of its type is kept, and which cells are
    empty. Raises `InputError` in a process that was forked after the first table.
    """
    check_not_forked()
    columns = []
    for column, field in zip(rows.columns, rows.schema, strict=True):
        chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
        plain = (
            plain_array(chunk, field.metadata) for chunk in chunks or [pa.nulls(0, field.type)]
        )
        columns.append(pa.chunked_array(map(_known_to_polars, plain)))
    return pl.DataFrame(pl.from_arrow(pa.Table.from_arrays(columns, rows.schema.names)))


def _polars_knows(kind: pa.DataType) -> bool:
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _polars_knows(kind.value_type)
    if pa.types.is_struct(kind):
        return kind.num_fields > 0 and all(_polars_knows(field.type) for field in kind)
    return is_plain(kind) or any(is_one(kind) for is_one in BYTES)


def _known_to_polars(column: pa.Array) -> pa.Array:
    if _polars_knows(column.type):
        return column
    nothing, name = pa.nulls(len(column)), type_in_words(column.type)
    return pa.StructArray.from_arrays([nothing], [name], mask=column.is_null())


# A process that was forked from one whose polars had threads: polars waits for them forever.
_had_threads = _has_lost_threads = False


def _look_for_threads() -> None:
    """Note whether this process, about to be forked, has threads of polars; Linux only."""
    global _had_threads
    _had_threads = False
    for name in Path("/proc/self/task").glob("*/comm"):
        with suppress(OSError):  # a thread that has ended
            _had_threads |= name.read_text().startswith("polars-0")


def _lose_threads() -> None:
    global _has_lost_threads
    _has_lost_threads |= _had_threads


def check_not_forked() -> None:
    """Raise `InputError` in a process that would wait forever for threads left in its parent."""
    if _has_lost_threads:
        raise ErrorKind.UNSUPPORTED.error(
            "This process was forked from one that had worked on tables, whose threads are missing "
            "here.",
            "Start processes with loky, spawn or forkserver, or fork before the first table.",
        )


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_look_for_threads, after_in_child=_lose_threads)
