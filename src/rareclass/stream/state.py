"""All that a stream knows, and how a batch moves it: each row is scored before it is learned."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded, OnlineEncoder
from rareclass.errors import ErrorKind, InputError
from rareclass.online.state import flatten
from rareclass.stream.alerts import AlertFile, blocks_of
from rareclass.stream.checkpoint import Counters, SavedLearner, SavedStream
from rareclass.stream.drift import BestWindows, ColumnCounts, DriftAlarm, Window
from rareclass.stream.growing_file import CONTRADICTED, REJECTED, RejectedFile
from rareclass.stream.learners import make_learner
from rareclass.stream.options import StreamOptions
from rareclass.stream.reading import Arrivals, LabelNames, sort_arrivals
from rareclass.stream.waiting_rows import LearnedLabels, WaitingRows
from rareclass.tables.batch import Batch

if TYPE_CHECKING:
    from rareclass.online.ranker import OnlineRanker

CLASSES = (0, 1)  # the rest, the rare class
FloatArray = NDArray[np.float64]


class TakenBatch(NamedTuple):
    """A batch that was learned, with each row's score before."""

    arrivals: Arrivals
    scores: FloatArray  # of rows that brought a label waited for: as scored when the row came


@dataclass
class StreamState:
    """All that a stream knows."""

    encoder: OnlineEncoder
    learner: "OnlineRanker"  # begun with the first row
    held: WaitingRows
    learned: LearnedLabels
    window: Window
    counters: Counters
    rejected: RejectedFile
    contradicted: RejectedFile
    labels: LabelNames
    drift: ColumnCounts
    best: BestWindows
    alarm: DriftAlarm | None  # None: drift is reported only
    alerts: AlertFile | None
    columns: list[str] | None = None  # where the source's first row does not name them all
    position: dict[str, Any] | None = None  # where the source goes on; None: at its beginning

    def saved(self, options: StreamOptions) -> SavedStream:
        """Return what a checkpoint holds."""
        learner = self.learner
        learned = SavedLearner(None, {})
        if learner.has_begun:
            learned = SavedLearner(learner.n_features_in_, flatten(learner.state_))
        return SavedStream(
            options=options.lasting(),
            labels=self.labels,
            encoder=self.encoder,
            learner=learned,
            held=self.held,
            learned=self.learned,
            window=self.window,
            counters=self.counters,
            rejected=self.rejected.mark(),
            contradicted=self.contradicted.mark(),
            drift=self.drift,
            best=self.best,
            alarm=self.alarm,
            alerts=None if self.alerts is None else self.alerts.saved(),
            columns=self.columns,
            position=self.position,
        )

    @classmethod
    def of(cls, saved: SavedStream, folder: Path, options: StreamOptions) -> "StreamState":
        """Return the state of a checkpoint, and cut back the files beside it."""
        alerts = alerts_of(options, saved)  # first: the file may be refused
        return cls(
            encoder=saved.encoder,
            learner=learner_of(saved),
            held=saved.held,
            learned=saved.learned,
            window=saved.window,
            counters=saved.counters,
            rejected=RejectedFile(folder / REJECTED, saved.rejected),
            contradicted=RejectedFile(folder / CONTRADICTED, saved.contradicted),
            labels=saved.labels,
            drift=saved.drift,
            best=saved.best,
            alarm=saved.alarm,
            alerts=alerts,
            columns=saved.columns,
            position=saved.position,
        )

    @property
    def files(self) -> tuple[RejectedFile | AlertFile, ...]:
        """The files that grow with the stream."""
        always = (self.rejected, self.contradicted)
        return always if self.alerts is None else (*always, self.alerts)

    def take(self, batch: Batch) -> TakenBatch:
        """Score and learn the rows of a batch in their order; write alerts and rejected rows.

        An exception leaves a state of no use. Raises `InputError` when the learner has run off to
        infinity.
        """
        counters = self.counters
        schema = self.encoder.schema
        arrivals = sort_arrivals(batch, schema, self.held, self.learned, counters.rows)
        scores = np.empty(0)
        if len(arrivals.labels):
            encoded, scores = self._learn(arrivals)
            if self.alerts is not None:
                usual, features = self.drift.usual(self.encoder), self.encoder.features
                self.alerts.take(
                    arrivals, encoded.X, scores[arrivals.places], features,
                    lambda row, weights: self.learner.raises(row, usual, weights),
                )  # fmt: skip
        self.rejected.add(arrivals.rejected)
        self.contradicted.add(arrivals.contradicted)
        labelled = ~np.isnan(arrivals.labels)
        counters.rows += batch.n_read
        if counters.rows % self.drift.size == 0:
            self._end_segment()
        counters.labelled += int(labelled.sum())
        counters.rare += int((arrivals.labels == 1.0).sum())
        counters.unlabelled += int((~labelled).sum())
        self.position = batch.position
        return TakenBatch(arrivals, scores)

    def _end_segment(self) -> None:
        """Move the counts on; where drift has begun, let the learner learn quickly again."""
        self.drift.end_segment(self.encoder)
        if self.alarm is None or not self.learner.has_begun:
            return
        moved, falls = self.drift.moves(self.encoder), self.best.falls(self.window)
        n_columns = len(self.encoder.schema.features)
        if self.alarm.rings(self.counters.rows, moved, falls, n_columns):
            self.learner.reset_steps()

    def _learn(self, arrivals: Arrivals) -> tuple[Encoded, FloatArray]:
        """Encode, score and learn; rows that are held from now on get vector and score."""
        encoded = self.encoder.encode(arrivals.rows)
        self.drift.add(arrivals.rows, encoded, self.encoder)
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
        self.best.add(self.window, scores[labelled], arrivals.labels[labelled] == 1.0)
        return encoded, scores

    def _test_then_train(
        self, rows: FloatArray, arrivals: Arrivals, born: NDArray[np.int64]
    ) -> FloatArray:
        """Feed the learner, cut wherever a feature is born, so that batches do not show.

        With alerts also where their reasons need a look at the weights.
        """
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
            raise InputError(
                f"The learner's scores are no longer finite at row {number:,} of the stream.",
                "Begin anew in another folder with smaller steps: --param, for C or eta.",
                ErrorKind.NOT_FINITE,
                row=number,
            )
        return scores


def alerts_of(options: StreamOptions, saved: SavedStream | None) -> AlertFile | None:
    """Return the alerts of a stream, gone on with or new; None where none are wanted."""
    if options.alerts is None:
        return None
    before = None if saved is None else saved.alerts
    return AlertFile(Path(options.alerts), options.budget, options.time_column, before)


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
        raise InputError(
            f"The folder was begun by another version of {type(learner).__name__}: "
            f"{', '.join(other)} differ.",
            "Begin anew in another folder, or go on with the version that began it.",
            ErrorKind.FILE_FORMAT,
        )
    learner.take_up(kept)
    return learner
