"""Rows in their order become mini-batches; the state between them."""

from collections.abc import Iterator
from copy import deepcopy
from typing import NamedTuple, Protocol

import numpy as np

from rareclass.ranking.stochastic.learner import Learned, Settings
from rareclass.ranking.stochastic.reservoir import Reservoir
from rareclass.ranking.stochastic.row_parts import WeightedRows, joined

# Steps on a first mini-batch that is not full yet, and the relative gap that ends them.
_MOST_STEPS, _SETTLED = 30, 1e-6

# Parts of waiting rows, before they are joined.
_MOST_PARTS = 64


class Start(Protocol):
    """How learning begins."""

    def __call__(
        self, rare: WeightedRows, majority: WeightedRows, chooser: np.random.RandomState
    ) -> Learned:
        """The zero function from the rare rows and the first mini-batch of the majority."""
        ...


class State(NamedTuple):
    """Everything that moves; enough to go on from."""

    learned: Learned | None  # None until there is a mini-batch and a rare row
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
    """What rows go through."""

    settings: Settings
    start: Start
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
            state = _waiting(state, part, rare)
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
        """What the state would be if the stream ended here; the state itself is not changed."""
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


def _waiting(state: State, rows: WeightedRows, is_rare: np.ndarray) -> State:
    """The state with rows that wait; they are copied, so that no caller can change them."""
    return state._replace(
        majority=_longer(state.majority, rows.pick(~is_rare)),
        rare=_longer(state.rare, rows.pick(is_rare)),
    )


def _longer(parts: tuple[WeightedRows, ...], more: WeightedRows) -> tuple[WeightedRows, ...]:
    """Parts and one more; many small ones become one."""
    if not len(more):
        return parts
    parts = (*parts, more)
    return parts if len(parts) < _MOST_PARTS else (joined(parts),)
