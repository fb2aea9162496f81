"""Run a function in a process of its own that is ended when its time is up.

`call_within` runs it once; `each_within` runs it for one task after the other in the same process.
"""

import multiprocessing
import resource
import sys
import traceback
from collections.abc import Callable, Iterable, Iterator
from multiprocessing.connection import Connection
from typing import Any


def call_within(seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), or None when it takes longer than `seconds`.

    LIBSVM cannot be interrupted from within, so the limit is a process boundary. The outcome, a
    dict, gets ``peak_gib``: the most memory that the process has held so far.

    Raises
    ------
    RuntimeError
        When the function raised; the message holds its traceback.
    """
    return next(each_within(seconds, function, [args]))


def each_within(
    seconds: float, function: Callable[..., Any], tasks: Iterable[tuple[Any, ...]]
) -> Iterator[Any]:
    """function(*task) for each task, in one process; None for the first that takes too long.

    After a None there is nothing more. Raises as `call_within` does.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=_serve, args=(theirs, function), daemon=True)
    process.start()
    theirs.close()
    try:
        for task in tasks:
            ours.send(task)
            if not ours.poll(seconds):
                yield None
                return
            outcome, failure = ours.recv()
            if failure is not None:
                raise RuntimeError(failure)
            yield outcome
    except (EOFError, BrokenPipeError, ConnectionResetError):
        process.join()
        raise RuntimeError(f"the process ended with code {process.exitcode}") from None
    finally:
        process.terminate()
        process.join()


def _serve(pipe: Connection, function: Callable[..., Any]) -> None:
    try:
        while True:
            try:
                task = pipe.recv()
            except EOFError:
                return
            pipe.send(_outcome(function, task))
    except KeyboardInterrupt:
        pass  # the parent got it too and says so


def _outcome(function: Callable[..., Any], task: tuple[Any, ...]) -> tuple[Any, str | None]:
    """Result of the function, or the traceback of its exception."""
    try:
        outcome = function(*task)
    except KeyboardInterrupt:
        raise
    except BaseException:
        return None, traceback.format_exc()
    # ru_maxrss is in KiB on Linux and in bytes on macOS.
    unit = 2**30 if sys.platform == "darwin" else 2**20
    outcome["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    return outcome, None
