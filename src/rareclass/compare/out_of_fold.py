"""Out-of-fold scores: learn the training part of each fold and score the test part.

A method runs here, or in a process of its own: its memory is measured then, and it is stopped at
its time. For that the parent writes rows and estimator to files; the child learns and scores all
folds, writes a line of JSON for each event, and the scores at the end.
"""

import inspect
import json
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from rareclass.decide.rarity_scores import rarity_scores
from rareclass.errors import ErrorKind, InputError

Advance = Callable[..., None]

# Rows that weights may be written out as, for a learner that takes none.
_MOST_COPIED = 5_000_000
_LOOK_EVERY, _PARENT_EVERY = 0.05, 1.0
# A process that has not even read its rows by then will not.
_START_SECONDS = 600.0
_MOST_WARNINGS = 5
# A method whose folds so far foretell so many times its limit is stopped at once.
_HOPELESS = 1.5
_CHILD = "from rareclass.compare.out_of_fold import run_child; run_child()"
_STATUS, _RESET = Path("/proc/self/status"), Path("/proc/self/clear_refs")


@dataclass(frozen=True)
class MethodRun:
    """Outcome of a method on all folds."""

    name: str
    status: str  # "ok", "failed", "not tried", "stopped" at its time, "interrupted" by Ctrl-C
    message: str  # reason where the status is not "ok"
    seconds: float  # of all folds that were done, learning and scoring
    n_folds: int  # done
    memory: int | None  # most bytes beyond the rows; None where it was not measured
    warnings: tuple[str, ...] = ()

    @property
    def is_judged(self) -> bool:
        """True where the method has scores of all test rows."""
        return self.status == "ok"

    def why_not(self) -> str:
        """Say in a line why the method has no scores."""
        failed = "failed, " if self.status == "failed" else ""
        return f"{self.name}: {failed}{self.message.rstrip('.')}."


class FoldRows(NamedTuple):
    """Rows that all methods learn from and are tested on, and their folds."""

    X: Any
    y: NDArray[Any]  # labels, as the methods are given them
    pos_label: Any
    weight: NDArray[np.float64] | None
    groups: NDArray[Any] | None
    time: NDArray[Any] | None
    folds: list[tuple[NDArray[np.intp], NDArray[np.intp]]]  # rows to learn from and to test


class FoldScores(NamedTuple):
    """Scores of a fold's test rows, in their order, and the seconds to learn and score."""

    scores: NDArray[np.float64]
    seconds: float


class MethodOutcome(NamedTuple):
    """Scores of a method on all folds, or the reason why there are none."""

    status: str  # "ok", "failed", "stopped" or "interrupted"
    message: str  # reason where the status is not "ok"
    seconds: list[float]  # of each fold that was done
    memory: int | None = None  # most bytes beyond those held before, where that is known
    scores: NDArray[np.float64] | None = None  # of the test rows of all folds, one after the other
    warnings: tuple[str, ...] = ()

    def run(self, name: str) -> MethodRun:
        """Return the outcome as a line of the comparison."""
        return MethodRun(
            name,
            self.status,
            self.message,
            sum(self.seconds),
            len(self.seconds),
            self.memory,
            self.warnings,
        )


def why_stopped(limit: float | None, seconds: Sequence[float], n_folds: int, passed: float) -> str:
    """Return why a method is stopped by its limit; empty where it may go on.

    `seconds` are those of the folds that are done, `passed` those since the method began. A method
    whose folds so far show that all of them need half as much again is not waited for.
    """
    if limit is None or len(seconds) == n_folds:
        return ""
    if seconds and (needs := n_folds * sum(seconds) / len(seconds)) > _HOPELESS * limit:
        return f"stopped: it needs about {needs:.2g} s and had {limit:.2g} s"
    return f"stopped after {limit:.3g} s" if passed > limit else ""


def fold_scores(estimator: Any, rows: FoldRows) -> Iterator[FoldScores]:
    """Learn and score fold by fold, each by a clone of the estimator."""
    for train, test in rows.folds:
        start = time.perf_counter()
        beside = (
            None if column is None else column[train]
            for column in (rows.weight, rows.groups, rows.time)
        )
        model = fit_on(clone(estimator), take_rows(rows.X, train), rows.y[train], *beside)
        scores = rarity_scores(model, take_rows(rows.X, test), rows.pos_label)
        yield FoldScores(scores, time.perf_counter() - start)


def take_rows(X: Any, rows: NDArray[np.intp]) -> Any:
    """Take rows of an array, a sparse matrix, or a pandas, polars or pyarrow table."""
    if sparse.issparse(X) or isinstance(X, np.ndarray):
        return X[rows]
    table = nw.from_native(X, eager_only=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        return table[rows].to_native()
    return np.asarray(X)[rows]


def fit_on(
    estimator: Any,
    X: Any,
    y: NDArray[Any],
    weight: NDArray[np.float64] | None = None,
    groups: NDArray[Any] | None = None,
    time: NDArray[Any] | None = None,
) -> Any:
    """Fit an estimator in place, with those of weights, groups and times that its ``fit`` takes.

    Groups and times are for folds of the estimator's own. Where it takes no weights, a row of
    weight k is repeated k times.

    Raises `InputError` where weights that are not all whole would have to be written out.
    """
    taken = inspect.signature(estimator.fit).parameters
    beside = {"sample_weight": weight, "groups": groups, "time": time if groups is None else None}
    passed = {
        name: column for name, column in beside.items() if column is not None and name in taken
    }
    if weight is not None and "sample_weight" not in passed:
        rows = _repeated(type(estimator).__name__, weight)
        X, y = take_rows(X, rows), y[rows]
        passed = {name: column[rows] for name, column in passed.items()}
    return estimator.fit(X, y, **passed)


def _repeated(name: str, weight: NDArray[np.float64]) -> NDArray[np.intp]:
    """Each row number as often as its weight says; `name` of the estimator is for messages."""
    if (weight % 1.0 != 0.0).any():
        raise InputError(
            f"{name} takes no sample_weight, and weights that are not whole numbers cannot be "
            "written out as repeated rows.",
            "Leave it out, or give whole weights.",
            ErrorKind.UNSUPPORTED,
        )
    if weight.sum() > _MOST_COPIED:
        raise InputError(
            f"{name} takes no sample_weight, and {weight.sum():,.0f} repeated rows are too many.",
            "Leave it out.",
            ErrorKind.UNSUPPORTED,
        )
    return np.repeat(np.arange(len(weight)), weight.astype(np.intp))


class OwnProcesses:
    """Runs methods on the same rows, each in a new process that reads the rows from a file.

    A context manager: the file of rows is removed when it ends.
    """

    def __init__(self, rows: FoldRows) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="rareclass-compare-")
        self._path = Path(self._folder.name)
        try:
            (self._path / "rows").write_bytes(_pickled(rows, "The rows"))
            self._n_folds = len(rows.folds)
        except BaseException:
            self._folder.cleanup()
            raise

    def __enter__(self) -> "OwnProcesses":
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def run(self, estimator: Any, limit: float | None, advance: Advance) -> MethodOutcome:
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
        self, process: "subprocess.Popen[bytes]", limit: float | None, advance: Advance
    ) -> str:
        """Wait for the end; return the reason where the process has to be stopped."""
        start, ready, n_done, n_folds = time.monotonic(), None, 0, self._n_folds
        while True:
            try:
                process.wait(_LOOK_EVERY)
                ended = True
            except subprocess.TimeoutExpired:
                ended = False
            events = self._events()
            seconds = [event["seconds"] for event in events if event["event"] == "fold"]
            for _ in range(len(seconds) - n_done):
                advance()
            n_done = len(seconds)
            if ended:
                return ""
            now = time.monotonic()
            if ready is None and events:
                ready = now
            if ready is None and now - start > _START_SECONDS:
                return f"it had not read its rows after {_START_SECONDS:g} s"
            if ready is not None and (why := why_stopped(limit, seconds, n_folds, now - ready)):
                return why

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
