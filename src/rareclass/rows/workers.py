"""Threads over pieces of work, such as blocks of rows, kept from one pass to the next."""

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Piece = TypeVar("Piece")
Result = TypeVar("Result")


class Workers:
    """Pool of threads that is made when it is first needed, and serves every pass after that.

    Starting a thread and waiting for it to be there takes a millisecond, where a pass over a part
    of the rows takes ten, and a fit makes hundreds. The threads end when nothing holds this any
    more.

    Examples
    --------
    >>> list(Workers().map(abs, [-1, 2, -3], n_threads=2))
    [1, 2, 3]
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._n_threads, self._process = 0, os.getpid()

    def map(
        self, work: Callable[[Piece], Result], pieces: Iterable[Piece], n_threads: int
    ) -> Iterator[Result]:
        """Yield ``work`` of each piece, in their order, by `n_threads` threads or the running pool.

        Where a piece fails, or at Ctrl-C, waiting pieces are dropped and running ones finished.
        """
        pool = self._with(n_threads)
        try:
            yield from pool.map(work, pieces)
        except BaseException:
            self._pool = None
            pool.shutdown(wait=True, cancel_futures=True)
            raise

    def _with(self, n_threads: int) -> ThreadPoolExecutor:
        """Return the pool; a new one for more threads, or in a child process."""
        pool, process = self._pool, os.getpid()
        if pool is None or self._n_threads < n_threads or self._process != process:
            pool = ThreadPoolExecutor(n_threads, "rareclass")
            self._pool, self._n_threads, self._process = pool, n_threads, process
        return pool
