"""Requests: their rows in JSON, read as `rareclass score` reads a file, and how they wait.

A request that is refused gets a list of faults. Most of a row's time goes into work that a thousand
rows need only once. Small requests that arrive while others are scored are therefore read and
scored as one table; without load a request is alone and waits for nobody. Large bodies have threads
of their own, so a single row never waits for one.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from itertools import islice
from operator import itemgetter
from threading import Lock
from typing import Any, Self

import numpy as np
import polars as pl
from pydantic_core import from_json

from rareclass.encoding.typed_table import read_as_trained
from rareclass.errors import ErrorKind, InputError, called_by_http, counted, nearest_name
from rareclass.serving import Limits
from rareclass.serving.live_model import LiveModel, RowScores, ServedModel
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


# -- waiting -------------------------------------------------------------------------------------

# Bodies up to this size are small.
_SMALL_BYTES = 16 << 10
# Small requests that are scored together: beyond it more of them take longer, not less.
_MOST_TOGETHER = 64


@dataclass(frozen=True)
class ScoreResponse:
    """Body of a response."""

    body: bytes
    n_rows: int


@dataclass
class _Waiting:
    body: bytes
    n_reasons: int
    future: "asyncio.Future[ScoreResponse]"  # set in the event loop, to `result`
    result: ScoreResponse | Exception | None = None


class Lanes:
    """Answers requests from threads: one for small bodies, some for large ones.

    `model` answers; `on_scored` is called with each scored table. `close` waits for the
    requests in hand.
    """

    def __init__(
        self,
        model: LiveModel,
        limits: Limits,
        n_large: int,
        on_scored: Callable[[ServedModel, pl.DataFrame, RowScores], None],
    ) -> None:
        self._model, self._limits, self._on_scored = model, limits, on_scored
        self._small = _Lane(self._answer, 1, _MOST_TOGETHER, "small")
        self._large = _Lane(self._answer, n_large, 1, "large")

    async def answer(self, body: bytes, n_reasons: int = 0) -> ScoreResponse:
        """Score the rows of a body, with so many reasons for each.

        Raises `RefusedError` for rows that cannot be scored.
        """
        is_small = len(body) <= _SMALL_BYTES and not n_reasons
        return await (self._small if is_small else self._large).answer(body, n_reasons)

    def close(self) -> None:
        """Wait until the threads have finished."""
        for lane in (self._small, self._large):
            lane.pool.shutdown()

    def _answer(self, taken: Sequence[_Waiting]) -> None:
        """Set the response or the exception of each request."""
        served = self._model.now
        read: list[tuple[_Waiting, RequestRows]] = []
        for each in taken:
            most = self._limits.explained_rows if each.n_reasons else self._limits.max_rows
            try:
                read.append((each, rows_of_json(each.body, served.columns, most)))
            except Exception as error:  # the service words the error
                each.result = error
        if len(read) > 1 and _mixes(served):
            try:
                self._score(served, read)
                return
            except Exception:  # a faulty row: each request is scored alone and gets its own error
                pass
        for waiting, rows in read:
            try:
                self._score(served, [(waiting, rows)])
            except Exception as error:
                waiting.result = error

    def _score(self, served: ServedModel, read: Sequence[tuple[_Waiting, RequestRows]]) -> None:
        first, *others = [rows for _, rows in read]
        rows = (first.joined(others) if others else first).typed(served.columns)
        try:
            scores = served.answer(rows)
            n_reasons = read[0][0].n_reasons
            reasons = served.reasons(rows, n_reasons) if n_reasons else None
        except InputError as error:
            raise schema_error(Fault.of(error)) from error
        self._on_scored(served, rows, scores)
        start = 0
        for waiting, own in read:
            part = scores.columns.slice(start, own.n_rows) if others else scores.columns
            waiting.result = _response(served.name, part, reasons)
            start += own.n_rows


class _Lane:
    """Threads that take waiting requests, up to `most` at a time."""

    def __init__(
        self, answer: Callable[[Sequence[_Waiting]], None], n_threads: int, most: int, name: str
    ) -> None:
        self._answer, self._most, self._n_threads = answer, most, n_threads
        self._waiting: deque[_Waiting] = deque()
        self._lock, self._n_running = Lock(), 0
        self.pool = ThreadPoolExecutor(n_threads, f"score-{name}", called_by_http)

    async def answer(self, body: bytes, n_reasons: int) -> ScoreResponse:
        future: asyncio.Future[ScoreResponse] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(_Waiting(body, n_reasons, future))
            starts = self._n_running < self._n_threads
            self._n_running += starts
        if starts:
            self.pool.submit(self._run)
        return await future

    def _run(self) -> None:
        while True:
            with self._lock:
                n_taken = min(len(self._waiting), self._most)
                taken = [self._waiting.popleft() for _ in range(n_taken)]
                self._n_running -= not taken
            if not taken:
                return
            # Clients of cancelled requests wait no more.
            taken = [each for each in taken if not each.future.cancelled()]
            if taken:
                try:
                    self._answer(taken)
                except Exception as error:  # no client is left waiting
                    for each in taken:
                        each.result = each.result or error
                taken[0].future.get_loop().call_soon_threadsafe(_resolve, taken)


def _resolve(answered: Sequence[_Waiting]) -> None:
    """Give each waiting request its response or its exception; runs in the event loop."""
    for each in answered:
        if each.future.done():
            continue
        if isinstance(each.result, Exception):
            each.future.set_exception(each.result)
        elif each.result is not None:
            each.future.set_result(each.result)


def _mixes(served: ServedModel) -> bool:
    """Say whether rows of several requests read the same together as alone."""
    days = (column for column in served.columns if column.reads_as == "date")
    return all(column.date_format is not None for column in days)


def _response(model: str, columns: pl.DataFrame, reasons: Sequence[Any] | None) -> ScoreResponse:
    """Write the scores of a request's rows, in their order, as JSON."""
    if reasons is None:
        rows = columns.write_json()
    else:
        scored = columns.iter_rows(named=True)
        rows = json.dumps(
            [{**row, "reasons": each} for row, each in zip(scored, reasons, strict=True)],
            allow_nan=False,
        )
    body = f'{{"model":{json.dumps(model)},"rows":{rows}}}'
    return ScoreResponse(body.encode(), columns.height)
