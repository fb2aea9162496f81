"""Arrow batches as a stream of rows, whatever they come from."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from rareclass.tables.batch import TEXT_LIMIT, Batch, Rejected, columns_fault

_BYTES = (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary)


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
        column, kind = column.cast(pa.int64()), pa.int64()
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
