"""State of a stream, and how a batch moves it: each row is scored before it is learned."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded
from rareclass.errors import ErrorKind, setting
from rareclass.online.state import flatten
from rareclass.stream.alerts import AlertFile, blocks_of
from rareclass.stream.checkpoint import SavedLearner, SavedStream, load_newest, sound_state
from rareclass.stream.log import REJECTED, RejectedFile
from rareclass.stream.options import DEFAULT, StreamOptions, make_learner, parse_parameters
from rareclass.stream.reading import Arrivals, sort_arrivals
from rareclass.tables.batch import Batch

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

CLASSES = (0, 1)  # the rest, the rare class
FloatArray = NDArray[np.float64]


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

    def take(self, batch: Batch) -> tuple[Arrivals, FloatArray]:
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

    def _learn(self, arrivals: Arrivals) -> tuple[Encoded, FloatArray]:
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
        for place, row in arrivals.held:
            # As wide as when the row came.
            row.vector = rows[place, : np.searchsorted(born, place, side="right")].copy()
            row.score = float(scores[place])
        for place, waited in arrivals.waited_for:
            scores[place] = waited.score
        labelled = ~np.isnan(arrivals.labels)
        known.best.add(known.window, scores[labelled], arrivals.labels[labelled] == 1.0)
        return encoded, scores

    def _test_then_train(
        self, rows: FloatArray, arrivals: Arrivals, born: NDArray[np.int64]
    ) -> FloatArray:
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
