"""The answer to a query as a stream of rows."""

import hashlib
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import pyarrow as pa

from rareclass.errors import InputError, counted
from rareclass.tables.arrow_source import ArrowSource
from rareclass.tables.databases.address import Query
from rareclass.tables.databases.running_query import RunningQuery

_REMEDY = "Let the query end with ORDER BY columns that tell all rows apart, new rows last."


class QuerySource(ArrowSource):
    """The rows of a query in its order; cells as `ArrowSource` has them.

    From a position the query runs again, and the rows before it are passed over: they must be the
    same as then, of which the number and the last one are looked at. Raises `InputError` where they
    are not, else as `RunningQuery`.
    """

    def __init__(
        self,
        query: Query,
        position: dict[str, Any] | None = None,
        columns: Sequence[str] | None = None,
        exact_columns: Collection[str] = (),
    ) -> None:
        self._running = RunningQuery(query)
        row, self._last = 0, ""
        if position is not None:
            row, columns, self._last = int(position["row"]), position["columns"], position["last"]
        rows = self._after(query, row) if row else self._running.batches()
        super().__init__(str(query), self._running.schema, rows, row, columns, exact_columns)

    def finish(self) -> None:
        """Nothing: the end of the answer is the end."""

    def close(self) -> None:
        """End the query."""
        self._running.close()

    def _position(self, table: pa.Table) -> dict[str, Any]:
        if table.num_rows:
            self._last = _mark_of(table.slice(table.num_rows - 1))
        return {**super()._position(table), "last": self._last}

    def _after(self, query: Query, n_rows: int) -> Iterator[pa.RecordBatch]:
        n_passed = 0
        for batch in self._running.batches():
            skipped = min(n_rows - n_passed, batch.num_rows)
            n_passed += skipped
            if skipped and n_passed == n_rows:
                self._check_last(batch.slice(skipped - 1, 1), query, n_rows)
            if skipped < batch.num_rows:
                yield batch.slice(skipped)
        if n_passed < n_rows:
            raise InputError(
                f"{query} gives {counted(n_passed, 'row')}; {n_rows:,} had been read before.",
                _REMEDY,
            )

    def _check_last(self, row: pa.RecordBatch, query: Query, number: int) -> None:
        if _mark_of(pa.Table.from_batches([row])) != self._last:
            raise InputError(f"{query} gives another row {number:,} than before.", _REMEDY)


def _mark_of(row: pa.Table) -> str:
    """Letters that tell a row from others."""
    return hashlib.blake2b(repr(row.to_pylist()).encode(), digest_size=12).hexdigest()
