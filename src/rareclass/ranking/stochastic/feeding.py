"""Rows in their order become mini-batches; the state between them."""

from collections.abc import Iterator
from contextlib import contextmanager
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from rareclass.decide.threshold import threshold_between
from rareclass.folds.majority_part import reservoir_slots
from rareclass.kernels.kernels import Matrix, given_width, make_kernel, mean_width
from rareclass.kernels.landmarks import (
    CountedRule,
    LandmarkCandidates,
    choose_landmarks,
    landmark_points,
)
from rareclass.metrics.scored_classes import ScoredClasses
from rareclass.ranking.stochastic.learner import (
    SQUARES,
    LearnedFunction,
    LearnerSettings,
    check_memory,
    span,
)
from rareclass.ranking.stochastic.weighted_rows import WeightedRows, joined
from rareclass.rows import ArrayRows, RowSource


class Beginning(NamedTuple):
    """Parameters that say how to begin."""

    kernel: Any  # as in `StochasticRankRC`, as width and landmarks
    width: Any
    landmarks: Any
    memory: int  # bytes

    def __call__(
        self, rare: WeightedRows, majority: WeightedRows, chooser: np.random.RandomState
    ) -> LearnedFunction:
        """The zero function, with the width of these rows if none is given."""
        rows = rare.joined(majority)
        X: Any = rows.X
        source = RowSource(X.shape, X.dtype, lambda which: X[which], sparse.issparse(X))
        return self.with_width(self.width_of(source, rows.weight, X[:1]), rare, chooser)

    def width_of(self, rows: RowSource, weight: np.ndarray | None, near: Matrix) -> float:
        """Sigma, from rows where it is not a number; `near` is a row near the others."""
        width = given_width(self.width, self.kernel)
        if width is not None:
            return width
        shift = None if rows.is_sparse else np.asarray(near, dtype=np.float64)[0]
        return mean_width(ArrayRows(rows, weight=weight, n_jobs=1), shift)

    def with_width(
        self, width: float, rare: WeightedRows, chooser: np.random.RandomState
    ) -> LearnedFunction:
        """The zero function in the span of the landmarks."""
        kernel, numbers = make_kernel(self.kernel, width), np.arange(len(rare))
        rows = LandmarkCandidates(
            numbers, lambda: numbers, lambda chosen: rare.X[chosen], rare.X.shape[1]
        )
        landmarks = choose_landmarks(self.landmarks, kernel, rows, self.memory, chooser).points
        check_memory(landmarks, len(rare), self.memory)
        return LearnedFunction.start(span(kernel, landmarks), width, rare)


def most_landmarks(landmarks: Any, memory: int) -> float:
    """Most landmarks that there may be, counting rare rows that come later.

    Raises `ValueError` where landmarks are not rare rows or points: the majority is not held.
    """
    if landmark_points(landmarks) is not None:
        return 0
    fitting = (memory / (2 * 8 * SQUARES)) ** 0.5
    if isinstance(landmarks, str) and landmarks == "rare":
        return fitting
    if isinstance(landmarks, tuple) and landmarks[:1] == ("rare",):
        return min(CountedRule.of(landmarks).k, fitting)
    raise ValueError(
        f"landmarks={landmarks!r} is not 'rare', ('rare', k), ('rare', k, "
        "'pivoted_cholesky') or a matrix of points: rows of the majority, which is not held, "
        "cannot be picked. RankRC takes them as landmarks."
    )


CAPACITY = 8192
"""Rows that are kept: shares of the majority are then known to about half a percent."""
MOST_BATCH = 4096
"""Majority rows of a mini-batch that is not asked for: Newton steps on up to so many rows at once
need no more passes than mini-batches of them, and their end is certain."""
# At least so many steps a pass where there are more; rows of a mini-batch where nobody knows.
_BATCHES_A_PASS, _STREAM_BATCH = 16, 2048
# Steps on a first mini-batch that is not full yet, and the relative gap that ends them.
_MOST_STEPS, _SETTLED = 30, 1e-6
# Parts of waiting rows, before they are joined.
_MOST_PARTS = 64


class Reservoir(NamedTuple):
    """A uniform sample of the majority rows seen: see `reservoir_slots`."""

    rows: WeightedRows | None = None  # those kept, None before the first
    seen: int = 0  # rows that have passed by

    def updated(self, more: WeightedRows, rng: np.random.Generator) -> "Reservoir":
        """The sample after further rows; one draw a row, in row order."""
        n = len(more)
        nth = self.seen + 1 + np.arange(n)
        slot = reservoir_slots(nth, rng.random(n), CAPACITY)
        stored = np.flatnonzero(slot >= 0)
        if self.rows is None:
            kept = np.full(min(n, CAPACITY), -1)
            kept[slot[stored]] = stored
            return Reservoir(more.pick(kept), n)
        if not len(stored):
            return self._replace(seen=self.seen + n)
        n_before = len(self.rows)
        kept = np.arange(min(self.seen + n, CAPACITY))
        kept[slot[stored]] = n_before + stored
        return Reservoir(self.rows.joined(more).pick(kept), self.seen + n)


class State(NamedTuple):
    """Everything that moves; enough to go on from."""

    learned: LearnedFunction | None  # None until there is a mini-batch and a rare row
    majority: tuple[WeightedRows, ...]  # waiting until they are a mini-batch
    rare: tuple[WeightedRows, ...]  # waiting for the mini-batch in which they came to be full
    reservoir: Reservoir  # of the majority, to place the threshold
    rng: np.random.Generator  # for the reservoir, and the pairs whose curvature is looked at
    chooser: np.random.RandomState  # for landmarks
    # weight of the majority where its rows are visited again; inf in a stream
    whole: float = np.inf
    unseen: float = np.inf  # majority rows that were not visited yet; inf in a stream

    @property
    def n_waiting(self) -> int:
        """Majority rows that wait."""
        return sum(map(len, self.majority))


class Feeder(NamedTuple):
    """Mini-batches of a stream of rows, and the states after them."""

    settings: LearnerSettings
    start: Beginning
    batch_size: int  # majority rows of a mini-batch

    def states(self, state: State, rows: WeightedRows, is_rare: np.ndarray) -> Iterator[State]:
        """The states after each mini-batch that rows complete, and after the last row.

        Where a batch ends depends on the rows alone, not on how they come in parts.
        """
        nth = state.n_waiting + np.cumsum(~is_rare)
        ends = 1 + np.flatnonzero(~is_rare & (nth % self.batch_size == 0))
        first = 0
        for stop in [*ends, len(rows)]:
            part, rare = rows.pick(slice(first, stop)), is_rare[first:stop]
            # Rows that wait are copied, so that no caller can change them.
            state = state._replace(
                majority=_longer(state.majority, part.pick(~rare)),
                rare=_longer(state.rare, part.pick(rare)),
            )
            if state.n_waiting >= self.batch_size:
                state = self.absorbed(state)
            yield state
            first = stop

    def absorbed(self, state: State) -> State:
        """The state once the rows that wait are learned."""
        rows, learned, rng = joined(state.majority), state.learned, state.rng
        fresh = rows.pick(slice(0, int(min(len(rows), state.unseen))))
        reservoir = state.reservoir.updated(fresh, rng) if len(fresh) else state.reservoir
        if learned is None and state.rare:
            learned = self.start(joined(state.rare), rows, state.chooser)
        elif learned is not None and state.rare:
            learned = learned.with_rare(joined(state.rare), self.settings)
        if learned is not None:
            learned = learned.after(rows, self.settings, rng, state.whole)
        # Majority rows before the first rare one have no pairs: they count for the threshold.
        return state._replace(
            learned=learned,
            majority=(),
            rare=() if learned is not None else state.rare,
            reservoir=reservoir,
            unseen=state.unseen - len(fresh),
        )

    def finished(self, state: State) -> State:
        """State as if the stream ended here; the state itself is not changed."""
        if not state.n_waiting:
            if state.learned is None or not state.rare:
                return state
            rare = joined(state.rare)
            learned = state.learned.with_rare(rare, self.settings)
            return state._replace(learned=learned, rare=())
        last = self.absorbed(
            state._replace(rng=deepcopy(state.rng), chooser=deepcopy(state.chooser))
        )
        if state.learned is not None or last.learned is None:
            return last
        rows, learned = joined(state.majority), last.learned
        for _ in range(_MOST_STEPS):
            if learned.relative_gap(self.settings.lam) <= _SETTLED:
                break
            learned = learned.after(rows, self.settings, last.rng, whole=0.0)
        return last._replace(learned=learned)


def _longer(parts: tuple[WeightedRows, ...], more: WeightedRows) -> tuple[WeightedRows, ...]:
    """Parts and one more; many small ones become one."""
    if not len(more):
        return parts
    parts = (*parts, more)
    return parts if len(parts) < _MOST_PARTS else (joined(parts),)


def batch_size_of(wanted: int | str, n_majority: int | None) -> int:
    """Majority rows of a mini-batch, of `n_majority` in all; None stands for a stream.

    Examples
    --------
    >>> [batch_size_of("auto", n) for n in (100, 16_000, 10**6, None)]
    [100, 1000, 4096, 2048]
    >>> batch_size_of(500, 100), batch_size_of(500, None)
    (100, 500)
    """
    if wanted != "auto":
        return int(wanted) if n_majority is None else min(int(wanted), n_majority)
    if n_majority is None:
        return _STREAM_BATCH
    if n_majority <= MOST_BATCH:
        return n_majority
    return min(n_majority // _BATCHES_A_PASS, MOST_BATCH)


@contextmanager
def undone_unless_learned(estimator: Any) -> Iterator[None]:
    """Put the attributes back when what is inside raises before it has learned a mini-batch.

    From the first mini-batch on what was learned stays: it can be used, and gone on from. Nothing
    large is held for this: until then the function learned is the one before.
    """
    before = {name: value for name, value in vars(estimator).items() if name != "_published"}
    state: State | None = before.pop("state_", None)
    n_batches = _n_batches(state)
    if state is not None:
        # Generators move in place.
        rng, chooser = deepcopy((state.rng, state.chooser))
        state = state._replace(learned=None, rng=rng, chooser=chooser)
    try:
        yield
    except BaseException:
        now: State | None = vars(estimator).get("state_")
        if _n_batches(now) == n_batches:
            vars(estimator).clear()
            vars(estimator).update(before)
            if state is not None and now is not None:
                estimator._keep(state._replace(learned=now.learned))
        raise


def _n_batches(state: State | None) -> int:
    return 0 if state is None or state.learned is None else state.learned.n_batches


# Rows of the reservoir that are scored at a time.
_ROWS = 1024


class Progress(NamedTuple):
    """One line of the history."""

    passes: float  # readings of all rows; nan in a stream
    batches: int  # mini-batches learned
    objective: float  # as the running model knows it
    optimality: float  # its estimated relative distance from the minimum


class Published(NamedTuple):
    """A fitted model as its users see it; the attributes of `StochasticRankRC`."""

    landmarks: Any
    whitener: np.ndarray
    coef: np.ndarray
    width: float
    offset: float
    objective: float
    optimality: float
    n_rare: int


def publish(feeder: Feeder, state: State, n_features: int) -> Published:
    """The model of a state."""
    state = feeder.finished(state)
    learned, lam = state.learned, feeder.settings.lam
    if learned is None:
        # One far point with a coefficient of zero: every row scores zero.
        point, none = np.zeros((1, n_features)), np.zeros((1, 0))
        return Published(point, none, np.zeros(1), 1.0, 0.0, np.nan, np.inf, 0)
    return Published(
        landmarks=learned.space.expansion.landmarks,
        whitener=learned.space.whitener,
        coef=learned.coefficients,
        width=learned.width,
        offset=_threshold(learned, state.reservoir),
        objective=learned.objective(lam),
        optimality=learned.relative_gap(lam),
        n_rare=len(learned.rare.rows),
    )


def _threshold(learned: LearnedFunction, reservoir: Reservoir) -> float:
    """The best balanced accuracy between the rare rows and the sample of the majority."""
    rows, rare = reservoir.rows, learned.rare
    if rows is None:
        return 0.0
    X: Any = rows.X
    parts = [
        learned.space.kernel(X[start : start + _ROWS]) @ learned.coefficients
        for start in range(0, len(rows), _ROWS)
    ]
    weights = [rare.rows.weight, rows.weight]
    is_weighted = any((weight != 1.0).any() for weight in weights)
    return threshold_between(
        ScoredClasses(
            rare.scores(learned.weights),
            np.concatenate(parts),
            *(weights if is_weighted else (None, None)),
        )
    )
