"""Requests that wait for the model: small ones are scored together, large ones beside them.

Of a row most of the time is spent on what a thousand rows need once. So those that have come while
others were scored are read and scored as one table; under no load a request is alone and waits for
nobody. Large bodies have threads of their own, so that a single row never waits behind one.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Lock
from typing import NamedTuple

import numpy as np
import polars as pl

from rareclass.errors import InputError
from rareclass.serving.answer import Answered, answered
from rareclass.serving.live_model import Live
from rareclass.serving.refused import Fault, schema_error
from rareclass.serving.request_rows import RequestRows, rows_of_arrow, rows_of_json
from rareclass.serving.served import Answers

# Bodies up to this size are small.
_SMALL_BYTES = 16 << 10
# Small requests that are scored together: beyond it more of them take longer, not less.
_MOST_TOGETHER = 64


@dataclass(frozen=True)
class Asked:
    """What a request asks for."""

    body: bytes
    is_arrow: bool = False
    as_arrow: bool = False  # how it is to be answered
    n_reasons: int = 0


class RowLimits(NamedTuple):
    """Rows that are taken in one request."""

    scored: int
    explained: int


OnScored = Callable[[Live, pl.DataFrame, Answers], None]


class _Waiting(NamedTuple):
    asked: Asked
    future: "asyncio.Future[Answered]"


class _Read(NamedTuple):
    waiting: _Waiting
    rows: RequestRows


class Lanes:
    """Answers requests from threads: one for small bodies, some for large ones.

    `current` gives the model, `on_scored` is told what was scored. `close` waits for what is in
    hand.
    """

    def __init__(
        self,
        current: Callable[[], Live],
        limits: RowLimits,
        n_large: int,
        on_scored: OnScored,
    ) -> None:
        scorer = _Scorer(current, limits, on_scored)
        self._small = _Lane(scorer, 1, _MOST_TOGETHER, "small")
        self._large = _Lane(scorer, n_large, 1, "large")

    async def answer(self, asked: Asked) -> Answered:
        """The answer to a request.

        Raises `RefusedError` where its rows cannot be scored.
        """
        is_small = len(asked.body) <= _SMALL_BYTES and not asked.n_reasons
        return await (self._small if is_small else self._large).answer(asked)

    def close(self) -> None:
        """Let threads end what they do."""
        self._small.close()
        self._large.close()


class _Lane:
    """Threads that take what waits, some requests at a time."""

    def __init__(self, scorer: "_Scorer", n_threads: int, most: int, name: str) -> None:
        self._scorer, self._most, self._n_threads = scorer, most, n_threads
        self._waiting: deque[_Waiting] = deque()
        self._lock, self._n_running = Lock(), 0
        self._pool = ThreadPoolExecutor(n_threads, thread_name_prefix=f"score-{name}")

    async def answer(self, asked: Asked) -> Answered:
        future: asyncio.Future[Answered] = asyncio.get_running_loop().create_future()
        with self._lock:
            self._waiting.append(_Waiting(asked, future))
            starts = self._n_running < self._n_threads
            self._n_running += starts
        if starts:
            self._pool.submit(self._run)
        return await future

    def close(self) -> None:
        self._pool.shutdown()

    def _run(self) -> None:
        while True:
            with self._lock:
                n_taken = min(len(self._waiting), self._most)
                taken = [self._waiting.popleft() for _ in range(n_taken)]
                self._n_running -= not taken
            if not taken:
                return
            # Nobody waits any more for those whose time is over.
            taken = [each for each in taken if not each.future.cancelled()]
            if taken:
                loop = taken[0].future.get_loop()
                try:
                    outcomes = self._scorer.outcomes(taken)
                except Exception as error:  # nobody is left to wait
                    outcomes = [(each.future, error) for each in taken]
                loop.call_soon_threadsafe(_tell, outcomes)


Outcome = tuple["asyncio.Future[Answered]", Answered | Exception]


def _tell(outcomes: Sequence[Outcome]) -> None:
    for future, outcome in outcomes:
        if future.done():
            continue
        if isinstance(outcome, Exception):
            future.set_exception(outcome)
        else:
            future.set_result(outcome)


class _Scorer:
    """Reads and scores requests, one by one or together."""

    def __init__(self, current: Callable[[], Live], limits: RowLimits, on_scored: OnScored) -> None:
        self._current, self._limits, self._on_scored = current, limits, on_scored

    def outcomes(self, taken: Sequence[_Waiting]) -> list[Outcome]:
        """What comes of requests: an answer or an exception each."""
        live = self._current()
        outcomes: list[Outcome] = []
        read: list[_Read] = []
        for each in taken:
            try:
                read.append(_Read(each, self._read(live, each.asked)))
            except Exception as error:  # the service tells what to make of it
                outcomes.append((each.future, error))
        together = [each for each in read if not each.rows.from_arrow] if _mixes(live) else []
        if len(together) > 1:
            try:
                outcomes += self._scored(live, together)
                read = [each for each in read if each.rows.from_arrow]
            except Exception:  # somebody's row is not as it should be: each for itself
                pass
        for one in read:
            try:
                outcomes += self._scored(live, [one])
            except Exception as error:
                outcomes.append((one.waiting.future, error))
        return outcomes

    def _read(self, live: Live, asked: Asked) -> RequestRows:
        read = rows_of_arrow if asked.is_arrow else rows_of_json
        limit = self._limits.explained if asked.n_reasons else self._limits.scored
        return read(asked.body, live.served.columns, limit)

    def _scored(self, live: Live, read: Sequence[_Read]) -> list[Outcome]:
        served = live.served
        first, *others = [each.rows for each in read]
        rows = (first.joined(others) if others else first).typed(served.columns)
        try:
            answers = served.answer(rows)
            n_reasons = read[0].waiting.asked.n_reasons
            reasons = served.reasons(rows, n_reasons) if n_reasons else None
        except InputError as error:
            raise schema_error([Fault.of(error)]) from error
        self._on_scored(live, rows, answers)
        outcomes: list[Outcome] = []
        ends = np.cumsum([each.rows.n_rows for each in read]).tolist()
        for each, end in zip(read, ends, strict=True):
            part = answers.columns
            if others:
                part = part.slice(end - each.rows.n_rows, each.rows.n_rows)
            asked = each.waiting.asked
            found = answered(live.name, part, reasons, asked.as_arrow)
            outcomes.append((each.waiting.future, found))
        return outcomes


def _mixes(live: Live) -> bool:
    """Whether rows of several requests are read as each would be alone.

    Not so where a date may be written in any way: which way is found out from all of the rows.
    """
    return not any(
        column.reads_as == "date" and column.date_format is None for column in live.served.columns
    )
