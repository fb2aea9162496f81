"""numba's compiler: it works where compiled code cannot be cached, and what it takes is known."""

import threading
import time
from collections.abc import Callable
from typing import Any

import numba
from numba.core import event

from rareclass.machine import tell

_FIRST_RUN = "First run of this kind on this machine: compiling takes up to half a minute."
_EVERY_RUN = (
    "Compiling takes up to half a minute in every run: no folder for compiled code can be "
    "written. The environment variable NUMBA_CACHE_DIR may name one."
)
# What is compiled sooner is not worth a line.
_LONG_SECONDS = 1.0
# False where `njit` found no folder to write to.
_is_cached = True


def njit(**options: Any) -> Callable[[Callable], Any]:
    """Compile as `numba.njit`; without a cache where ``cache=True`` finds no folder to write to.

    numba caches beside the source or below HOME, and fails where it may write to neither, as in a
    read-only container. There each process compiles anew, which takes some seconds;
    NUMBA_CACHE_DIR may name a folder instead.

    A wrapper that C code could call is left out: it takes a tenth of the time.
    """
    options |= {"no_cfunc_wrapper": True}

    def compiled(function: Callable) -> Any:
        global _is_cached
        try:
            return numba.njit(**options)(function)
        except RuntimeError:  # no locator available
            if not options.get("cache"):
                raise
            _is_cached = False
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


class _FirstRunNotice(_CompileClock):
    """One line on the terminal once this process has compiled for long, not read from the cache."""

    def __init__(self) -> None:
        super().__init__()
        self._is_told = False

    def on_start(self, event: event.Event) -> None:
        super().on_start(event)
        self._tell_once()

    def on_end(self, event: event.Event) -> None:
        super().on_end(event)
        self._tell_once()

    def _tell_once(self) -> None:
        if not self._is_told and self.seconds > _LONG_SECONDS:
            self._is_told = True
            tell(_FIRST_RUN if _is_cached else _EVERY_RUN)


_clock = _CompileClock()
event.register("numba:compiler_lock", _clock)
_notice = _FirstRunNotice()
event.register("numba:compile", _notice)


def compiled_seconds() -> float:
    """Return the seconds that numba has taken in this process, from any thread.

    The first run on a machine compiles for up to a minute what later runs read from a cache. Who
    measures what learning costs leaves these seconds out.
    """
    return _clock.seconds
