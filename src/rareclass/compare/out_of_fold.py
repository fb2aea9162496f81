"""Out-of-fold scores: learn the training part of each fold and score the test part.

A method runs here, or in a process of its own, which ends at its time and may crash alone.
"""

import inspect
import os
import pickle
import shutil
import signal
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import Future, wait
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple, cast

import narwhals as nw
import numpy as np
from joblib.externals.loky import BrokenProcessPool, ProcessPoolExecutor
from numpy.typing import NDArray
from scipy import sparse
from sklearn.base import clone

from rareclass.decide.rarity_scores import rarity_scores
from rareclass.errors import ErrorKind, seconds_text

Advance = Callable[..., None]
# Scores of a fold by its number, within the seconds that are left.
ScoreFold = Callable[[int, float | None], "FoldScores"]

# Rows that weights may be written out as, for a learner that takes none.
_MOST_COPIED = 5_000_000
# A process that has not even read its rows by then will not.
_START_SECONDS = 600.0
# Between two looks of a process whether the one that began it is there, in seconds.
_BETWEEN_LOOKS = 0.5
_MOST_WARNINGS = 5
# A method whose folds so far foretell so many times its limit is stopped at once.
_HOPELESS = 1.5


@dataclass(frozen=True)
class MethodRun:
    """Outcome of a method on all folds."""

    name: str
    status: str  # "ok", "failed", "not tried", "stopped" at its time, "interrupted" by Ctrl-C
    message: str  # reason where the status is not "ok"
    seconds: float  # of all folds that were done, learning and scoring
    n_folds: int  # done
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
    warnings: tuple[str, ...] = ()  # of a process of its own


class _LateError(Exception):
    """A fold did not end within its seconds."""


class MethodOutcome(NamedTuple):
    """Outcome of a method, and its scores where it has them."""

    run: MethodRun
    scores: NDArray[np.float64] | None = None  # of the test rows of all folds, one after the other


def why_stopped(limit: float | None, seconds: Sequence[float], n_folds: int) -> str:
    """Return why a method is stopped after some folds; empty where it may go on.

    A method whose folds so far show that all of them need half as much again is not waited for.
    """
    if limit is None or len(seconds) == n_folds:
        return ""
    if (needs := n_folds * sum(seconds) / len(seconds)) > _HOPELESS * limit:
        return f"stopped: it needs about {seconds_text(needs)} and had {seconds_text(limit)}"
    return f"stopped after {seconds_text(limit)}" if sum(seconds) > limit else ""


def run_method(
    name: str, n_folds: int, score_fold: ScoreFold, limit: float | None, advance: Advance
) -> MethodOutcome:
    """Score fold by fold until all are done, the method fails, or its seconds are used up.

    ``advance()`` is called after each fold. Ctrl-C is raised.
    """
    found: list[FoldScores] = []
    seconds: list[float] = []

    def ended(status: str, message: str = "", caught: tuple[str, ...] = ()) -> MethodRun:
        return MethodRun(name, status, message, sum(seconds), len(seconds), caught)

    try:
        for number in range(n_folds):
            left = None if limit is None else max(limit - sum(seconds), 0.0)
            found.append(score_fold(number, left))
            seconds.append(found[-1].seconds)
            advance()
            if why := why_stopped(limit, seconds, n_folds):
                return MethodOutcome(ended("stopped", why))
    except _LateError as error:
        return MethodOutcome(ended("stopped", str(error)))
    except BrokenProcessPool as error:
        reason = str(error).rpartition(" are ")[2] or "no word"
        return MethodOutcome(ended("failed", f"its process ended: out of memory? ({reason})"))
    except Exception as error:
        message = " ".join(f"{type(error).__name__}: {error}".split())
        return MethodOutcome(ended("failed", message))
    caught = tuple(dict.fromkeys(text for fold in found for text in fold.warnings))
    scores = np.concatenate([fold.scores for fold in found])
    return MethodOutcome(ended("ok", caught=caught[:_MOST_WARNINGS]), scores)


def run_here(
    rows: FoldRows, name: str, estimator: Any, limit: float | None, advance: Advance
) -> MethodOutcome:
    """Run a method in this process, as `run_method`: it is stopped between folds alone."""

    def score_fold(number: int, left: float | None) -> FoldScores:
        return score_fold_of(estimator, rows, number)

    return run_method(name, len(rows.folds), score_fold, limit, advance)


def score_fold_of(estimator: Any, rows: FoldRows, number: int) -> FoldScores:
    """Learn a clone of the estimator on the training rows of a fold, and score its test rows."""
    start = time.perf_counter()
    train, test = rows.folds[number]
    columns = rows.weight, rows.groups, rows.time
    beside = (None if column is None else column[train] for column in columns)
    model = fit_on(clone(estimator), take_rows(rows.X, train), rows.y[train], *beside)
    scores = rarity_scores(model, take_rows(rows.X, test), rows.pos_label)
    return FoldScores(scores, time.perf_counter() - start)


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
        fault = "weights that are not whole numbers cannot be written out as repeated rows"
        remedy = "Leave it out, or give whole weights."
    elif weight.sum() > _MOST_COPIED:
        fault, remedy = f"{weight.sum():,.0f} repeated rows are too many", "Leave it out."
    else:
        return np.repeat(np.arange(len(weight)), weight.astype(np.intp))
    raise ErrorKind.UNSUPPORTED.error(f"{name} takes no sample_weight, and {fault}.", remedy)


class OwnProcesses:
    """Runs methods on the same rows, each in a new process of loky that reads them from a file.

    The file of rows is removed by `close`, or by the process of a method where this one was killed.
    """

    def __init__(self, rows: FoldRows) -> None:
        try:
            content = pickle.dumps(rows, protocol=5)
        except Exception as error:
            raise ErrorKind.UNSUPPORTED.error(
                f"The rows cannot be sent to a process of its own ({error}).", "Give isolate=False."
            ) from error
        self._folder = tempfile.TemporaryDirectory(prefix="rareclass-compare-")
        self._path = Path(self._folder.name) / "rows"
        self._path.write_bytes(content)
        self._n_folds = len(rows.folds)

    def close(self) -> None:
        """Remove the file of rows."""
        self._folder.cleanup()

    def run(
        self, name: str, estimator: Any, limit: float | None, advance: Advance
    ) -> MethodOutcome:
        """Run a method, at most `limit` seconds from when it has read its rows, as `run_method`."""
        # Threads that wait by spinning take the processor from others where there are many.
        begin = partial(_begin_quietly, os.getpid(), self._folder.name)
        passive = {"OMP_WAIT_POLICY": "PASSIVE", **os.environ}
        process = ProcessPoolExecutor(1, initializer=begin, env=passive)

        def score_fold(number: int, left: float | None) -> FoldScores:
            if not number:
                why = f"it had not read its rows after {seconds_text(_START_SECONDS)}"
                _result_of(process.submit(_holds_rows, self._path), _START_SECONDS, why)
            why = "" if limit is None else f"stopped after {seconds_text(limit)}"
            return _result_of(process.submit(_scored, estimator, self._path, number), left, why)

        try:
            with warnings.catch_warnings():
                # loky begins a process anew that holds much more memory than at first.
                warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
                return run_method(name, self._n_folds, score_fold, limit, advance)
        finally:
            process.shutdown(kill_workers=True)


def _result_of(future: "Future[Any]", seconds: float | None, why: str) -> Any:
    """Wait for a result; raises `_LateError` with `why` where it does not come in time."""
    if not wait([future], seconds).done:
        raise _LateError(why)
    return future.result()


def _begin_quietly(parent: int, folder: str) -> None:
    """Leave Ctrl-C and the terminal to the parent, and end with it; runs in a method's process."""
    Thread(target=_end_with, args=(parent, folder), daemon=True).start()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(nowhere, output)


def _end_with(parent: int, folder: str) -> None:
    """Remove the parent's folder and end, once the parent is gone, killed or not."""
    while os.getppid() == parent:
        time.sleep(_BETWEEN_LOOKS)
    shutil.rmtree(folder, ignore_errors=True)
    os._exit(1)


@lru_cache(1)
def _read_rows(path: Path) -> FoldRows:
    return cast(FoldRows, pickle.loads(path.read_bytes()))


def _holds_rows(path: Path) -> bool:
    """Read the rows before the seconds of the first fold begin."""
    return bool(_read_rows(path))


def _scored(estimator: Any, path: Path, number: int) -> FoldScores:
    """Score a fold in this process, with the warnings that a parent would show."""
    rows = _read_rows(path)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        found = score_fold_of(estimator, rows, number)
    return found._replace(warnings=tuple(str(each.message) for each in caught))
