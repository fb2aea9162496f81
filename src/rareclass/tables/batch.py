"""Batches of rows: what a source hands over, and Arrow batches in types that every reader knows."""

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple
from zoneinfo import ZoneInfo

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.errors import ErrorKind, first_names
from rareclass.findings import Finding, FindingKind, TableWarning, warn
from rareclass.scratch_file import Scratch

TEXT_LIMIT = 500  # characters of a raw row that are kept; such a row may be of any length


class Rejected(NamedTuple):
    """A row that could not be taken, with the reason.

    The file is named as given, or as inside its folder, "-" for standard input; the raw row is cut
    at 500 characters. The reason is in words for the user.
    """

    file: str
    line: int
    reason: str
    text: str


class Batch(NamedTuple):
    """Rows of one file that follow each other, and the position after them.

    `frame` has the cells of the rows taken, in the order of the source's columns: text, or of
    Parquet its own types. `lines` says where each row begins, from 1: the line of a text file (the
    header of CSV is line 1), the number of the row in Parquet. `n_read` counts the rejected records
    too. `position` is where to go on after this batch, and can be written as JSON.
    """

    frame: pl.DataFrame
    lines: npt.NDArray[np.int64]
    file: str
    rejected: list[Rejected]
    n_read: int
    position: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows taken, that is n_read less the rejected ones."""
        return len(self.lines)


def columns_fault(wanted: Sequence[str], found: Collection[str]) -> str | None:
    """Return what is wrong with the columns of a row or file, None where they are as wanted.

    >>> columns_fault(["a", "b"], ["b", "a"]) is None
    True
    >>> columns_fault(["a", "b"], ["a", "b", "c"]), columns_fault(["a", "b"], ["a"])
    ("unknown column 'c'", "no column 'b'")
    """
    of_wanted, of_found = set(wanted), set(found)
    if of_wanted == of_found:
        return None
    unknown = [name for name in found if name not in of_wanted]
    missing = [name for name in wanted if name not in of_found]
    return f"unknown column {unknown[0]!r}" if unknown else f"no column {missing[0]!r}"


def refuse_twice(title: str, names: Sequence[str]) -> None:
    """Raise `InputError` where two columns have one name: neither can be asked for."""
    if len(set(names)) < len(names):
        twice = next(name for k, name in enumerate(names) if name in names[:k])
        places = first_names([str(k) for k, name in enumerate(names, 1) if name == twice], 6)
        raise ErrorKind.COLUMN_NAMES.error(
            f"{title} has several columns named {twice!r}: {places}.",
            "Give each column a name of its own.",
            column=twice,
        )


def plain_names(names: Iterable[str]) -> list[str]:
    """Return the names that columns have in every table: without spaces around, none empty.

    pandas writes its index under an empty name.

    >>> plain_names(["", " age ", "sex"])
    ['column_1', 'age', 'sex']
    """
    return [name.strip() or f"column_{place}" for place, name in enumerate(names, start=1)]


def unique_names(title: str, names: list[str]) -> list[str]:
    """Return `plain_names` of columns with none twice, and warn of those that were.

    The first column of a name keeps it; the others get a number, as pandas does it: name.1.
    """
    names = plain_names(names)
    wanted, seen = set(names), set[str]()
    unique, renamed = list[str](), list[str]()
    for name in names:
        free, number = name, 0
        while free in seen or (number and free in wanted):
            number += 1
            free = f"{name}.{number}"
        if number:
            renamed.append(f"{free!r} (column {len(unique) + 1})")
        seen.add(free)
        unique.append(free)
    if renamed:
        warn(
            f"{title} has several columns of one name; the later ones are called "
            f"{first_names(renamed, 6)}.",
            TableWarning,
            Finding(FindingKind.COLUMNS_RENAMED, {"path": title}),
        )
    return unique


# What float64 holds to the last digit.
_EXACT_DIGITS = 15
_MOST_DIGITS = 38  # of a decimal of 128 bits
_OFFSET = re.compile(r"[+-]\d\d:?\d\d")  # a zone without a name
_PLAIN = (
    pa.types.is_boolean,
    pa.types.is_integer,
    pa.types.is_floating,
    pa.types.is_string,
    pa.types.is_large_string,
    pa.types.is_string_view,
    pa.types.is_date,
    pa.types.is_time,
    pa.types.is_duration,
    pa.types.is_null,
)


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
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if times.type.tz[0] == "-" else 1)
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


# Rows of a text file are an estimate, and the first may be the longest: less than this part of
# what they foretell is surely too little room.
_SURE_SHARE = 0.5


class SpooledTables:
    """Arrow tables in a nameless file, read back one at a time.

    `folder` is as in `scratch_folder`. Raises `InputError` where the disk has no room.
    """

    def __init__(self, folder: str | Path | None = None) -> None:
        self._file = Scratch(folder)
        self._ends = [0]

    def __iter__(self) -> Iterator[pa.Table]:
        return map(self.read, range(len(self._ends) - 1))

    @property
    def n_bytes(self) -> int:
        """Bytes on disk."""
        return self._ends[-1]

    def append(self, table: pa.Table | pa.RecordBatch, expected: float = 0.0) -> None:
        """Write a table at the end, where so many of its size are `expected` in all."""
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write(table)
        content = sink.getvalue()
        if expected:
            self._file.expect(int(content.size * expected), _SURE_SHARE)
        self._file.append(content)
        self._ends.append(self._file.size)

    def read(self, place: int) -> pa.Table:
        """Read a table by its place, from 0 on."""
        start, end = self._ends[place : place + 2]
        content = np.empty(end - start, np.uint8)
        self._file.read_into(content, start)
        with pa.ipc.open_stream(pa.py_buffer(content)) as reader:
            return reader.read_all()
