"""What came of an action on hostile input: done, refused by name, or a fault of ours."""

import resource
import signal
import time
import traceback
from contextlib import contextmanager
from typing import NamedTuple

from rareclass.errors import InputError

# An action on a few hundred rows that takes more than this hangs, or eats memory.
MOST_SECONDS = 20.0  # of the processor: another process may have it in between
MOST_WAITING = 300.0
MOST_BYTES = 2**31


class TookTooLong(BaseException):
    """Raised in the action itself, so that no ``except Exception`` of it hides the hang."""


class Outcome(NamedTuple):
    kind: str  # "done", "refused", or what is wrong
    detail: str = ""  # the message, or the traceback
    seconds: float = 0.0

    @property
    def is_fault(self):
        return self.kind not in ("done", "refused")


def outcome_of(action):
    """Run an action under limits; it is to end, or to raise `InputError` with a message."""
    begun = time.monotonic()
    kind, detail = "done", ""
    try:
        with _limited(MOST_SECONDS):
            action()
    except InputError as error:
        kind, detail = "refused", str(error)
        if len(error.message.strip()) < 10:
            kind = "refused without a word"
    except TookTooLong:
        kind, detail = "hang", traceback.format_exc()
    except MemoryError:
        kind, detail = "memory", traceback.format_exc()
    except Exception:
        kind, detail = "traceback", traceback.format_exc()
    return Outcome(kind, detail, time.monotonic() - begun)


@contextmanager
def memory_limit(more=MOST_BYTES):
    """Let this process take so many bytes more than it has; what asks for more fails at once."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    with open("/proc/self/statm") as file:
        taken = int(file.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


@contextmanager
def _limited(seconds):
    def stop(number, frame):
        raise TookTooLong

    before = [signal.signal(number, stop) for number in (signal.SIGPROF, signal.SIGALRM)]
    signal.setitimer(signal.ITIMER_PROF, seconds)
    signal.setitimer(signal.ITIMER_REAL, MOST_WAITING)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGPROF, before[0])
        signal.signal(signal.SIGALRM, before[1])
