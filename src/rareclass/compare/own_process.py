"""A method in a process of its own: its memory is measured, and it can be stopped at its time."""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.compare.fold_scores import FoldRows
from rareclass.errors import InputError

_LOOK_EVERY = 0.05
# A process that has not even read its rows by then will not.
_START_SECONDS = 600.0


class Outcome(NamedTuple):
    """What became of a method."""

    status: str  # "ok", "failed" or "stopped"
    message: str  # why, where it is not "ok"
    seconds: list[float]  # of each fold that was done
    memory: int | None  # most bytes beyond what was held before, where that is known
    scores: NDArray[np.float64] | None  # of the test rows of all folds, one after the other
    warnings: tuple[str, ...] = ()


class OwnProcesses:
    """Runs methods on the same rows, each in a new process that reads them from a file.

    A context manager: the file of rows goes when it ends.
    """

    def __init__(self, rows: FoldRows) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rareclass-compare-")
        self._path = Path(self._folder.name)
        try:
            (self._path / "rows").write_bytes(_pickled(rows, "The rows"))
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> "OwnProcesses":
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def run(self, estimator: Any, limit: float | None, advance: Callable[..., None]) -> Outcome:
        """Run a method, at most `limit` seconds from when it has its rows.

        ``advance()`` is called after each fold. Ctrl-C ends the process and is raised here.
        """
        for name in ("estimator", "said", "scores.npy"):
            (self._path / name).unlink(missing_ok=True)
        name = type(estimator).__name__
        (self._path / "estimator").write_bytes(_pickled(estimator, name))
        (self._path / "said").touch()
        files = [str(self._path / each) for each in ("rows", "estimator", "said", "scores.npy")]
        with (self._path / "printed").open("wb") as printed:
            process = subprocess.Popen(
                [sys.executable, "-P", "-m", "rareclass.compare.child", *files],
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=printed,
                env=_environment(),
                start_new_session=True,  # Ctrl-C is for this process
            )
            try:
                late = self._wait(process, limit, advance)
            finally:
                if process.poll() is None:
                    process.kill()
                process.wait()
        return self._outcome(process.returncode, late)

    def _wait(
        self, process: "subprocess.Popen[bytes]", limit: float | None, advance: Callable[..., None]
    ) -> str:
        """Wait for the end; what to say where it did not come in time."""
        start, ready, n_done = time.monotonic(), None, 0
        while True:
            try:
                process.wait(_LOOK_EVERY)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            events = self._events()
            done = sum(event["event"] == "fold" for event in events)
            for _ in range(done - n_done):
                advance()
            n_done = done
            if ended:
                return ""
            now = time.monotonic()
            if ready is None and events:
                ready = now
            if ready is None and now - start > _START_SECONDS:
                return f"it had not read its rows after {_START_SECONDS:g} s"
            if ready is not None and limit is not None and now - ready > limit:
                return f"stopped after {limit:g} s"

    def _events(self) -> list[dict[str, Any]]:
        lines = (self._path / "said").read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]  # the last is not at its end yet

    def _outcome(self, code: int, late: str) -> Outcome:
        events = self._events()
        seconds = [event["seconds"] for event in events if event["event"] == "fold"]
        last: dict[str, Any] = events[-1] if events else {"event": "none"}
        if last["event"] == "done":
            scores = np.load(self._path / "scores.npy")
            return Outcome("ok", "", seconds, last["memory"], scores, tuple(last["warnings"]))
        if late:
            return Outcome("stopped", late, seconds, None, None)
        if last["event"] == "failed":
            return Outcome("failed", " ".join(last["message"].split()), seconds, None, None)
        printed = (self._path / "printed").read_text(errors="replace").strip().split("\n")[-1]
        why = "out of memory?" if code == -9 else printed or "no word"
        return Outcome("failed", f"its process ended with code {code} ({why})", seconds, None, None)


def _pickled(what: Any, name: str) -> bytes:
    try:
        return pickle.dumps(what, protocol=5)
    except Exception as error:
        raise InputError(
            f"{name} cannot be sent to a process of its own ({error}).", "Give isolate=False."
        ) from error


def _environment() -> dict[str, str]:
    """As here: modules are looked for where this process does."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    # Threads that wait by spinning take the processor from others where there are more than cores.
    return {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONPATH": paths}
