"""Model that answers now, as the service needs it, and how a changed file takes its place."""

import datetime as dt
import hashlib
import time
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from pathlib import Path
from threading import Lock, RLock
from typing import Any, NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.encoding.typed_table import read_as_trained
from rareclass.errors import ErrorKind, InputError
from rareclass.hunt.case_score import ListOrder
from rareclass.model.drift import Drift, InputSummary, drift_of
from rareclass.model.explained import explainer_of
from rareclass.model.model import Model, alert_rate
from rareclass.model.score_file import score_columns, unlike_column
from rareclass.opening import open_model
from rareclass.remote import RemotePath, path_of
from rareclass.tables.columns import Column

Signature = tuple[Any, ...]
# Example of a date column: models do not store typical dates.
_DAY = dt.datetime(2024, 1, 1)


# Rows of a window: enough for the stability index over tenths, and few enough that yesterday's
# rows do not hide today's.
WINDOW_ROWS = 10_000
# Rows that are counted together: counting one alone takes longer than scoring it.
_LOOK_ROWS = 250
# Rows that are scored in every form that a model has for many of them.
_MANY_ROWS = 1_000


@dataclass
class _Window:
    """Counts over consecutive rows."""

    seen: InputSummary
    n_alerts: int = 0


class InputDrift:
    """Drift of each column and of the scores from training, over the latest rows of requests.

    Figures cover the last full window of `WINDOW_ROWS` rows, or the rows so far until one is full.
    Rows are held until 250 have come and `look` is called, or until figures are read. Safe to call
    from threads.
    """

    def __init__(self, content: Model) -> None:
        self._content = content
        self._lock = RLock()
        self._add_lock = Lock()  # so that rows can be added during a look
        self._waiting: list[tuple[pl.DataFrame, NDArray[np.float64]]] = []
        self._n_waiting = 0
        self._window = _Window(content.new_summary())
        self._full: _Window | None = None

    def add(self, rows: pl.DataFrame, scores: NDArray[np.float64]) -> bool:
        """Hold typed rows and their scores; True when it is time to `look`."""
        with self._add_lock:
            self._waiting.append((rows, scores))
            before = self._n_waiting
            self._n_waiting += rows.height
            return before < _LOOK_ROWS <= self._n_waiting

    def figures(self) -> tuple[int, Drift]:
        """Count the rows held, and return the rows and the drift of the last full window."""
        with self._lock:
            self.look()
            window = self._full or self._window
            seen, alerts = window.seen, None
            if self._content.has_rare_class:
                alerts = alert_rate(self._content, window.n_alerts, seen.n_rows)
            return seen.n_rows, drift_of(seen, alerts)

    def look(self) -> None:
        """Count the rows held; some milliseconds for 1,000."""
        with self._lock:
            with self._add_lock:
                waiting, self._waiting, self._n_waiting = self._waiting, [], 0
            if not waiting:
                return
            parts, scores = zip(*waiting, strict=True)
            rows, every = pl.concat(parts, rechunk=True), np.concatenate(scores)
            window = self._window
            window.n_alerts += int((every > self._content.thresholds[-1]).sum())
            window.seen.n_rows += rows.height
            read = self._content.encoder.read(rows)
            self._content.count_unlike(rows, read, window.seen)
            if window.seen.n_rows >= WINDOW_ROWS:
                self._window, self._full = _Window(self._content.new_summary()), window


class RowScores(NamedTuple):
    """Scores of rows, and the classes that they are called."""

    called: NDArray[np.intp]  # index of each row's class in `classes`
    columns: pl.DataFrame  # score, probability, decision, percentile: as in the response


class ServedModel:
    """Model of a file, or of the folder of a stream or a hunt, as the service needs it.

    Rows have the types of `columns`. Raises `InputError` for a model of svmlight rows, which have
    no named columns. A table is scored in one thread, as requests share the cores. `name` has the
    first digits of the SHA-256 of the file, and `drift` counts the rows that were scored.
    """

    def __init__(self, content: Model, name: str) -> None:
        if content.facts.format == "svmlight":
            raise ErrorKind.UNSUPPORTED.error(
                "A model of svmlight rows cannot be served: they have no named columns.",
                "Fit on a CSV, Parquet or JSON lines file, or score files: rareclass score.",
            )
        alone: Any = copy(content.estimator)
        if not isinstance(alone, ListOrder):  # that of a hunt has no threads
            alone.n_jobs = 1
        # Errors sent to clients do not name the file.
        self._named = replace(content, estimator=alone)
        self._content = replace(self._named, file=None)
        self.name, self.drift = name, InputDrift(self._content)
        self.target: str = content.target
        self.columns: Sequence[Column] = list(content.encoder.columns)
        # Majority and rare class, or levels from the lowest on.
        self.classes: Sequence[str] = list(content.classes)
        self.rare_classes: Sequence[str] = content.rare_classes  # of several; else empty
        # Most frequent words of categorical columns, and cells of a valid row.
        self.choices: Mapping[str, Sequence[str]]
        self.choices, typical = content.encoder.examples()
        self.example: Mapping[str, Any] = {
            column.name: _cell(column, typical.get(column.name), self.choices.get(column.name, ()))
            for column in self.columns
        }
        training = content.facts.training
        self.facts: Mapping[str, Any] = {
            "target": self.target,
            "classes": self.classes,
            "thresholds": [float(each) for each in content.thresholds],
            "method": content.facts.method_name,
            "trained": None if training is None else training.date,
            "n_rows": content.facts.n_rows,
            "versions": None if training is None else training.versions,
        }

    def answer(self, rows: pl.DataFrame) -> RowScores:
        """Score typed rows; O(rows x landmarks) for kernel machines."""
        content = self._content
        read = content.encoder.read(rows)
        scores, classes = content.score_and_classes(content.encode(read))
        called = content.decision.decide(scores)
        *scored, percentile = score_columns(content, scores, classes=classes)
        names: Any = [self.classes[k] for k in called.tolist()]
        if classes is not None:
            names = content.class_names(classes)
        decision = pl.Series("decision", names, pl.String)
        calls = content.decision.cells(called)
        truth = [calls] if calls.dtype == pl.Boolean else []
        unlike = unlike_column(content.encoder.find_unlike(read), rows.height)
        return RowScores(called, pl.DataFrame([*scored, decision, *truth, percentile, unlike]))

    def reasons(self, rows: pl.DataFrame, k: int) -> list[list[dict[str, Any]]]:
        """Return for each row up to k columns that raise its score, the strongest first.

        A scoring for each column and row. Raises `InputError` where the model has no reasons.
        """
        try:
            explain = explainer_of(self._content, k)
        except InputError as error:
            raise ErrorKind.UNSUPPORTED.error(
                "This model gives no reasons: it is of levels, or of a hunt.", "Ask without them."
            ) from error
        explained = explain(rows)
        names = ("reason", "value", "effect")
        places = [[f"{name}_{place + 1}" for name in names] for place in range(k)]
        return [
            [
                {"column": row[reason], "value": row[value], "effect": row[effect]}
                for reason, value, effect in places
                if row[reason] is not None
            ]
            for row in explained.iter_rows(named=True)
        ]

    def check(self) -> None:
        """Score the example row, alone and with others.

        Raises `InputError` where the model fails, or gives scores that are no numbers.
        What the model compiles is compiled here, before a request waits for it.
        """
        cells = {name: [cell] * _MANY_ROWS for name, cell in self.example.items()}
        typed = read_as_trained(pl.DataFrame(cells), self.columns, 1)
        for rows in (typed.head(1), typed.head(3), typed):
            self._named.score_and_classes(self._named.encode(rows))
            self.answer(rows)


def _cell(column: Column, typical: float | None, choices: Sequence[str]) -> Any:
    """Return a cell of a valid row: a day, the median of numbers, or the first of the words."""
    if column.reads_as == "date":
        written = column.date_format or "%Y-%m-%dT%H:%M:%S"
        offset = column.zone.partition("/")[0] if column.zone[:1] in ("+", "-") else "+00:00"
        return _DAY.strftime(written.replace("%z", offset))
    if column.reads_as == "number" or column.kind == "number":
        return 0.0 if typical is None or not np.isfinite(typical) else float(f"{typical:.6g}")
    return choices[0] if choices else None


class Look(NamedTuple):
    """Outcome of a look at the file."""

    outcome: str  # "same", "changing", "loaded" or "refused"
    kind: str = ""  # type of the exception, where it was refused
    reason: str = ""  # where it is known


def open_served(path: Path) -> ServedModel:
    """Open and check a model.

    Raises `InputError` where it cannot be opened, or cannot score its own example row.
    """
    served = ServedModel(open_model(path), fingerprint(path))
    served.check()
    return served


class LiveModel:
    """Holds the model that answers; a new file takes over once it has been opened and checked.

    A request is answered by the model that was there when its rows were read. A file that cannot
    take over is left alone until it changes again, unless the system refused to read it or had no
    memory for it: then every look tries again. A model behind a URL is opened once.
    `now` is the model that answers, `since` when it took over; `open_path` opens and checks one.
    """

    def __init__(
        self, path: str | Path, open_path: Callable[[Path], ServedModel] = open_served
    ) -> None:
        self.path = path = path_of(path)
        self._open, self._lock = open_path, Lock()
        self._tried = self._seen = signature(path)
        self.now, self.since = open_path(path), time.time()

    def look(self, at_once: bool = False) -> Look:
        """Look at the file; a changed file takes over where it can.

        A changed file must look the same twice, as it may still be written. `at_once` opens the
        file without waiting, changed or not.
        """
        with self._lock:
            here = signature(self.path)
            settled, self._seen = here == self._seen, here
            if here is None or (here == self._tried and not at_once):
                return Look("same")
            if not settled and not at_once:
                return Look("changing")
            self._tried = here
            taken, found = self.now, Look("loaded")
            try:
                taken = self._open(self.path)
                check_can_replace(self.now, taken)
            except Exception as error:  # whatever the fault, the old model goes on
                reason = str(error) if isinstance(error, InputError) else ""
                if isinstance(error, OSError | MemoryError):  # the machine's fault may pass
                    self._tried = None
                found = Look("refused", type(error).__name__, reason)
            if signature(self.path) != here:  # changed while it was read: neither file was seen
                self._tried = None
                return Look("changing")
            if found.outcome == "loaded":
                self.now, self.since = taken, time.time()
            return found


def check_can_replace(before: ServedModel, after: ServedModel) -> None:
    """Raise `InputError` where rows sent for the old model do not fit the new one.

    The new model must have the same target, and no column that is new or read as another type.
    """
    known = {column.name: column.reads_as for column in before.columns}
    if after.target != before.target:
        raise ErrorKind.UNSUPPORTED.error(
            f"The new model's target is {after.target!r}, and {before.target!r} is served.",
            "Serve it at an address of its own.",
        )
    for column in after.columns:
        if known.get(column.name) != column.reads_as:
            raise ErrorKind.UNSUPPORTED.error(
                f"The new model has a column {column.name!r} of {column.reads_as}s, which the "
                "model before it did not have.",
                "Restart the service with this model.",
                column=column.name,
            )


def signature(path: Path) -> Signature | None:
    """Names, sizes and times of a file or of the files of a folder; None for a URL."""
    if isinstance(path, RemotePath):
        return None
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        each = [(file.name, file.stat()) for file in files]
    except OSError:
        return None
    return tuple((name, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in each)


def fingerprint(path: Path) -> str:
    """Twelve digits that name a model: hash of a file's content, or of a folder's signature."""
    if path.is_dir():
        content = repr(signature(path)).encode()
    else:
        with path.open("rb") as file:
            content = file.read()
    return hashlib.sha256(content).hexdigest()[:12]
