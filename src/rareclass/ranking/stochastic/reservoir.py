"""A uniform sample of the majority rows seen so far, of bounded size."""

from typing import NamedTuple

import numpy as np

from rareclass.ranking.stochastic.row_parts import WeightedRows

CAPACITY = 8192
"""Rows that are kept: shares of the majority are then known to about half a percent."""


class Reservoir(NamedTuple):
    """Vitter's Algorithm R: each row seen is among those kept with the same probability."""

    rows: WeightedRows | None = None  # those kept, None before the first
    seen: int = 0  # rows that have passed by

    def updated(self, more: WeightedRows, rng: np.random.Generator) -> "Reservoir":
        """The sample after further rows; one draw a row, in row order."""
        n = len(more)
        nth = self.seen + 1 + np.arange(n)
        drawn = (rng.random(n) * nth).astype(np.int64)
        slot = np.where(nth <= CAPACITY, nth - 1, drawn)
        stored = np.flatnonzero(slot < CAPACITY)
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
