"""numba's compiler: it works where compiled code cannot be cached, and what it takes is known."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event


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


class _CompileClock(event.Listener):
    """Seconds during which some thread compiled, read compiled code, or waited for either."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running, self._since, self._before = 0, 0.0, 0.0

    def on_start(self, event: event.Event) -> None:
        with self._lock:
            if not self._running:
                self._since = time.perf_counter()
            self._running += 1

    def on_end(self, event: event.Event) -> None:
        with self._lock:
            self._running -= 1
            if not self._running:
                self._before += time.perf_counter() - self._since

    @property
    def seconds(self) -> float:
        with self._lock:
            running = time.perf_counter() - self._since if self._running else 0.0
            return self._before + running


_clock = _CompileClock()
event.register("numba:compiler_lock", _clock)


def compiled_seconds() -> float:
    """Return the seconds that numba has taken in this process, from any thread.

    The first run on a machine compiles for up to a minute what later runs read from a cache. Who
    measures what learning costs leaves these seconds out.
    """
    return _clock.seconds
