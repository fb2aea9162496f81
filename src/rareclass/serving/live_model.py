"""Model that answers now, and how a changed file takes its place."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rareclass.errors import ErrorKind, InputError
from rareclass.opening import open_model
from rareclass.remote import RemotePath, path_of
from rareclass.serving.monitoring import InputDrift, ScoreCounts
from rareclass.serving.served import Served, ServedModel

Signature = tuple[Any, ...]


@dataclass(frozen=True)
class Live:
    """Model that answers, and the counts over the rows that it scored."""

    served: Served
    name: str  # the first digits of the SHA-256 of its file
    since: float = field(default_factory=time.time)
    scores: ScoreCounts = field(init=False)
    drift: InputDrift | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", ScoreCounts(self.served.score_edges))
        object.__setattr__(self, "drift", self.served.drift())


class Look(NamedTuple):
    """Outcome of a look at the file."""

    outcome: str  # "same", "changing", "loaded" or "refused"
    kind: str = ""  # type of the exception, where it was refused
    reason: str = ""  # where it is known


def open_served(path: Path) -> ServedModel:
    """Open and check a model.

    Raises `InputError` where it cannot be opened, or cannot score its own example row.
    """
    served = ServedModel(open_model(path))
    served.check()
    return served


class LiveModel:
    """Holds the model that answers; a new file takes over once it has been opened and checked.

    A request is answered by the model that was there when its rows were read. A file that cannot
    take over is left alone until it changes again. A model behind a URL is opened once.
    `open_path` opens and checks a model.
    """

    def __init__(self, path: str | Path, open_path: Callable[[Path], Served] = open_served) -> None:
        self.path = path = path_of(path)
        self._open, self._lock = open_path, Lock()
        self._tried = self._seen = signature(path)
        self._live = Live(open_path(path), fingerprint(path))

    @property
    def now(self) -> Live:
        """Model that answers now."""
        return self._live

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
            try:
                served = self._open(self.path)
                check_can_replace(self._live.served, served)
                self._live = Live(served, fingerprint(self.path))
            except Exception as error:  # whatever the fault, the old model goes on
                reason = str(error) if isinstance(error, InputError) else ""
                return Look("refused", type(error).__name__, reason)
            return Look("loaded")


def check_can_replace(before: Served, after: Served) -> None:
    """Raise `InputError` where rows sent for the old model do not fit the new one.

    The new model must have the same target, and no column that is new or read as another type.
    """
    known = {column.name: column.reads_as for column in before.columns}
    if after.target != before.target:
        raise InputError(
            f"The new model's target is {after.target!r}, and {before.target!r} is served.",
            "Serve it at an address of its own.",
            ErrorKind.UNSUPPORTED,
        )
    for column in after.columns:
        if known.get(column.name) != column.reads_as:
            raise InputError(
                f"The new model has a column {column.name!r} of {column.reads_as}s, which the "
                "model before it did not have.",
                "Start the service anew with this model.",
                ErrorKind.UNSUPPORTED,
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
