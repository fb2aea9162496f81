"""The time that a user allows a fit: a limit that stops members, and the speed of this machine."""

import json
import time
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from os import environ, replace
from pathlib import Path
from platform import processor
from typing import NamedTuple

import numpy as np

from rareclass.compiling import compiled_seconds
from rareclass.ensemble.members.member import Stopped

# Seconds that the reference machine takes for `_sample_of_work`.
_REFERENCE_SECONDS = 0.009
_REPEATS = 5


def learning_clock() -> float:
    """Return seconds since some moment, compiling left out: only the first run has to compile."""
    return time.perf_counter() - compiled_seconds()


class TimeLimit(NamedTuple):
    """Seconds that a fit may take, counted from `started`; None: as long as it takes.

    Sent to another process, whose clock is another one, it goes on with what is left.
    """

    seconds: float | None
    started: float

    @classmethod
    def from_now(cls, seconds: float | None) -> "TimeLimit":
        """Return a limit that is counted from this moment."""
        return cls(seconds, learning_clock())

    @property
    def left(self) -> float:
        """Seconds until the end, negative after it; infinite without a limit."""
        if self.seconds is None:
            return float("inf")
        return self.seconds - (learning_clock() - self.started)

    def check(self) -> None:
        """Raise `Stopped` after the end."""
        if self.left < 0.0:
            raise Stopped

    def __reduce__(self) -> tuple[Callable[..., "TimeLimit"], tuple[float | None, float]]:
        return _with_left, (self.seconds, self.left)


def _with_left(seconds: float | None, left: float) -> TimeLimit:
    started = learning_clock()
    return TimeLimit(seconds, started if seconds is None else started - (seconds - left))


@cache
def machine_speed() -> float:
    """Speed of a core of this machine, as a multiple of that of the reference machine.

    Measured once on a machine, in a tenth of a second, and stored in the user's cache folder: what
    a plan is cut to does not depend on what runs beside the fit.
    """
    folder = Path(environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "rareclass"
    file, name = folder / "machine_speed.json", processor()
    with suppress(OSError, ValueError, KeyError, TypeError):
        return float(json.loads(file.read_text())[name])
    speed = _REFERENCE_SECONDS / min(_sample_of_work() for _ in range(_REPEATS))
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
        written = file.with_suffix(".part")
        written.write_text(json.dumps({name: speed}))
        replace(written, file)
    return speed


def _sample_of_work() -> float:
    """Return the seconds of binary searches, which no library hands to several threads."""
    random = np.random.default_rng(0)
    values, sorted_ones = random.random(100_000), np.sort(random.random(20_000))
    started = time.perf_counter()
    np.searchsorted(sorted_ones, values)
    return time.perf_counter() - started
