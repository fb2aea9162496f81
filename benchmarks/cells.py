"""A cell is one measurement, made in a process of its own: `run_cell` starts it and waits.

The process gets a function by name and its arguments as JSON on standard input, and gives a dict
back as the last line of standard output. A fresh process has its own peak of memory, its own
threads, and can be ended; what it measures starts after imports, loading and warming up. The
measured part is bounded by an alarm that ends the process (`time_limit`), because LIBSVM cannot be
interrupted from within Python.

``python -m benchmarks.cells`` is that process.
"""

import importlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks import other_work
from benchmarks.record import plain

ROOT = Path(__file__).parents[1]
# Beyond its limit a cell gets this long for imports, loading, warming up and scoring.
GRACE_SECONDS = 900.0
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


@dataclass(frozen=True)
class Cell:
    """One measurement that the ledger knows by its key.

    Parameters
    ----------
    key : str
        Unique within a benchmark: "simulated 1,000,000 x 40 / lightgbm", say.
    function : str
        "module:name" of what runs in the process; it takes ``arguments`` and returns a dict.
    arguments : mapping
        As JSON can hold them.
    limit : float
        Seconds for the measured part.
    about : mapping
        What the ledger says of it besides the key.
    after : str or None
        Key of a cell that must not have been stopped: a smaller size of the same, say.
    skip : str
        Why it cannot be run on this machine; empty when it can.
    """

    key: str
    function: str
    arguments: Mapping[str, Any]
    limit: float = 600.0
    about: Mapping[str, Any] = field(default_factory=dict)
    after: str | None = None
    skip: str = ""


@dataclass(frozen=True)
class Group:
    """Cells that take turns: the first run of each, then the second of each, and so on.

    Parameters
    ----------
    title : str
    cells : sequence of Cell
    repeats : int
        Runs of each cell.
    repeat_below : float
        A cell is run again as long as its processes have taken less than this many seconds in all.
    preparations : sequence of Cell
        Run before the first of them and not recorded: they make the data.
    """

    title: str
    cells: Sequence[Cell]
    repeats: int = 3
    repeat_below: float = 25.0
    preparations: Sequence[Cell] = ()


def run_cell(cell: Cell, threads: int) -> dict[str, Any]:
    """Run a cell in its own process: its outcome with a status, and the seconds of the process.

    Returns
    -------
    dict
        ``status`` is "ok", "stopped" (the limit), "killed" (from outside: memory, usually) or
        "failed", with the last line of the failure under ``message``. ``cores_of_others`` says how
        many processors other programs kept busy: much above zero, the time is not to be trusted.
    """
    order = {"function": cell.function, "arguments": {**cell.arguments, "threads": threads}}
    order["arguments"]["limit"] = cell.limit
    environment = dict(os.environ) | dict.fromkeys(_THREAD_VARIABLES, str(threads))
    start = other_work.now()
    process = subprocess.Popen(
        [sys.executable, "-m", "benchmarks.cells"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env=environment,
        text=True,
    )
    try:
        out, error = process.communicate(json.dumps(order), timeout=cell.limit + GRACE_SECONDS)
        outcome = _outcome(process.returncode, out, error, cell.limit)
    except subprocess.TimeoutExpired:
        outcome = {"status": "stopped", "limit": cell.limit, "message": "outside of the fit"}
    finally:
        process.kill()
        process.wait()
    end = other_work.now()
    others = other_work.cores_of_others(start, end)
    return {**outcome, "process_seconds": end.wall - start.wall, "cores_of_others": others}


def _outcome(code: int, out: str, error: str, limit: float) -> dict[str, Any]:
    if code == 0:
        return {"status": "ok", **json.loads(out.splitlines()[-1])}
    return end_of(code, error, limit)


def end_of(code: int, error: str, limit: float) -> dict[str, Any]:
    """Return why a process ended that did not succeed."""
    if code == -signal.SIGALRM:
        return {"status": "stopped", "limit": limit}
    message = next((line for line in reversed(error.splitlines()) if line.strip()), "")
    status = "killed" if code == -signal.SIGKILL else "failed"
    return {"status": status, "message": message or f"exit code {code}"}


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """End this process by SIGALRM when the block takes longer, whatever code it is in."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)


def main() -> int:
    """Do what standard input says and print the outcome."""
    order = json.load(sys.stdin)
    module, name = order["function"].split(":")
    outcome = getattr(importlib.import_module(module), name)(**order["arguments"])
    print(json.dumps(outcome, default=plain))
    return 0


if __name__ == "__main__":
    sys.exit(main())
