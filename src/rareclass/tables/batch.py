"""Batches of rows: what a source hands over, and Arrow batches in types that every reader knows."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.errors import ErrorKind, InputError

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

    `columns` holds one raw cell per row, in the order of the source's columns: object arrays of
    str, float, int, bool or None; numeric columns of Parquet as float64 with NaN for null. `lines`
    says where each row begins, from 1: the line of a text file (the header of CSV is line 1), the
    number of the row in Parquet. `n_read` counts the rejected records too. `position` is where to
    go on after this batch, and can be written as JSON.

    Examples
    --------
    >>> empty = Batch({}, np.empty(0, np.int64), "rows.csv", [], 0, {})
    >>> empty.n_rows
    0
    """

    columns: dict[str, npt.NDArray[Any]]
    lines: npt.NDArray[np.int64]
    file: str
    rejected: list[Rejected]
    n_read: int
    position: dict[str, Any]

    @property
    def n_rows(self) -> int:
        """The number of rows taken, that is n_read less the rejected ones."""
        return len(self.lines)


def object_columns(
    names: Sequence[str], rows: Sequence[Sequence[Any]]
) -> dict[str, npt.NDArray[Any]]:
    """Return the cells of rows as one object array per column.

    Examples
    --------
    >>> object_columns(["a", "b"], [["1", "x"], ["2", None]])["b"].tolist()
    ['x', None]
    """
    cells = zip(*rows, strict=True) if rows else [()] * len(names)
    return {
        name: np.fromiter(column, dtype=object, count=len(rows))
        for name, column in zip(names, cells, strict=True)
    }


def columns_fault(wanted: Sequence[str], found: Collection[str]) -> str | None:
    """Return what is wrong with the columns of a row or file, None where they are as wanted.

    Examples
    --------
    >>> columns_fault(["a", "b"], ["b", "a"]) is None
    True
    >>> columns_fault(["a", "b"], ["a", "b", "c"]), columns_fault(["a", "b"], ["a"])
    ("unknown column 'c'", "no column 'b'")
    """
    unknown = [name for name in found if name not in wanted]
    if unknown:
        return f"unknown column {unknown[0]!r}"
    missing = [name for name in wanted if name not in found]
    return f"no column {missing[0]!r}" if missing else None


_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)
# What float64 holds to the last digit.
_EXACT_DIGITS = 15
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
# Where the hyphens of a UUID are, and where its digits.
_HYPHENS = [8, 13, 18, 23]
_DIGITS = [place for place in range(36) if place not in _HYPHENS]


def plain_schema(schema: pa.Schema, title: str, categories: bool = False) -> pa.Schema:
    """Return the columns with types that every reader knows.

    A decimal of unknown or very many digits becomes float64, one of whole numbers beyond its 15
    digits text; UUID and JSON are text, other extension types what they are stored as, an
    enumeration its words unless `categories` are kept. Raises `InputError` for a type that has no
    such cells, naming the column.
    """
    return pa.schema([pa.field(f.name, _plain_type(f, title, categories)) for f in schema])


def plain_batch(batch: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    """Return a batch with the types of its `plain_schema`."""
    if batch.schema.equals(schema):
        return batch
    columns = [
        plain_array(column, field.type) for column, field in zip(batch.columns, schema, strict=True)
    ]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _plain_type(field: pa.Field, title: str, categories: bool) -> pa.DataType:
    kind = field.type
    if pa.types.is_dictionary(kind):
        return kind if categories else kind.value_type
    if pa.types.is_decimal256(kind):
        return pa.float64()
    if isinstance(kind, pa.UuidType):
        return pa.string()
    if isinstance(kind, pa.OpaqueType):
        if kind.type_name == "numeric":
            return pa.string() if _is_long_integer(field) else pa.float64()
        if not pa.types.is_string(kind.storage_type):
            raise _unusable(field.name, kind.type_name, title)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(pa.field(field.name, kind.storage_type), title, categories)
    if pa.types.is_interval(kind) or pa.types.is_union(kind):
        raise _unusable(field.name, "interval" if pa.types.is_interval(kind) else "union", title)
    return kind


def _is_long_integer(field: pa.Field) -> bool:
    """Say whether a numeric of PostgreSQL is declared to hold whole numbers of many digits."""
    modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", -1)) - 4
    return modifier >= 0 and modifier & 0x7FF == 0 and modifier >> 16 > _EXACT_DIGITS


def plain_array(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array with the type that `plain_schema` gives it."""
    if isinstance(column.type, pa.UuidType):
        return _uuid_text(column.storage)
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == wanted else column.cast(wanted)


def _uuid_text(cells: pa.Array) -> pa.Array:
    """UUIDs of 16 bytes as text with hyphens."""
    present = cells.drop_null()
    count = len(present)
    raw = np.frombuffer(present.buffers()[1] or b"", np.uint8)
    raw = raw[16 * present.offset :][: 16 * count].reshape(count, 16)
    text = np.full((count, 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEX[np.stack([raw >> 4, raw & 15], axis=2).reshape(count, 32)]
    words = pa.array(text.view("S36")[:, 0].astype(str), pa.string())
    if count == len(cells):
        return words
    is_there = cells.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(is_there, np.cumsum(is_there) - 1, 0)
    return words.take(pa.array(places, mask=~is_there))


def _unusable(name: str, kind: str, title: str) -> InputError:
    return InputError(
        f"{title}: column {name!r} holds {kind}, which cannot be read.",
        "Leave the column out, or make it a text, a number or a time: in a query by "
        f'CAST("{name}" AS text).',
        ErrorKind.CELL,
        column=name,
    )


class ArrowSource:
    """The rows of Arrow batches of one schema, from the row after `row` on.

    Numeric columns become float64 with NaN for null; all others object arrays with None for
    null, dates and times as ISO text, lists and structs as JSON text. Numeric columns that are to
    be exact are Python numbers with None for null: float64 takes whole numbers beyond 2^53, such
    as ids, for equal. Where there are not the columns asked for, all rows are rejected.
    """

    def __init__(
        self,
        name: str,
        schema: pa.Schema,
        batches: Iterator[pa.RecordBatch],
        row: int,
        columns: Sequence[str] | None,
        exact_columns: Collection[str],
    ) -> None:
        self._name, self._batches, self._row = name, batches, row
        self._exact = frozenset(exact_columns)
        self.columns: list[str] = list(schema.names if columns is None else columns)
        self._fault = columns_fault(self.columns, schema.names)
        self._left = pa.Table.from_batches([], schema)

    def read(self, max_records: int) -> Batch | None:
        """Return the next rows; None at the end."""
        table = self._next_rows(max_records)
        if max_records and not table.num_rows:
            return None
        first = self._row + 1
        self._row += table.num_rows
        lines = np.arange(first, self._row + 1, dtype=np.int64)
        rejected: list[Rejected] = []
        if self._fault is not None:
            rejected = self._all_rejected(table, first)
            lines = lines[:0]
        return Batch(
            columns=self._arrays(table),
            lines=lines,
            file=self._name,
            rejected=rejected,
            n_read=table.num_rows,
            position=self._position(table),
        )

    def _position(self, table: pa.Table) -> dict[str, Any]:
        """Where to go on after these rows."""
        return {"row": self._row, "columns": self.columns}

    def _next_rows(self, max_records: int) -> pa.Table:
        while self._left.num_rows < max_records:
            batch = next(self._batches, None)
            if batch is None:
                break
            more = pa.Table.from_batches([batch])
            self._left = pa.concat_tables([self._left, more]) if self._left.num_rows else more
        table = self._left.slice(0, max_records)
        self._left = self._left.slice(table.num_rows)
        return table

    def _arrays(self, table: pa.Table) -> dict[str, npt.NDArray[Any]]:
        if self._fault is not None:
            return {name: np.empty(0, dtype=object) for name in self.columns}
        return {name: _cells(table[name], name in self._exact) for name in self.columns}

    def _all_rejected(self, table: pa.Table, first: int) -> list[Rejected]:
        texts = (
            json.dumps(row, default=str, ensure_ascii=False)[:TEXT_LIMIT]
            for row in table.to_pylist()
        )
        fault = self._fault or ""
        return [
            Rejected(self._name, line, fault, text) for line, text in enumerate(texts, start=first)
        ]


def _cells(column: pa.ChunkedArray, exact: bool) -> npt.NDArray[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _cells(column.cast(kind.value_type), exact)
    if pa.types.is_duration(kind):
        seconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64())
        column, kind = pc.divide(seconds, 1e6), pa.float64()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if exact:
            return _objects(column.to_pylist())
        numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
        # Arrow gives its own memory, which cannot be written to.
        return np.array(numbers, dtype=np.float64)
    if pa.types.is_timestamp(kind) or pa.types.is_date(kind) or pa.types.is_time(kind):
        text = column.cast(pa.string())
        column = pc.replace_substring(text, " ", "T", max_replacements=1)
    elif pa.types.is_nested(kind):
        return _objects([_as_json(cell) for cell in column.to_pylist()])
    elif any(is_one(kind) for is_one in _BYTES):
        return _objects([_as_text(cell) for cell in column.to_pylist()])
    cells: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False).astype(object)
    return cells


def _objects(cells: list[Any]) -> npt.NDArray[Any]:
    return np.fromiter(cells, dtype=object, count=len(cells))


def _as_json(cell: Any) -> str | None:
    if cell is None:
        return None
    return json.dumps(cell, default=str, ensure_ascii=False, sort_keys=True)


def _as_text(cell: bytes | None) -> str | None:
    return None if cell is None else cell.decode("utf-8", errors="backslashreplace")
