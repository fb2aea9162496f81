"""The folder of a stream, one process at a time: its whole state on disk, the last two kept."""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from rareclass.errors import ErrorKind, InputError, setting
from rareclass.files import check_own_folder, lock_file, release_file, writing
from rareclass.model.archive import DamagedArchiveError, in_brief, read_archive, write_archive
from rareclass.stored import Kinds, pack, unpack
from rareclass.tables.folders import STREAM_LOCK as LOCK

if TYPE_CHECKING:
    from rareclass.encoding.streams import OnlineEncoder
    from rareclass.model.targets import RareClassFacts
    from rareclass.stream.alerts import SavedAlerts
    from rareclass.stream.drift import BestWindows, ColumnCounts, DriftAlarm, Window
    from rareclass.stream.log import FileMark
    from rareclass.stream.reading import DayColumn, Memory

FORMAT = 9
KEPT = 2
KINDS: Kinds = {
    "stream": "rareclass.stream.checkpoint:SavedStream",
    "counters": "rareclass.stream.checkpoint:Counters",
    "learner": "rareclass.stream.checkpoint:SavedLearner",
    "encoder": "rareclass.encoding.streams:OnlineEncoder",
    "schema": "rareclass.encoding.schema:Schema",
    "cell reading": "rareclass.tables.reading:CellReading",
    "rare class": "rareclass.model.targets:RareClassFacts",
    "day column": "rareclass.stream.reading:DayColumn",
    "waiting rows": "rareclass.stream.reading:WaitingRows",
    "labels by id": "rareclass.stream.reading:LastIds",
    "memory of ids": "rareclass.stream.reading:Memory",
    "file mark": "rareclass.stream.log:FileMark",
    "rejected row": "rareclass.tables.batch:Rejected",
    "window": "rareclass.stream.drift:Window",
    "best windows": "rareclass.stream.drift:BestWindows",
    "best window": "rareclass.stream.drift:BestWindow",
    "column counts": "rareclass.stream.drift:ColumnCounts",
    "drift alarm": "rareclass.stream.drift:DriftAlarm",
    "alerts": "rareclass.stream.alerts:SavedAlerts",
    "alert budget": "rareclass.stream.options:AlertBudget",
    "moving threshold": "rareclass.stream.alerts:MovingThreshold",
    "reason weights": "rareclass.stream.alerts:ReasonWeights",
}
_NAME = re.compile(r"checkpoint-(\d{15})\.npz")


@dataclass
class Counters:
    """Numbers of what has come so far."""

    rows: int = 0  # records, rejected ones included
    labelled: int = 0  # learned from
    rare: int = 0
    unlabelled: int = 0  # scored only
    reported: int = 0  # records at the last row of the log

    @property
    def has_both_classes(self) -> bool:
        """True once a rare row and another one were learned from: before, scores say nothing."""
        return 0 < self.rare < self.labelled


class SavedLearner(NamedTuple):
    """The moving state of a learner, as `rareclass.online.state.flatten` takes it apart."""

    n_features: int | None  # None: no row has come yet
    state: dict[str, Any]


@dataclass
class SavedStream:
    """State of a stream, as a checkpoint holds it."""

    options: dict[str, Any]  # `StreamOptions.lasting`
    target: "RareClassFacts"
    encoder: "OnlineEncoder"
    ids: "Memory"
    window: "Window"
    rejected: "FileMark"
    drift: "ColumnCounts"
    best: "BestWindows"
    alarm: "DriftAlarm | None"  # None: drift is reported only
    clock: "DayColumn | None"
    columns: list[str] | None  # where the source's first row does not name them all
    learner: SavedLearner = SavedLearner(None, {})  # noqa: RUF009 (never changed)
    counters: Counters = field(default_factory=Counters)
    alerts: "SavedAlerts | None" = None
    position: dict[str, Any] | None = None  # where the source goes on; None: at its beginning


class CutShortError(InputError):
    """The bytes of a checkpoint are not those that were written."""


class LoadedCheckpoint(NamedTuple):
    """A checkpoint that was read."""

    path: Path
    state: SavedStream
    damaged: tuple[Path, ...] = ()  # newer ones that could not be read


def save_checkpoint(folder: Path, rows: int, state: SavedStream) -> Path:
    """Write a checkpoint, flush it to disk, rename it into place and remove old ones.

    Nothing in a checkpoint is ever executed: see `rareclass.stored`.

    Raises `InputError` when the folder cannot be written to, or the disk is full: the older ones
    stay. `TypeError` for a state with objects of other kinds.
    """
    path = folder / f"checkpoint-{rows:015d}.npz"
    stored = pack({"format": FORMAT, "rows": rows, "state": state}, KINDS)
    write_archive(path, stored, like=next(iter(checkpoints_in(folder)), None))
    for old in checkpoints_in(folder)[KEPT:]:
        old.unlink(missing_ok=True)
    return path


def load_checkpoint(path: Path) -> SavedStream:
    """Read one checkpoint.

    Raises `InputError` when the file is damaged, or of a format that this version does not know.
    """
    try:
        stored = read_archive(path)
        if stored is None:
            raise DamagedArchiveError("")
        found = stored.tree["format"]
    except (DamagedArchiveError, KeyError, TypeError) as error:
        raise CutShortError(
            f"The checkpoint {path} is damaged or cut short.",
            "Use the one before it.",
            ErrorKind.DAMAGED_FILE,
        ) from error
    if found != FORMAT:
        raise ErrorKind.FILE_FORMAT.error(
            f"{path} has format {found}, this version reads {FORMAT}.",
            "Install the version that made it, or start again in another folder.",
            value=found,
        )
    with sound_state(path):
        state = unpack(stored, KINDS)["state"]
        if not isinstance(state, SavedStream):
            raise TypeError(f"{type(state).__name__} in place of a stream")
    return state


@contextmanager
def sound_state(path: Path) -> Iterator[None]:
    """Raise `InputError` with the checkpoint's name for any error within the block."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:  # the state of a file can be wrong in any way
        raise ErrorKind.DAMAGED_FILE.error(
            f"The checkpoint {path} is damaged: its state is not that of a stream: "
            f"{in_brief(error)}.",
            "Remove it, to continue from the checkpoint before it. Or start again in another "
            "folder.",
        ) from error


def load_newest(folder: Path) -> LoadedCheckpoint | None:
    """Read the newest checkpoint of a folder that is not damaged; None when there is none.

    Raises `InputError` when there are checkpoints, and all of them are damaged.
    """
    damaged: list[Path] = []
    for path in checkpoints_in(folder):
        try:
            return LoadedCheckpoint(path, load_checkpoint(path), tuple(damaged))
        except CutShortError:
            damaged.append(path)
    if damaged:
        raise ErrorKind.DAMAGED_FILE.error(
            f"No checkpoint in {folder} can be read: {', '.join(path.name for path in damaged)}.",
            "Restore one from a copy, or start again in another folder.",
        )
    return None


def checkpoints_in(folder: Path) -> list[Path]:
    """Return the checkpoints of a folder, the newest first."""
    if not folder.is_dir():
        return []
    return sorted((path for path in folder.iterdir() if _NAME.fullmatch(path.name)), reverse=True)


def is_checkpoint(path: Path) -> bool:
    """Return whether a path is a folder of a stream, or one of its checkpoints."""
    return (path.suffix == ".npz" and path.is_file()) or bool(checkpoints_in(path))


@contextmanager
def claimed(folder: Path) -> Iterator[Path]:
    """Make the folder if need be and keep other processes out of it until the block ends.

    The lock is the operating system's: it goes with the process, however that ends.

    Raises `InputError` when it cannot be made, holds other files, such as or is in use.
    """
    is_new, is_ours, handle = not folder.exists(), False, None
    check_own_folder(folder, setting("folder"), ())
    try:
        with writing(folder, f"Give another with {setting('folder')}."):
            folder.mkdir(parents=True, exist_ok=True)
            if not (folder / LOCK).exists() and not checkpoints_in(folder):
                # A stream removes and cuts files: those of others stay.
                others = sorted(other.name for other in folder.iterdir())
                check_own_folder(folder, setting("folder"), others)
            (folder / LOCK).touch()
        handle = lock_file(folder / LOCK, setting("folder", folder))
        is_ours = True
        for left_over in folder.glob(".checkpoint-*"):  # of a process killed while it wrote
            left_over.unlink()
        yield folder
    finally:
        if is_new and not {path.name for path in folder.glob("*")} - {LOCK}:
            with suppress(OSError):  # nothing stays of a stream that could not begin
                if is_ours:
                    (folder / LOCK).unlink(missing_ok=True)
                folder.rmdir()
        if handle is not None:
            release_file(handle, folder / LOCK, remove=False)
