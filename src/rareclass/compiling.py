"""numba's compiler, also where compiled code can be kept nowhere."""

from collections.abc import Callable
from typing import Any

import numba


def njit(**options: Any) -> Callable[[Callable], Any]:
    """As `numba.njit`; where ``cache=True`` finds no folder to write to, without a cache.

    numba keeps what it compiled beside the source, else below HOME, and refuses to go on where it
    may write to neither, as in a container that is read-only. There each process compiles anew
    what it calls, which takes some seconds; NUMBA_CACHE_DIR may name a folder instead.
    """

    def compiled(function: Callable) -> Any:
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # no locator available
            if not options.get("cache"):
                raise
            return numba.njit(**options | {"cache": False})(function)

    return compiled
