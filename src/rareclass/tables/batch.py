"""Batches of rows: what a source hands over, and Arrow batches in types that every reader knows."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.errors import ErrorKind, InputError
from rareclass.findings import Finding, FindingKind, warn
from rareclass.tables import TableWarning

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


def unique_names(title: str, names: list[str]) -> list[str]:
    """Return column names with none twice, and warn of those that were.

    The first column of a name keeps it; the others get a number, as pandas does it: name.1.
    """
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
        shown = ", ".join(renamed[:6]) + (", ..." if len(renamed) > 6 else "")
        warn(
            f"{title} has several columns of one name; the later ones are called {shown}.",
            TableWarning,
            Finding(FindingKind.COLUMNS_RENAMED, {"path": title}),
        )
    return unique


# What float64 holds to the last digit.
_EXACT_DIGITS = 15
_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


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
            # PostgreSQL says in this way how many digits there are, and how many of them decimals.
            modifier = int((field.metadata or {}).get(b"POSTGRESQL:typmod", -1)) - 4
            is_whole = modifier >= 0 and modifier & 0x7FF == 0
            is_long = is_whole and modifier >> 16 > _EXACT_DIGITS
            return pa.string() if is_long else pa.float64()
        if not pa.types.is_string(kind.storage_type):
            raise _unusable(field.name, kind.type_name, title)
    if isinstance(kind, pa.BaseExtensionType):
        return _plain_type(pa.field(field.name, kind.storage_type), title, categories)
    if pa.types.is_interval(kind) or pa.types.is_union(kind):
        raise _unusable(field.name, "interval" if pa.types.is_interval(kind) else "union", title)
    return kind


def plain_array(column: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return an array with the type that `plain_schema` gives it."""
    if isinstance(column.type, pa.UuidType):
        digits = [None if cell is None else cell.hex() for cell in column.storage.to_pylist()]
        cuts = [h and f"{h[:8]}-{h[8:12]}-{h[12:16]}-{h[16:20]}-{h[20:]}" for h in digits]
        return pa.array(cuts, pa.string())
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    return column if column.type == wanted else column.cast(wanted)


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
        self.size_read = 0  # bytes of a file, as `TextSource` has them
        self.has_unfinished = False

    def read(self, max_records: int) -> Batch | None:
        """Return the next rows; None at the end."""
        while self._left.num_rows < max_records:
            batch = next(self._batches, None)
            if batch is None:
                break
            more = pa.Table.from_batches([batch])
            self._left = pa.concat_tables([self._left, more]) if self._left.num_rows else more
        table = self._left.slice(0, max_records)
        self._left = self._left.slice(table.num_rows)
        if max_records and not table.num_rows:
            return None
        lines = np.arange(self._row + 1, self._row + table.num_rows + 1, dtype=np.int64)
        self._row += table.num_rows
        if self._fault is None:
            columns = {name: _cells(table[name], name in self._exact) for name in self.columns}
            return Batch(columns, lines, self._name, [], len(lines), self._position(table))
        texts = (json.dumps(row, default=str, ensure_ascii=False) for row in table.to_pylist())
        rejected = [
            Rejected(self._name, line, self._fault, text[:TEXT_LIMIT])
            for line, text in zip(lines.tolist(), texts, strict=True)
        ]
        columns = object_columns(self.columns, [])
        place = self._position(table)
        return Batch(columns, lines[:0], self._name, rejected, len(lines), place)

    def finish(self) -> None:
        """Do nothing: no rows are added while these are read."""

    def close(self) -> None:
        """Give back what the rows come from."""

    def _position(self, table: pa.Table) -> dict[str, Any]:
        """Position after these rows."""
        return {"row": self._row, "columns": self.columns}


def _cells(column: pa.ChunkedArray, exact: bool) -> npt.NDArray[Any]:
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _cells(column.cast(kind.value_type), exact)
    if pa.types.is_duration(kind):
        seconds = column.cast(pa.duration("us"), safe=False).cast(pa.int64()).cast(pa.float64())
        column, kind = pc.divide(seconds, 1e6), pa.float64()
    if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        if not exact:
            numbers = column.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
            # Arrow gives its own memory, which cannot be written to.
            return np.array(numbers, dtype=np.float64)
        listed = column.to_pylist()
    elif pa.types.is_nested(kind):
        listed = [
            None
            if cell is None
            else json.dumps(cell, default=str, ensure_ascii=False, sort_keys=True)
            for cell in column.to_pylist()
        ]
    elif any(is_one(kind) for is_one in _BYTES):
        listed = [
            None if cell is None else cell.decode("utf-8", errors="backslashreplace")
            for cell in column.to_pylist()
        ]
    else:
        if pa.types.is_temporal(kind):
            text = column.cast(pa.string())
            column = pc.replace_substring(text, " ", "T", max_replacements=1)
        cells: npt.NDArray[Any] = column.to_numpy(zero_copy_only=False).astype(object)
        return cells
    return np.fromiter(listed, dtype=object, count=len(listed))
