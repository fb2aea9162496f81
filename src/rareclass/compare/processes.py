"""A method in a process of its own: its memory is measured, and it is stopped at its time.

The parent writes rows and estimator to files. The child learns and scores all folds, writes a line
of JSON for each event, and the scores at the end.
"""

import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from rareclass.compare.out_of_fold import FoldRows, MethodOutcome, fold_scores
from rareclass.errors import ErrorKind, InputError

_LOOK_EVERY, _PARENT_EVERY = 0.05, 1.0
# A process that has not even read its rows by then will not.
_START_SECONDS = 600.0
_MOST_WARNINGS = 5
_CHILD = "from rareclass.compare.processes import run_child; run_child()"
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class OwnProcesses:
    """Runs methods on the same rows, each in a new process that reads the rows from a file.

    A context manager: the file of rows is removed when it ends.
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

    def run(
        self, estimator: Any, limit: float | None, advance: Callable[..., None]
    ) -> MethodOutcome:
        """Run a method, at most `limit` seconds from when it has read its rows.

        ``advance()`` is called after each fold. Ctrl-C ends the process and is raised here.
        """
        for name in ("events", "scores.npy"):
            (self._path / name).unlink(missing_ok=True)
        (self._path / "estimator").write_bytes(_pickled(estimator, type(estimator).__name__))
        (self._path / "events").touch()
        with (self._path / "printed").open("wb") as printed:
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _CHILD, str(self._path)],
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
        """Wait for the end; return the reason where the process has to be stopped."""
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
        lines = (self._path / "events").read_text().split("\n")
        return [json.loads(line) for line in lines[:-1]]  # the last line is not complete yet

    def _outcome(self, code: int, late: str) -> MethodOutcome:
        events = self._events()
        seconds = [event["seconds"] for event in events if event["event"] == "fold"]
        last: dict[str, Any] = events[-1] if events else {"event": "none"}
        if last["event"] == "done":
            scores, caught = np.load(self._path / "scores.npy"), tuple(last["warnings"])
            return MethodOutcome("ok", "", seconds, last["memory"], scores, caught)
        if late:
            return MethodOutcome("stopped", late, seconds)
        if last["event"] == "failed":
            return MethodOutcome("failed", " ".join(last["message"].split()), seconds)
        printed = (self._path / "printed").read_text(errors="replace").strip().split("\n")[-1]
        why = "out of memory?" if code == -9 else printed or "no word"
        return MethodOutcome("failed", f"its process ended with code {code} ({why})", seconds)


def _pickled(what: Any, name: str) -> bytes:
    try:
        return pickle.dumps(what, protocol=5)
    except Exception as error:
        raise InputError(
            f"{name} cannot be sent to a process of its own ({error}).",
            "Give isolate=False.",
            ErrorKind.UNSUPPORTED,
        ) from error


def _environment() -> dict[str, str]:
    """Environment of this process, with its module search path."""
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)
    # Threads that wait by spinning take the processor from others where there are more than cores.
    return {"OMP_WAIT_POLICY": "PASSIVE", **os.environ, "PYTHONPATH": paths}


def run_child(folder: str | None = None) -> None:
    """Run the method in a folder, the process's first argument by default, and write events."""
    _end_with_parent()
    path = Path(sys.argv[1] if folder is None else folder)
    scores: list[np.ndarray] = []
    with (path / "events").open("a") as log, warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")

        def say(**event: Any) -> None:
            log.write(json.dumps(event) + "\n")
            log.flush()

        try:
            rows = pickle.loads((path / "rows").read_bytes())
            estimator = pickle.loads((path / "estimator").read_bytes())
            before = _held_now()
            say(event="ready")
            for fold in fold_scores(estimator, rows):
                scores.append(fold.scores)
                say(event="fold", seconds=fold.seconds)
        except Exception as error:
            say(event="failed", message=f"{type(error).__name__}: {error}")
            return
        np.save(path / "scores.npy", np.concatenate(scores))
        after = _peak()
        memory = None if before is None or after is None else max(after - before, 0)
        texts = list(dict.fromkeys(str(each.message) for each in caught))[:_MOST_WARNINGS]
        say(event="done", memory=memory, warnings=texts)


def _end_with_parent() -> None:
    """Let a thread end this process when its parent is gone, however the parent ended."""
    parent = os.getppid()

    def look() -> None:
        while os.getppid() == parent:
            time.sleep(_PARENT_EVERY)
        os._exit(1)

    threading.Thread(target=look, daemon=True).start()


def _held_now() -> int | None:
    """Bytes held, from which a peak is counted.

    Linux keeps a high-water mark, which is set back to the bytes held. Elsewhere ``ru_maxrss`` has
    to do, which can only grow; None where there is not even that.
    """
    try:
        _RESET.write_text("5")
    except OSError:
        return _most()
    return _of_status("VmRSS")


def _peak() -> int | None:
    """Most bytes held since `_held_now`, or since the beginning where there is no such mark."""
    found = _of_status("VmHWM")
    return _most() if found is None else found


def _of_status(name: str) -> int | None:
    try:
        lines = _STATUS.read_text().splitlines()
    except OSError:
        return None
    return next((1024 * int(s.split()[1]) for s in lines if s.startswith(f"{name}:")), None)


def _most() -> int | None:
    try:
        import resource
    except ImportError:  # Windows
        return None
    # In KiB on Linux and in bytes on macOS.
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
