"""How many processors other programs kept busy while a process ran: the doubt about a time.

From Linux's own accounting: what all processors did in the meantime, less what the processes that
this one started and waited for have used. Elsewhere it is not known.
"""

import os
import resource
import time
from pathlib import Path
from typing import NamedTuple

_STAT = Path("/proc/stat")
# Fields of the first line of /proc/stat: user nice system idle iowait irq softirq steal ...
_BUSY = (1, 2, 3, 6, 7, 8)


class Clock(NamedTuple):
    """A moment: wall seconds, busy seconds of all processors, of this process's children."""

    wall: float
    busy: float | None
    own: float


def now() -> Clock:
    """This moment."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    mine = time.process_time()
    return Clock(time.perf_counter(), _busy_seconds(), used.ru_utime + used.ru_stime + mine)


def cores_of_others(start: Clock, end: Clock) -> float | None:
    """Processors that others kept busy between two moments, on average; None if not known."""
    if start.busy is None or end.busy is None:
        return None
    others = (end.busy - start.busy) - (end.own - start.own)
    return max(0.0, others / (end.wall - start.wall))


def _busy_seconds() -> float | None:
    try:
        fields = _STAT.read_text().split("\n", 1)[0].split()
    except OSError:
        return None
    return sum(int(fields[k]) for k in _BUSY) / os.sysconf("SC_CLK_TCK")
