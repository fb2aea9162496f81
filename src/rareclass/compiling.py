"""Compiler of numba that also works where compiled code cannot be cached."""

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable], Any]:
    """Compile as `numba.njit`; without a cache where ``cache=True`` finds no folder to write to.

    numba caches beside the source or below HOME, and fails where it may write to neither, as in a
    read-only container. There each process compiles anew, which takes some seconds;
    NUMBA_CACHE_DIR may name a folder instead.
    """

    def compiled(function: Callable) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # no locator available
            if not options.get("cache"):
                raise
            return numba.njit(**options | {"cache": False})(function)

    return compiled
