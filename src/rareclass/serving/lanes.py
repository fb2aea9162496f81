"""Requests that wait for the model: small ones are scored together, large ones apart.

Most of a row's time goes into work that a thousand rows need only once. Small requests that arrive
while others are scored are therefore read and scored as one table; without load a request is alone
and waits for nobody. Large bodies have threads of their own, so a single row never waits for one.
"""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import Any

import polars as pl

from rareclass.errors import InputError, called_by_http
from rareclass.serving import Limits
from rareclass.serving.live_model import Live, RowScores
from rareclass.serving.request_rows import Fault, RequestRows, rows_of_json, schema_error

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

    `current` gives the model; `on_scored` is called with each scored table. `close` waits for the
    requests in hand.
    """

    def __init__(
        self,
        current: Callable[[], Live],
        limits: Limits,
        n_large: int,
        on_scored: Callable[[Live, pl.DataFrame, RowScores], None],
    ) -> None:
        self._current, self._limits, self._on_scored = current, limits, on_scored
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
        live = self._current()
        read: list[tuple[_Waiting, RequestRows]] = []
        for each in taken:
            most = self._limits.explained_rows if each.n_reasons else self._limits.max_rows
            try:
                read.append((each, rows_of_json(each.body, live.served.columns, most)))
            except Exception as error:  # the service words the error
                each.result = error
        if len(read) > 1 and _mixes(live):
            try:
                self._score(live, read)
                return
            except Exception:  # a faulty row: each request is scored alone and gets its own error
                pass
        for waiting, rows in read:
            try:
                self._score(live, [(waiting, rows)])
            except Exception as error:
                waiting.result = error

    def _score(self, live: Live, read: Sequence[tuple[_Waiting, RequestRows]]) -> None:
        served = live.served
        first, *others = [rows for _, rows in read]
        rows = (first.joined(others) if others else first).typed(served.columns)
        try:
            scores = served.answer(rows)
            n_reasons = read[0][0].n_reasons
            reasons = served.reasons(rows, n_reasons) if n_reasons else None
        except InputError as error:
            raise schema_error(Fault.of(error)) from error
        self._on_scored(live, rows, scores)
        start = 0
        for waiting, own in read:
            part = scores.columns.slice(start, own.n_rows) if others else scores.columns
            waiting.result = _response(live.name, part, reasons)
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


def _mixes(live: Live) -> bool:
    """Say whether rows of several requests read the same together as alone."""
    days = (column for column in live.served.columns if column.reads_as == "date")
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
