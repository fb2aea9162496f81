"""Ctrl-C and a polite kill: heeded between two batches, or at once while nothing is in hand."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


class Interruption:
    """Whether the process was asked to stop.

    Attributes
    ----------
    signal : int or None
        The signal that came; None so far.
    """

    def __init__(self) -> None:
        self.signal: int | None = None
        self._waiting = False

    @contextmanager
    def while_waiting(self) -> Iterator[None]:
        """Within the block, and only there, the first signal raises `KeyboardInterrupt`."""
        self._waiting = True
        try:
            if self.signal is not None:
                raise KeyboardInterrupt
            yield
        finally:
            self._waiting = False

    @contextmanager
    def heeded(self) -> Iterator[None]:
        """Take over SIGINT and SIGTERM within the block; a second one raises at once."""
        if threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may
            return
        before: dict[int, Any] = {}
        try:
            for number in (int(signal.SIGINT), int(signal.SIGTERM)):
                before[number] = signal.signal(number, self._note)
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

    def _note(self, number: int, frame: FrameType | None) -> None:
        again = self.signal is not None
        self.signal = number
        if again or self._waiting:
            raise KeyboardInterrupt
