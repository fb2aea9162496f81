"""How many threads BLAS takes."""

from contextlib import AbstractContextManager
from functools import cache

from threadpoolctl import ThreadpoolController

# A matrix of fewer rows is factorised as fast by one thread as by several.
_MANY_ROWS = 1024


def blas_threads(n_threads: int | None) -> AbstractContextManager:
    """At most so many threads in a call of BLAS, while this is open; None leaves it as it is."""
    return _libraries().limit(limits=n_threads, user_api="blas")


def factorising(n_rows: int, n_threads: int) -> AbstractContextManager:
    """The threads for work on a square matrix of so many rows: several where it is large.

    Threads that BLAS starts go on spinning after its calls, in the way of a pool that works on
    blocks of rows: this is to be open for the matrix alone.
    """
    return blas_threads(n_threads if n_rows >= _MANY_ROWS else 1)


@cache
def _libraries() -> ThreadpoolController:
    """The BLAS libraries of this process, found once: looking takes 4 ms, like a small fit."""
    return ThreadpoolController()
