"""The model that answers now, and the one that takes over when its file changes."""

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

from rareclass.errors import InputError
from rareclass.model.model import open_model
from rareclass.remote import RemotePath, path_of
from rareclass.serving.input_drift import InputDrift
from rareclass.serving.score_counts import ScoreCounts
from rareclass.serving.served import Served, ServedModel

Signature = tuple[Any, ...]


@dataclass(frozen=True)
class Live:
    """A model that answers, and what is counted of its answers."""

    served: Served
    name: str  # the first digits of the SHA-256 of its file
    since: float = field(default_factory=time.time)
    scores: ScoreCounts = field(init=False)
    drift: InputDrift | None = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "scores", ScoreCounts(self.served.score_edges))
        object.__setattr__(self, "drift", self.served.drift())


class Look(NamedTuple):
    """What became of a look at the file."""

    outcome: str  # "same", "changing", "loaded" or "refused"
    kind: str = ""  # of the exception, where it was refused
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
    take over is left alone until it changes again. One behind a URL is opened once. `open_path` is
    what opens one.
    """

    def __init__(self, path: str | Path, open_path: Callable[[Path], Served] = open_served) -> None:
        self.path = path = path_of(path)
        self._open, self._lock = open_path, Lock()
        self._tried = self._seen = signature(path)
        self._live = Live(open_path(path), fingerprint(path))

    @property
    def now(self) -> Live:
        """The model that answers now."""
        return self._live

    def look(self, at_once: bool = False) -> Look:
        """Look whether the file is another, and let it take over where it can.

        A file that has changed is looked at twice, as it may still be written; not so `at_once`,
        which also opens one that has not changed.
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
            except Exception as error:  # whatever is wrong with it, the old one goes on
                reason = str(error) if isinstance(error, InputError) else ""
                return Look("refused", type(error).__name__, reason)
            return Look("loaded")


def check_can_replace(before: Served, after: Served) -> None:
    """Raise `InputError` where rows for one model are none for the other.

    It must have the same target, and no column that the other did not have, or read otherwise.
    """
    known = {column.name: column.reads_as for column in before.columns}
    if after.target != before.target:
        raise InputError(
            f"The new model's target is {after.target!r}, and {before.target!r} is served.",
            "Serve it at an address of its own.",
        )
    for column in after.columns:
        if known.get(column.name) != column.reads_as:
            raise InputError(
                f"The new model has a column {column.name!r} of {column.reads_as}s, which those "
                "who send rows do not know.",
                "Start the service anew with this model.",
            )


def signature(path: Path) -> Signature | None:
    """What tells a file, or the files of a folder, from others put there later; None for a URL."""
    if isinstance(path, RemotePath):
        return None
    try:
        files = sorted(path.iterdir()) if path.is_dir() else [path]
        each = [(file.name, file.stat()) for file in files]
    except OSError:
        return None
    return tuple((name, s.st_ino, s.st_size, s.st_mtime_ns) for name, s in each)


def fingerprint(path: Path) -> str:
    """Twelve digits that name a model: of the file's content, or of the signature of a folder."""
    if path.is_dir():
        content = repr(signature(path)).encode()
    else:
        with path.open("rb") as file:
            content = file.read()
    return hashlib.sha256(content).hexdigest()[:12]
