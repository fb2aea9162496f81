"""Rows of a request in JSON, read as `rareclass score` reads a file.

A request that is refused gets a list of faults.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from typing import Any, Self

import numpy as np
import polars as pl
from pydantic_core import from_json

from rareclass.encoding.typed_table import read_as_trained
from rareclass.errors import ErrorKind, InputError, counted, nearest_name
from rareclass.tables.columns import Column
from rareclass.tables.jsonl import name_twice
from rareclass.tables.reading import text_of_values

# Faults that a response lists at most.
MOST_FAULTS = 20


@dataclass(frozen=True)
class Fault:
    """Message, place and remedy; `row` counts from 1 in its request."""

    row: int | None
    column: str | None
    message: str
    remedy: str = ""

    @classmethod
    def of(cls, error: InputError) -> Self:
        """Fault behind an exception of the library."""
        return cls(error.row, error.column, error.message, error.remedy)


class RefusedError(Exception):
    """Request that is answered with an error.

    `kind` is a word for measures and log, which hold no values; `headers` go with the response.
    """

    def __init__(
        self,
        status: int,
        kind: str,
        faults: Iterable[Fault],
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(kind)
        self.status, self.kind = status, kind
        self.faults = list(islice(faults, MOST_FAULTS))
        self.headers = dict(headers or {})

    def body(self) -> dict[str, Any]:
        """Body of the response, as plain data."""
        return {"errors": [asdict(fault) for fault in self.faults]}


def schema_error(*faults: Fault) -> RefusedError:
    """Error for rows that do not fit the model's columns."""
    return RefusedError(422, "schema", faults)


def refused(status: int, kind: str, message: str, remedy: str = "", **headers: str) -> RefusedError:
    """Error with one fault that concerns no row; header names are written with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return RefusedError(status, kind, [Fault(None, None, message, remedy)], named)


JSON = "application/json"
_PLAIN = {int, float, type(None)}


@dataclass(frozen=True)
class RequestRows:
    """Cells as received, by column: lists of plain JSON values.

    Exactly the columns of the model, all of one length.
    """

    n_rows: int
    cells: Mapping[str, Sequence[Any]]

    def joined(self, others: Sequence["RequestRows"]) -> "RequestRows":
        """Rows of this request and then of others, as of one request."""
        each = [self, *others]
        return RequestRows(
            sum(rows.n_rows for rows in each),
            {name: [c for rows in each for c in rows.cells[name]] for name in self.cells},
        )

    def typed(self, columns: Sequence[Column]) -> pl.DataFrame:
        """Cells with the types of training, as `read_as_trained` gives them.

        Raises `RefusedError` with the first fault of each column.
        """
        try:
            return read_as_trained(self._frame(columns), columns, 1)
        except InputError as error:
            raise schema_error(*(self._faults(columns) or [Fault.of(error)])) from error

    def _frame(self, columns: Sequence[Column]) -> pl.DataFrame:
        numbers = self._plain_numbers(columns)
        others = [column.name for column in columns if column.name not in numbers]
        found = numbers | {name: _as_words(name, self.cells[name]) for name in others}
        return pl.DataFrame([found[column.name] for column in columns])

    def _plain_numbers(self, columns: Sequence[Column]) -> dict[str, pl.Series]:
        """Columns of JSON numbers, converted together: a series each would cost more than a row."""
        names = [
            column.name
            for column in columns
            if column.reads_as == "number" and set(map(type, self.cells[column.name])) <= _PLAIN
        ]
        try:
            matrix = np.array([self.cells[name] for name in names], np.float64)
        except OverflowError:  # a whole number beyond all floats
            return {}
        joined = pl.Series(matrix.ravel(), nan_to_null=True)
        return {
            name: joined.slice(k * self.n_rows, self.n_rows).alias(name)
            for k, name in enumerate(names)
        }

    def _faults(self, columns: Sequence[Column]) -> list[Fault]:
        """First fault of each column that has one."""
        faults = []
        for column in columns:
            try:
                read_as_trained(self._frame([column]), [column], 1)
            except InputError as error:
                faults.append(Fault.of(error))
        return faults


def _as_words(name: str, cells: Sequence[Any]) -> pl.Series:
    for row, cell in enumerate(cells, 1):
        if isinstance(cell, list | dict):
            what = "a list" if isinstance(cell, list) else "an object"
            raise ErrorKind.CELL.error(
                f"Column {name!r} holds {what} at row {row}.",
                "Give one value, or null.",
                column=name,
                row=row,
            )
    return text_of_values(cells).alias(name)


def rows_of_json(body: bytes, columns: Sequence[Column], most_rows: int) -> RequestRows:
    """Rows of a JSON body: a list of objects, or an object with "rows" or "columns".

    Every row must have every column of the model, null where the value is not known; other names
    are ignored. Raises `RefusedError`: 400 for a body that is no JSON, 413 for too many rows, 422
    for rows without the columns and for objects that have a name twice.
    """
    try:
        found = from_json(body, allow_inf_nan=False)
        # Once more, for names that occur twice: of these the one above keeps the last.
        twice = name_twice(body)
    except ValueError as error:
        raise refused(
            400, "not json", f"The body is not JSON: {error}.", "Send a JSON list of rows."
        ) from error
    if twice is not None:
        message = f"An object has the name {twice!r} twice."
        raise schema_error(Fault(None, twice, message, "Give each name once."))
    if isinstance(found, dict) and len(found.keys() & {"rows", "columns"}) == 1:
        ((how, rows),) = ((key, found[key]) for key in ("rows", "columns") if key in found)
    else:
        how, rows = "rows", found
    if how == "columns":
        return _by_column(rows, columns, most_rows)
    if not isinstance(rows, list):
        remedy = 'Send [{"column": value, ...}, ...], or {"columns": {"column": [...], ...}}.'
        raise schema_error(Fault(None, None, "The body holds no list of rows.", remedy))
    _check_number(len(rows), most_rows)
    return _by_row(rows, columns)


def _by_row(rows: list[Any], columns: Sequence[Column]) -> RequestRows:
    names = [column.name for column in columns]
    # itemgetter gives the cell itself for one name, a tuple for several.
    cells_of = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
    try:
        cells = [cells_of(row) for row in rows]
    except (KeyError, TypeError, IndexError) as error:
        raise RefusedError(422, "schema", _missing(rows, names)) from error
    return RequestRows(len(rows), dict(zip(names, zip(*cells, strict=True), strict=True)))


def _missing(rows: list[Any], names: list[str]) -> Iterator[Fault]:
    """Yield faults of rows that are no objects or lack a column."""
    for number, row in enumerate(rows, 1):
        if not isinstance(row, dict):
            yield Fault(number, None, f"Row {number} is not an object.", _OBJECT)
            continue
        for name in names:
            if name not in row:
                message = f"Row {number} has no column {name!r}."
                yield Fault(number, name, message, _hint(name, row, names))


_OBJECT = 'Give {"column": value, ...}, with null where a value is not known.'


def _hint(name: str, found: Any, names: Sequence[str]) -> str:
    near = nearest_name(name, [other for other in found if other not in names])
    return f"Is it {near!r}?" if near else "Give its value, or null where it is not known."


def _by_column(found: Any, columns: Sequence[Column], most_rows: int) -> RequestRows:
    lists = 'Give {"columns": {"column": [...]}}.'
    if not isinstance(found, dict):
        raise schema_error(Fault(None, None, '"columns" is not an object of lists.', lists))
    names = [column.name for column in columns]
    if absent := [name for name in names if name not in found]:
        words = "There is no column {!r}.".format
        raise schema_error(*(Fault(None, n, words(n), _hint(n, found, names)) for n in absent))
    for name in names:
        if not isinstance(found[name], list):
            raise schema_error(Fault(None, name, f"Column {name!r} is not a list.", lists))
    n_rows = len(found[names[0]])
    for name in names:
        if len(found[name]) != n_rows:
            cells = counted(len(found[name]), "cell")
            message = f"Column {name!r} has {cells}, and {names[0]!r} {n_rows:,}."
            remedy = "Give a cell a row, null where it is not known."
            raise schema_error(Fault(None, name, message, remedy))
    _check_number(n_rows, most_rows)
    return RequestRows(n_rows, {name: found[name] for name in names})


def _check_number(n_rows: int, most_rows: int) -> None:
    if not n_rows:
        raise schema_error(Fault(None, None, "The body has no rows.", "Send one or more."))
    if n_rows > most_rows:
        raise refused(
            413,
            "rows",
            f"The body has {n_rows:,} rows, and {most_rows:,} are taken at a time.",
            "Send fewer at a time.",
        )
