"""The rows of a request: JSON or an Arrow stream, read as `rareclass score` reads a file."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from pydantic_core import from_json

from rareclass.encoding.training_table import read_as_trained
from rareclass.errors import InputError, counted, nearest_name
from rareclass.serving.compressed_arrow import is_compressed
from rareclass.serving.refused import MOST_FAULTS, Fault, refused, schema_error
from rareclass.tables.columns import Column
from rareclass.tables.raw_cells import read_words

JSON, ARROW = "application/json", "application/vnd.apache.arrow.stream"
_PLAIN = {int, float, type(None)}


@dataclass(frozen=True)
class RequestRows:
    """Cells by column, as they came: lists of plain JSON values, or an Arrow table as polars.

    All columns of the model are there and of one length, and no others.
    """

    n_rows: int
    cells: Mapping[str, Sequence[Any] | pl.Series]
    from_arrow: bool = False

    def joined(self, others: Sequence["RequestRows"]) -> "RequestRows":
        """These rows of JSON and then others, as of one request."""
        each = [self, *others]
        return RequestRows(
            sum(rows.n_rows for rows in each),
            {name: [c for rows in each for c in rows.cells[name]] for name in self.cells},
        )

    def typed(self, columns: Sequence[Column]) -> pl.DataFrame:
        """The cells with the types of training, as `read_as_trained` gives them.

        Raises `RefusedError` with the first fault of each column.
        """
        try:
            return read_as_trained(self._frame(columns), columns, 1)
        except InputError as error:
            faults = [found for column in columns for found in self._faults(column)]
            raise schema_error(faults or [Fault.of(error)]) from error

    def _frame(self, columns: Sequence[Column]) -> pl.DataFrame:
        numbers = self._plain_numbers(columns)
        found = [numbers.get(column.name, self.cells[column.name]) for column in columns]
        return pl.DataFrame(
            [
                cells if isinstance(cells, pl.Series) else _as_words(column.name, cells)
                for column, cells in zip(columns, found, strict=True)
            ]
        )

    def _plain_numbers(self, columns: Sequence[Column]) -> dict[str, pl.Series]:
        """Columns of JSON numbers: as one, as to make a series takes longer than a row does."""
        names = [
            column.name
            for column in columns
            if column.reads_as == "number"
            and not isinstance(cells := self.cells[column.name], pl.Series)
            and set(map(type, cells)) <= _PLAIN
        ]
        try:
            matrix = np.array([self.cells[name] for name in names], np.float64)
        except OverflowError:  # a whole number beyond all floats: its digits are told
            return {}
        joined = pl.Series(matrix.ravel(), nan_to_null=True)
        return {
            name: joined.slice(k * self.n_rows, self.n_rows).alias(name)
            for k, name in enumerate(names)
        }

    def _faults(self, column: Column) -> list[Fault]:
        """What is wrong with a column: nothing, or the first cell that is."""
        cells = self.cells[column.name]
        # Cells of Arrow have one type, and some have no value in Python: a date in the year 90,000.
        for k, cell in enumerate([] if isinstance(cells, pl.Series) else cells):
            if isinstance(cell, dict | list):
                what = "a list" if isinstance(cell, list) else "an object"
                return [
                    Fault(
                        k + 1,
                        column.name,
                        f"Column {column.name!r} holds {what} at row {k + 1}.",
                        "Give one value, or null.",
                    )
                ]
        try:
            read_as_trained(self._frame([column]), [column], 1)
        except InputError as error:
            return [Fault.of(error)]
        return []


def _as_words(name: str, cells: Sequence[Any]) -> pl.Series:
    words, wrong = read_words(np.fromiter(cells, dtype=object, count=len(cells)))
    if wrong.any():
        raise InputError("a list or an object")
    return pl.Series(name, words.tolist(), pl.String)


def rows_of_json(body: bytes, columns: Sequence[Column], most_rows: int) -> RequestRows:
    """The rows of a JSON body: a list of objects, or an object with "rows" or "columns".

    Every row must have every column, null where its value is not known; other names are not looked
    at. Raises `RefusedError`: 400 for what is no JSON, 413 for too many rows, 422 for rows without
    the columns.
    """
    try:
        found = from_json(body, allow_inf_nan=False)
    except ValueError as error:
        raise refused(
            400, "not json", f"The body is not JSON: {error}.", "Send a JSON list of rows."
        ) from error
    if isinstance(found, dict) and len(found.keys() & {"rows", "columns"}) == 1:
        ((how, rows),) = ((key, found[key]) for key in ("rows", "columns") if key in found)
    else:
        how, rows = "rows", found
    if how == "columns":
        return _by_column(rows, columns, most_rows)
    if not isinstance(rows, list):
        raise schema_error(
            [
                Fault(
                    None,
                    None,
                    "The body holds no list of rows.",
                    'Send [{"column": value, ...}, ...], or {"columns": {"column": [...], ...}}.',
                )
            ]
        )
    _check_number(len(rows), most_rows)
    return _by_row(rows, columns)


def rows_of_arrow(body: bytes, columns: Sequence[Column], most_rows: int) -> RequestRows:
    """The rows of an Arrow IPC stream.

    Buffers must not be compressed: what they come to is not known before they are unpacked. Raises
    `RefusedError` as `rows_of_json`.
    """
    try:
        if is_compressed(body):
            raise refused(
                400, "compressed", "The Arrow stream is compressed.", "Write it uncompressed."
            )
        with pa.ipc.open_stream(pa.py_buffer(body)) as reader:
            table = reader.read_all()
        table.validate(full=True)  # offsets that point elsewhere would be followed
        _check_number(table.num_rows, most_rows)
        _check_names(table.column_names, columns)
        frame = pl.from_arrow(table.select([column.name for column in columns]))
    except (pa.ArrowException, OSError, ValueError, pl.exceptions.PolarsError) as error:
        raise refused(
            400,
            "not arrow",
            "The body is not an Arrow IPC stream that can be read.",
            "Send what pyarrow.ipc.new_stream writes, of plain columns.",
        ) from error
    assert isinstance(frame, pl.DataFrame)
    return RequestRows(table.num_rows, {series.name: series for series in frame}, True)


def _by_row(rows: list[Any], columns: Sequence[Column]) -> RequestRows:
    names = [column.name for column in columns]
    # Of one name itemgetter gives the cell, of several a tuple.
    cells_of = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
    try:
        cells = [cells_of(row) for row in rows]
    except (KeyError, TypeError, IndexError) as error:
        raise schema_error(_missing(rows, names)) from error
    return RequestRows(len(rows), dict(zip(names, zip(*cells, strict=True), strict=True)))


def _missing(rows: list[Any], names: list[str]) -> list[Fault]:
    """Which rows are none, or lack a column."""
    faults: list[Fault] = []
    for number, row in enumerate(rows, 1):
        if len(faults) >= MOST_FAULTS:
            break
        if not isinstance(row, dict):
            faults.append(Fault(number, None, f"Row {number} is no object.", _OBJECT))
            continue
        for name in names:
            if name not in row:
                message = f"Row {number} has no column {name!r}."
                faults.append(Fault(number, name, message, _hint(name, row, names)))
    return faults


_OBJECT = 'Give {"column": value, ...}, with null where a value is not known.'


def _hint(name: str, found: Any, names: Sequence[str]) -> str:
    near = nearest_name(name, [other for other in found if other not in names])
    return f"Is it {near!r}?" if near else "Give its value, or null where it is not known."


def _by_column(found: Any, columns: Sequence[Column], most_rows: int) -> RequestRows:
    if not isinstance(found, dict) or not all(isinstance(each, list) for each in found.values()):
        message = '"columns" is no object of lists.'
        raise schema_error([Fault(None, None, message, 'Give {"columns": {"column": [...]}}.')])
    _check_names(list(found), columns)
    n_rows = len(found[columns[0].name])
    for column in columns:
        if len(found[column.name]) != n_rows:
            message = (
                f"Column {column.name!r} has {counted(len(found[column.name]), 'cell')}, and "
                f"{columns[0].name!r} {n_rows:,}."
            )
            remedy = "Give a cell a row, null where it is not known."
            raise schema_error([Fault(None, column.name, message, remedy)])
    _check_number(n_rows, most_rows)
    return RequestRows(n_rows, {column.name: found[column.name] for column in columns})


def _check_names(found: Sequence[str], columns: Sequence[Column]) -> None:
    names = [column.name for column in columns]
    counts = {name: list(found).count(name) for name in names}
    faults = [
        Fault(None, name, f"There is no column {name!r}.", _hint(name, found, names))
        if not count
        else Fault(None, name, f"Column {name!r} is there twice.", "Give it once.")
        for name, count in counts.items()
        if count != 1
    ]
    if faults:
        raise schema_error(faults)


def _check_number(n_rows: int, most_rows: int) -> None:
    if not n_rows:
        raise schema_error([Fault(None, None, "The body has no rows.", "Send one or more.")])
    if n_rows > most_rows:
        raise refused(
            413,
            "rows",
            f"The body has {n_rows:,} rows, and {most_rows:,} are taken at a time.",
            "Send fewer at a time.",
        )
