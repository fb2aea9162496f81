"""Run a function in a process of its own that is ended when its time is up."""

import multiprocessing
import resource
import sys
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any


def call_within(seconds: float, function: Callable[..., Any], *args: Any) -> Any:
    """function(*args), or None when it takes longer than `seconds`.

    LIBSVM cannot be interrupted from within, so the limit is a process boundary. The outcome, a
    dict, gets ``peak_gib``: the most memory that the process held.

    Raises
    ------
    RuntimeError
        When the function raised; the message holds its traceback.
    """
    context = multiprocessing.get_context("spawn")
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_call, args=(sender, function, args), daemon=True)
    process.start()
    sender.close()
    try:
        if not receiver.poll(seconds):
            return None
        outcome, failure = receiver.recv()
    except EOFError:
        process.join()
        raise RuntimeError(f"the process ended with code {process.exitcode}") from None
    finally:
        process.terminate()
        process.join()
    if failure is not None:
        raise RuntimeError(failure)
    return outcome


def _call(sender: Connection, function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    try:
        outcome = function(*args)
        # ru_maxrss is in KiB on Linux and in bytes on macOS.
        unit = 2**30 if sys.platform == "darwin" else 2**20
        outcome["peak_gib"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
        sender.send((outcome, None))
    except KeyboardInterrupt:
        pass  # the parent got it too and says so
    except BaseException:
        sender.send((None, traceback.format_exc()))
