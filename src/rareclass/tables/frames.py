"""Data frames of any make, arrays and Arrow, as columns of polars, in types that readers know."""

import datetime as dt
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import narwhals as nw
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray
from scipy import sparse

from rareclass.errors import ErrorKind
from rareclass.labels.spelling import unmasked
from rareclass.tables import plain_names, refuse_twice
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


# What float64 holds to the last digit.
_EXACT_DIGITS = 15
_MOST_DIGITS = 38  # of a decimal of 128 bits
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")  # a zone without a name
_PLAIN = (
    pa.types.is_boolean, pa.types.is_integer, pa.types.is_floating, pa.types.is_string,
    pa.types.is_large_string, pa.types.is_string_view, pa.types.is_date, pa.types.is_time,
    pa.types.is_duration, pa.types.is_null,
)  # fmt: skip


def plain_schema(schema: pa.Schema) -> pa.Schema:
    """Return the columns with types that every reader knows, as far as there are such.

    A decimal of unknown or very many digits becomes float64, one of whole numbers beyond its 15
    digits text; UUID, JSON and times at a fixed offset from UTC are text, other extension types
    what they are stored as, an enumeration its words. Types that hold neither numbers, words nor
    times stay: lists, bytes, intervals (`is_plain`).
    """
    kinds = [plain_array(pa.nulls(0, f.type), f.metadata).type for f in schema]
    return pa.schema([f.with_type(kind) for f, kind in zip(schema, kinds, strict=True)])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of its `plain_schema`."""
    if batch.schema.equals(schema):
        return batch
    given = zip(batch.columns, batch.schema, strict=True)
    columns = [plain_array(column, field.metadata) for column, field in given]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def is_plain(kind: pa.DataType) -> bool:
    """Say whether cells of this type are numbers, words or times."""
    if pa.types.is_timestamp(kind):
        return not kind.tz or _is_known_zone(kind.tz)
    if pa.types.is_decimal(kind):
        return not pa.types.is_decimal256(kind) and kind.scale >= 0
    return any(is_one(kind) for is_one in _PLAIN)


def _is_known_zone(zone: str) -> bool:
    try:
        ZoneInfo(zone)
    except (ValueError, LookupError, OSError):
        return False
    return True


def plain_array(column: pa.Array, metadata: dict[bytes, bytes] | None = None) -> pa.Array:
    """Return an array in the type that `plain_schema` gives a field with such metadata."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return plain_array(column.dictionary_decode())
    if pa.types.is_run_end_encoded(kind):
        return plain_array(pc.run_end_decode(column))
    if pa.types.is_decimal(kind) and not is_plain(kind):
        return column.cast(_plain_decimal(kind))
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_timestamp(kind) and kind.tz and _OFFSET.fullmatch(kind.tz):
        return _with_offset(column)
    if isinstance(kind, pa.UuidType):
        digits = [None if cell is None else cell.hex() for cell in column.storage.to_pylist()]
        cuts = [h and f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}" for h in digits]
        return pa.array(cuts, pa.string())
    if isinstance(kind, pa.OpaqueType):
        if kind.type_name == "numeric":
            return column.storage.cast(_plain_numeric(metadata or {}))
        return column.storage if pa.types.is_string(kind.storage_type) else column
    return plain_array(column.storage) if isinstance(column, pa.ExtensionArray) else column


def _plain_decimal(kind: pa.DataType) -> pa.DataType:
    n_digits = kind.precision - min(0, kind.scale)
    if n_digits <= _MOST_DIGITS:
        return pa.decimal128(n_digits, max(0, kind.scale))
    return pa.float64() if kind.scale > 0 else pa.string()


def _plain_numeric(metadata: dict[bytes, bytes]) -> pa.DataType:
    # PostgreSQL says in this way how many digits there are, and how many of them decimals.
    modifier = int(metadata.get(b"POSTGRESQL:typmod", -1)) - 4
    is_whole = modifier >= 0 and modifier & 0x7FF == 0
    return pa.string() if is_whole and modifier >> 16 > _EXACT_DIGITS else pa.float64()


def _with_offset(times: pa.Array) -> pa.Array:
    """Return times of a zone without a name as text; not every pyarrow knows such zones."""
    hours, minutes = int(times.type.tz[1:3]), int(times.type.tz[-2:])
    offset = dt.timedelta(hours=hours, minutes=minutes) * (-1 if times.type.tz[0] == "-" else 1)
    kind = pa.timestamp(times.type.unit)
    local = pc.add(times.cast(kind), pa.scalar(offset, pa.duration(kind.unit)))
    return pc.binary_join_element_wise(local.cast(pa.string()), times.type.tz.replace(":", ""), "")


def type_in_words(kind: pa.DataType) -> str:
    """Return an Arrow type by its name, without what its cells are stored as."""
    return kind.type_name if isinstance(kind, pa.OpaqueType) else str(kind)


BYTES = (
    pa.types.is_binary,
    pa.types.is_large_binary,
    pa.types.is_binary_view,
    pa.types.is_fixed_size_binary,
)


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
