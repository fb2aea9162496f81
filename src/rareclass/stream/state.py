"""State of a stream: how a batch moves it, and its folder, where the last two checkpoints are kept.

Each row is scored before it is learned. One process at a time has the folder.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded, OnlineEncoder
from rareclass.errors import ErrorKind, InputError, setting
from rareclass.files import check_own_folder, lock_file, release_file, writing
from rareclass.model.archive import DamagedArchiveError, in_brief, read_archive, write_archive
from rareclass.online.state import flatten
from rareclass.stored import Kinds, pack, unpack
from rareclass.stream.alerts import AlertFile, SavedAlerts, blocks_of
from rareclass.stream.drift import BestWindows, ColumnCounts, DriftAlarm, Floats, Window
from rareclass.stream.log import REJECTED, FileMark, RejectedFile
from rareclass.stream.options import DEFAULT, StreamOptions, make_learner, parse_parameters
from rareclass.stream.reading import Arrivals, DayColumn, Memory, sort_arrivals
from rareclass.tables.folders import STREAM_LOCK as LOCK
from rareclass.tables.text_reader import Batch

if TYPE_CHECKING:
    from rareclass.model.targets import RareClassFacts
    from rareclass.online.ranker import OnlineRanker

FORMAT = 10
KEPT = 2
CLASSES = (0, 1)  # the rest, the rare class
KINDS: Kinds = {
    "stream": "rareclass.stream.state:SavedStream",
    "counters": "rareclass.stream.state:Counters",
    "learner": "rareclass.stream.state:SavedLearner",
    "encoder": "rareclass.encoding.streams:OnlineEncoder",
    "schema": "rareclass.encoding.schema:Schema",
    "cell reading": "rareclass.tables.reading:CellReading",
    "rare class": "rareclass.model.targets:RareClassFacts",
    "day column": "rareclass.stream.reading:DayColumn",
    "waiting rows": "rareclass.stream.reading:WaitingRows",
    "labels by id": "rareclass.stream.reading:LastIds",
    "memory of ids": "rareclass.stream.reading:Memory",
    "file mark": "rareclass.stream.log:FileMark",
    "rejected row": "rareclass.tables.text_reader:Rejected",
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
    encoder: OnlineEncoder
    ids: Memory
    window: Window
    rejected: FileMark
    drift: ColumnCounts
    best: BestWindows
    alarm: DriftAlarm | None  # None: drift is reported only
    clock: DayColumn | None
    columns: list[str] | None  # where the source's first row does not name them all
    learner: SavedLearner = SavedLearner(None, {})  # noqa: RUF009 (never changed)
    counters: Counters = field(default_factory=Counters)
    alerts: SavedAlerts | None = None
    position: dict[str, Any] | None = None  # where the source goes on; None: at its beginning


class StreamState:
    """Knowledge of a stream, its learner, which begins with the first row, and its open files.

    Files are cut back to the marks of `saved`. Learner, marks and alerts of `saved` itself are
    brought up to date by `snapshot` alone.
    """

    def __init__(self, saved: SavedStream, folder: Path, options: StreamOptions) -> None:
        self.saved = replace(saved, options=options.lasting())
        self.alerts: AlertFile | None = None
        if options.alert_file is not None:  # first: the file may be refused
            path = Path(options.alert_file)
            self.alerts = AlertFile(path, options.budget, options.time_column, saved.alerts)
        self.learner = learner_of(saved)
        self.rejected = RejectedFile(folder / REJECTED, saved.rejected)

    def snapshot(self) -> SavedStream:
        """Return what a checkpoint holds."""
        learner, learned = self.learner, SavedLearner(None, {})
        if learner.has_begun:
            learned = SavedLearner(learner.n_features_in_, flatten(learner.state_))
        alerts = None if self.alerts is None else self.alerts.saved()
        return replace(self.saved, learner=learned, rejected=self.rejected.mark, alerts=alerts)

    @property
    def files(self) -> tuple[RejectedFile | AlertFile, ...]:
        """The files that grow with the stream."""
        return (self.rejected,) if self.alerts is None else (self.rejected, self.alerts)

    def take(self, batch: Batch) -> tuple[Arrivals, Floats]:
        """Score and learn the rows of a batch in their order; write alerts and rejected rows.

        Return the rows, and the score that each had when it came. An exception leaves a state of no
        use. Raises `InputError` when the learner has run off to infinity.
        """
        known, counters = self.saved, self.saved.counters
        encoder, drift = known.encoder, known.drift
        arrivals = sort_arrivals(batch, encoder.schema, known.ids, counters.rows, known.clock)
        scores = np.empty(0)
        if len(arrivals.labels):
            encoded, scores = self._learn(arrivals)
            if self.alerts is not None:
                usual = drift.usual(encoder)
                self.alerts.take(
                    arrivals, encoded.X, scores[arrivals.places], encoder.features,
                    lambda row, weights: self.learner.raises(row, usual, weights),
                )  # fmt: skip
        self.rejected.add(arrivals.rejected)
        labelled = ~np.isnan(arrivals.labels)
        counters.rows += batch.n_read
        if counters.rows % drift.size == 0:
            self._end_segment()
        counters.labelled += int(labelled.sum())
        counters.rare += int((arrivals.labels == 1.0).sum())
        counters.unlabelled += int((~labelled).sum())
        known.position = batch.position
        return arrivals, scores

    def _end_segment(self) -> None:
        """Move the counts on; where drift has begun, let the learner learn quickly again."""
        known, encoder = self.saved, self.saved.encoder
        known.drift.end_segment(encoder)
        if known.alarm is None or not self.learner.has_begun:
            return
        moved, falls = known.drift.moves(encoder), known.best.falls(known.window)
        if known.alarm.rings(known.counters.rows, moved, falls, len(encoder.schema.features)):
            self.learner.reset_steps()

    def _learn(self, arrivals: Arrivals) -> tuple[Encoded, Floats]:
        """Encode, score and learn; rows that are held from now on get vector and score."""
        known = self.saved
        encoded = known.encoder.encode(arrivals.rows)
        known.drift.add(arrivals.rows, encoded, known.encoder)
        born = encoded.births
        if len(arrivals.places):
            born = arrivals.places[born]
        rows = np.zeros((len(arrivals.labels), encoded.X.shape[1]))
        rows[arrivals.places] = encoded.X
        came_at = {row: place for place, row in arrivals.held}
        for place, waited in arrivals.waited_for:
            if waited in came_at:
                rows[place] = rows[came_at[waited]]
            else:
                rows[place, : len(waited.vector)] = waited.vector
        scores = self._test_then_train(rows, arrivals, born)
        labels, counters = arrivals.labels, known.counters
        n_rest = counters.labelled - counters.rare + np.cumsum(labels == 0.0)
        learned = (counters.rare + np.cumsum(labels == 1.0) > 0) & (n_rest > 0)
        for place, row in arrivals.held:
            # As wide as when the row came.
            row.vector = rows[place, : np.searchsorted(born, place, side="right")].copy()
            row.score = float(scores[place]) if learned[place] else np.nan
        for place, waited in arrivals.waited_for:
            scores[place] = waited.score
        # Scores by what had learned from one class, or none, tell nothing of later ones.
        judged = ~np.isnan(labels) & ~np.isnan(scores)
        known.best.add(known.window, scores[judged], labels[judged] == 1.0)
        return encoded, scores

    def _test_then_train(self, rows: Floats, arrivals: Arrivals, born: NDArray[np.int64]) -> Floats:
        """Feed the learner, cut wherever a feature is born, so that batches do not show."""
        learner, scores = self.learner, np.empty(len(rows))
        n_old = learner.n_features_in_ if learner.has_begun else 0
        blocks = blocks_of(arrivals.numbers)
        looks = np.flatnonzero(np.diff(blocks)) + 1 if self.alerts is not None else blocks[:0]
        cuts = np.unique(np.concatenate([born[n_old:], [0, len(rows)], looks]).astype(np.int64))
        for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
            if self.alerts is not None:
                self.alerts.weights.look(int(blocks[start]), learner)
            # Features there are when the row at `start` comes.
            width = n_old + int(np.searchsorted(born[n_old:], start, side="right"))
            if not learner.has_begun:
                learner.start(width, CLASSES)
            elif width > learner.n_features_in_:
                learner.add_features(width - learner.n_features_in_)
            labels = arrivals.labels[start:end]
            scores[start:end] = learner.test_then_train(rows[start:end, :width], labels)
        wrong = ~np.isfinite(scores)
        if wrong.any():
            number = int(arrivals.numbers[int(wrong.argmax())])
            raise ErrorKind.NOT_FINITE.error(
                f"The learner's scores are no longer finite at row {number:,} of the stream.",
                f"Start again in another folder with smaller steps: {setting('parameters')}, for "
                "C or eta.",
                row=number,
            )
        return scores


def learner_of(saved: SavedStream) -> "OnlineRanker":
    """Return the learner of a checkpoint, ready to score and to go on.

    Raises `ValueError` where its state is not one of such a learner, and `InputError` where the
    learner of this version has other parts.
    """
    n_features, kept = saved.learner
    learner = make_learner(saved.options["learner"], saved.options["parameters"])
    if n_features is None:
        return learner
    if n_features != saved.encoder.n_features:
        raise ValueError(
            f"the learner does not know the {saved.encoder.n_features} features of its encoder"
        )
    learner.start(n_features, CLASSES)
    parts = flatten(learner.state_).keys()
    if kept.keys() != parts:
        other = sorted({name.partition(".")[0] for name in kept.keys() ^ parts})
        raise ErrorKind.FILE_FORMAT.error(
            f"The folder was begun by another version of {type(learner).__name__}: "
            f"{', '.join(other)} differ.",
            "Start again in another folder, or go on with the version that began it.",
        )
    learner.take_up(kept)
    return learner


def settled(learner: str, on_drift: str, folder: Path) -> tuple[str, str]:
    """Return the learner, and what it does on drift, with "auto" resolved.

    "auto" is what the folder began with; in a new folder `DEFAULT`, and "reset" for a mixture,
    whose members make up for each other where there was no drift (docs/decisions/0033).

    Raises `InputError` for "reset" with another learner.
    """
    before = load_newest(folder) if "auto" in (learner, on_drift) else None
    if before is not None:
        with sound_state(before.path):
            begun = before.state.options
            learner = str(begun["learner"]) if learner == "auto" else learner
            on_drift = str(begun["on_drift"]) if on_drift == "auto" else on_drift
    learner = DEFAULT if learner == "auto" else learner
    shrink = make_learner(learner, parse_parameters(learner, ()))._steps_shrink
    if on_drift == "reset" and not shrink:
        raise ErrorKind.COMBINATION.error(
            f"{setting('on_drift', 'reset')}: the steps of {learner} do not shrink, so that there "
            "is nothing to reset.",
            "Leave it out, or take another learner, such as mixture.",
        )
    if on_drift == "auto":
        on_drift = "reset" if learner == "mixture" else "report"
    return learner, on_drift


# -- the folder -----------------------------------------------------------------------------------


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
