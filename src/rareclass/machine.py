"""The machine: free memory, sizes in bytes, threads, signals, and progress on its terminal."""

import os
import re
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from functools import cache, wraps
from importlib.util import find_spec
from pathlib import Path
from threading import current_thread, get_ident, main_thread
from types import FrameType
from typing import Any, Concatenate, ParamSpec, TypeVar

from threadpoolctl import ThreadpoolController

from rareclass.errors import ErrorKind, InputError

_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "TIB": 2**40}
_CGROUP_2 = Path("/sys/fs/cgroup")
_CGROUP_1 = Path("/sys/fs/cgroup/memory")


def parse_bytes(memory: int | float | str) -> int:
    """Parse bytes from a number or a text such as ``"2GiB"``, ``"256 MB"``.

    Raises `ValueError` when the text is not a number with one of the units B, kB, MB, GB, TB, KiB,
    MiB, GiB, TiB.

    >>> parse_bytes("2GiB")
    2147483648
    """
    if isinstance(memory, str):
        match = re.fullmatch(r"\s*([0-9.]+(?:e[0-9]+)?)\s*([a-z]*)\s*", memory, re.IGNORECASE)
        if match is None or match[2].upper() not in _UNITS:
            raise ErrorKind.SETTING.error(f"memory={memory!r} is no size, such as '2GiB'.")
        memory = float(match[1]) * _UNITS[match[2].upper()]
    if not memory > 0:
        raise ErrorKind.SETTING.error(f"memory={memory!r} must be above 0.", "Write '2GiB'.")
    return int(memory)


def size_text(n_bytes: float) -> str:
    """Format a number of bytes.

    >>> size_text(3 * 2**30)
    '3.0 GiB'
    >>> size_text(1500)
    '1.5 KiB'
    """
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if n_bytes < 1024:
            return f"{n_bytes:.0f} {unit}" if unit == "bytes" else f"{n_bytes:.1f} {unit}"
        n_bytes /= 1024
    return f"{n_bytes:.1f} TiB"


@contextmanager
def signals_noted(
    note: Callable[[int, FrameType | None], None],
) -> Iterator[dict[int, Callable[..., Any]]]:
    """Let the signals that end a process call `note` within the block, except those ignored.

    Yields what each did before. Python runs what it does at a signal in the main thread alone:
    nothing changes in another one.
    """
    before = dict[int, Callable[..., Any]]()
    try:
        for number in signal.Signals if current_thread() is main_thread() else ():
            handler = signal.getsignal(number)
            if number.name in _ENDING and callable(handler):
                before[number] = handler
                signal.signal(number, note)
        yield before
    finally:
        for changed, handler in before.items():
            signal.signal(changed, handler)


_ENDING = ("SIGINT", "SIGTERM", "SIGHUP")
_NEGLIGIBLE = 2**24


def check_fits(needed: int, what: str, remedy: str) -> None:
    """Raise `ValueError` when `what`, a plural noun, needs more than half of the free bytes.

    Less than 16 MiB is not looked at: asking the system takes as long as a small fit.
    """
    if needed < _NEGLIGIBLE:
        return
    free = available_memory()
    if needed > free // 2:
        fault = f"{what} take {size_text(needed)}; {size_text(free)} are free."
        raise ErrorKind.MEMORY.error(fault, remedy)


def available_memory() -> int:
    """Return the bytes this process may still take: free on the machine and in the container."""
    limits = [_free_on_machine()]
    for folder, limit, used in (
        (_CGROUP_2, "memory.max", "memory.current"),
        (_CGROUP_1, "memory.limit_in_bytes", "memory.usage_in_bytes"),
    ):
        try:
            most = int((folder / limit).read_text())
        except (OSError, ValueError):
            continue
        try:
            taken = int((folder / used).read_text())
            lines = (folder / "memory.stat").read_text().splitlines()
        except (OSError, ValueError):
            taken, lines = 0, []
        # The page cache counts as used although it is given up on demand.
        fields = dict(line.split(maxsplit=1) for line in lines if " " in line)
        cache = int(fields.get("inactive_file", fields.get("total_inactive_file", "0")))
        limits.append(most - max(0, taken - cache))
    return max(0, min(limits))


def _free_on_machine() -> int:
    with suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) * 1024
    with suppress(ValueError, OSError, AttributeError):
        # Not Linux: the best known figure is all of the memory.
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return 1 << 62


def one_blas_thread() -> AbstractContextManager:
    """Run BLAS in one thread while this is open.

    BLAS adds up in another order with other threads: the last bits of a model would depend on the
    cores. Threads work on blocks of rows instead, whose order is fixed; they would also wait for
    BLAS threads, which go on spinning after a call. Of threads of a caller that open this at the
    same time, the first decides, until it closes it.
    """
    return _blas_libraries().limit(limits=1)


@cache
def _blas_libraries() -> ThreadpoolController:
    """Find the BLAS libraries of this process, once: that takes 4 ms, as long as a small fit."""
    return ThreadpoolController().select(user_api="blas")


Advance = Callable[..., None]
# What `hush` was told last; None where no command line runs.
_hushed: bool | None = None
_n_bars = 0  # open now


def _silent(step: float = 1, note: str = "") -> None:
    """Report nothing."""


@contextmanager
def track(
    description: str, total: float | None = None, enabled: bool | str = "auto"
) -> Iterator[Advance]:
    """Show a progress bar on standard error while long work runs; yields ``advance(step, note)``.

    Without a total a spinner is shown; "auto" shows something when standard error is a terminal and
    `rich` is installed.

    >>> with track("Scoring", total=2, enabled=False) as advance:
    ...     advance()
    """
    if enabled == "auto":
        enabled = not _hushed and _is_watched()
    if not enabled or find_spec("rich") is None:
        yield _silent
        return
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        SpinnerColumn,
        TextColumn,
        TimeElapsedColumn,
    )

    # The name of a file may hold brackets, which are no markup.
    columns = [SpinnerColumn(), TextColumn("{task.description}", markup=False)]
    if total is not None:
        columns += [BarColumn(), MofNCompleteColumn()]
    columns += [TimeElapsedColumn(), TextColumn("{task.fields[note]}", style="dim", markup=False)]
    global _n_bars
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total, note="")

        def advance(step: float = 1, note: str = "") -> None:
            progress.update(task, advance=step, note=note)

        _n_bars += 1
        try:
            yield advance
        finally:
            _n_bars -= 1


def hush(is_hushed: bool) -> None:
    """Switch "auto" off in this process, as the command line's ``--quiet`` does, or on again.

    Called with False, as each command does, it also lets `tell` print where no bar is.
    """
    global _hushed
    _hushed = is_hushed


def announce(line: str, enabled: bool | str = "auto") -> None:
    """Print a line before long work in Python where `track` shows a bar; commands have their own.

    True prints it anywhere.
    """
    if enabled is True or (enabled == "auto" and _hushed is None and _is_watched()):
        _print_line(line)


def tell(line: str) -> None:
    """Print a line on standard error in a command that is not quiet; in Python beside a bar."""
    if _hushed is False or (_hushed is None and _n_bars):
        _print_line(line)


def _is_watched() -> bool:
    """Say whether standard error is a terminal; a process without one may have no such stream."""
    return sys.stderr is not None and not sys.stderr.closed and sys.stderr.isatty()


def _print_line(line: str) -> None:
    if sys.stderr is not None:
        with suppress(OSError, ValueError):  # nobody reads it any more
            print(line, file=sys.stderr, flush=True)


Given = ParamSpec("Given")
Answer = TypeVar("Answer")
Method = Callable[Concatenate[Any, Given], Answer]
# Thread that an estimator learns in, and the call, by the estimator's identity. Not an attribute:
# locks are neither copied nor pickled.
_learning: dict[int, tuple[int, object]] = {}


def in_one_thread(method: Method[Given, Answer]) -> Method[Given, Answer]:
    """Refuse calls while another thread has the same estimator learn; what it learns would mix.

    Raises `InputError` of kind `LOCKED`.
    """

    @wraps(method)
    def guarded(self: Any, *given: Given.args, **named: Given.kwargs) -> Answer:
        this = (get_ident(), object())
        found = _learning.setdefault(id(self), this)
        if found[0] != this[0]:
            raise ErrorKind.LOCKED.error(
                f"This {type(self).__name__} is learning in another thread.",
                "Let one thread learn after another, or give each an estimator of its own.",
            )
        try:
            return method(self, *given, **named)
        finally:
            if found is this:
                del _learning[id(self)]

    return guarded


def all_or_nothing(
    method: Method[Given, Answer], undoes: type[BaseException] = BaseException
) -> Method[Given, Answer]:
    """Leave the attributes of an estimator as they were where the method raises `undoes`.

    Not where another thread learns, whose attributes these are.
    """

    @wraps(method)
    def undone(self: Any, *given: Given.args, **named: Given.kwargs) -> Answer:
        before = dict(vars(self))
        try:
            return method(self, *given, **named)
        except undoes as error:
            if not isinstance(error, InputError) or error.kind != ErrorKind.LOCKED:
                self.__dict__ = before
            raise

    return undone
