"""One batch through encoder and learner: each row is scored before it is learned from."""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded
from rareclass.errors import InputError
from rareclass.stream.arrivals import Arrivals
from rareclass.stream.reasons import blocks_of
from rareclass.stream.state import CLASSES, StreamState
from rareclass.stream.waiting_rows import HeldRow

FloatArray = NDArray[np.float64]


class Learned(NamedTuple):
    """Rows as they were learned.

    The score of each row is from before it was learned: for a label that was waited for, the one
    that its row had got when it came. `encoded` are the rows with cells of their own.
    """

    scores: FloatArray
    encoded: Encoded


def learn(state: StreamState, arrivals: Arrivals) -> Learned:
    """Score and learn the rows of a batch in their order; held rows get vector and score.

    Raises `InputError` when the learner has run off to infinity.
    """
    if not len(arrivals.labels):
        empty = np.empty((0, state.encoder.n_features))
        return Learned(np.empty(0), Encoded(empty, np.empty(0, np.int64)))
    encoded = state.encoder.encode(arrivals.rows)
    X, births = encoded
    state.drift.add(arrivals.rows, encoded, state.encoder)
    born = np.zeros(len(births), np.int64) if not len(arrivals.places) else arrivals.places[births]
    rows = np.zeros((len(arrivals.labels), X.shape[1]))
    rows[arrivals.places] = X
    came_at = {row: place for place, row in arrivals.held}
    for place, waited in arrivals.waited_for:
        if waited in came_at:
            rows[place] = rows[came_at[waited]]
        else:
            rows[place, : len(waited.vector)] = waited.vector
    scores = _test_then_train(state, rows, arrivals, born)
    _check_finite(scores, arrivals)
    _fill(arrivals.held, rows, scores, born)
    for place, waited in arrivals.waited_for:
        scores[place] = waited.score
    labelled = ~np.isnan(arrivals.labels)
    _measure(state, scores[labelled], arrivals.labels[labelled] == 1.0)
    return Learned(scores, encoded)


def _measure(state: StreamState, scores: FloatArray, rare: NDArray[np.bool_]) -> None:
    """Add rows to the window, and look at it whenever all of its rows are new."""
    window, start = state.window, 0
    while start < len(scores):
        before = window.n_added % window.size
        if not before and window.n_added:
            state.best.look(window, window.n_added)
        end = start + window.size - before
        window.add(scores[start:end], rare[start:end])
        start = end


def _test_then_train(
    state: StreamState, rows: FloatArray, arrivals: Arrivals, born: NDArray[np.int64]
) -> FloatArray:
    """Feed the learner, cut wherever a feature is born, so that batches do not show.

    With alerts also where their reasons need a look at the weights.
    """
    learner = state.learner
    n_old = learner.n_features_in_ if hasattr(learner, "state_") else 0
    blocks = blocks_of(arrivals.numbers)
    looks = np.flatnonzero(np.diff(blocks)) + 1 if state.alerts is not None else blocks[:0]
    cuts = np.unique(np.concatenate([born[n_old:], [0, len(rows)], looks]).astype(np.int64))
    scores = np.empty(len(rows))
    for start, end in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True):
        if state.alerts is not None:
            state.alerts.weights.look(int(blocks[start]), learner)
        width = _width(born, n_old, start)
        if not hasattr(learner, "state_"):
            learner.start(width, CLASSES)
        elif width > learner.n_features_in_:
            learner.add_features(width - learner.n_features_in_)
        scores[start:end] = learner.test_then_train(
            rows[start:end, :width], arrivals.labels[start:end]
        )
    return scores


def _width(born: NDArray[np.int64], n_old: int, place: int) -> int:
    """Features there are when the row at `place` comes."""
    return n_old + int(np.searchsorted(born[n_old:], place, side="right"))


def _fill(
    held: list[tuple[int, HeldRow]],
    rows: FloatArray,
    scores: FloatArray,
    born: NDArray[np.int64],
) -> None:
    """Give held rows the vector and the score they had when they came."""
    if not held:
        return
    widths = np.searchsorted(born, [place for place, _ in held], side="right").tolist()
    for (place, row), width in zip(held, widths, strict=True):
        row.vector = rows[place, :width].copy()
        row.score = float(scores[place])


def _check_finite(scores: FloatArray, arrivals: Arrivals) -> None:
    wrong = ~np.isfinite(scores)
    if wrong.any():
        number = int(arrivals.numbers[int(wrong.argmax())])
        raise InputError(
            f"The learner's scores are no longer finite at row {number:,} of the stream.",
            "Begin anew in another folder with smaller steps: --param, for C or eta.",
        )
