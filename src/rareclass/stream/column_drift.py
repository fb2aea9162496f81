"""Whether the columns of a stream still look as they did: recent rows beside the past."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded, OnlineEncoder
from rareclass.metrics.column_drift import MOVED_FAR, ColumnShift, column_shift
from rareclass.tables.batch import Batch

# Share of cells outside of what was seen from which a column is told of.
MUCH_OUTSIDE = 0.01
# Fewer rows on either side say little.
FEWEST_ROWS = 500
LEAST_SEGMENT = 1_000
# Edges of the bins of a number in standard deviations: the inner ones cut a normal distribution
# into shares of .05, .10 and then .10 each, the outermost say what lies outside.
_HALF = np.array([0.126, 0.385, 0.674, 1.036, 1.645, 3.0, 10.0])
EDGES = np.concatenate([-_HALF[::-1], _HALF])
_SLOTS = len(EDGES) + 2  # the last for empty cells
# Segments that a column is told of as moved before its bins follow it.
_PATIENCE = 4
_ROUNDING = 2e-15


class ColumnCounts:
    """Counts of the cells of each column: of the segment under way, the one before, and the past.

    A segment is `size` records. Numbers are counted in bins around the running mean, fixed in the
    units of the column when the first segment ends, and again (its counts begin anew) when the
    mean has been two deviations away, or the deviation fourfold, for five segments; categories by
    the encoder's features. When a segment ends, the one before joins the past, which fades with
    the encoder's half life. All counts depend on the rows alone, as segments end at fixed numbers
    of records. O(1) a cell; 400 bytes a number column, and 32 a category.
    """

    def __init__(self, size: int, half_life: float) -> None:
        self.size, self.half_life = size, half_life
        self._segment = 0
        # Rows and counts of the past, of the segment before and of this one.
        self._rows = np.zeros(3)
        self._bins = np.zeros((3, 0, _SLOTS))
        self._values = np.zeros((3, 0))
        self._born = np.zeros(0, np.int64)  # the segment in which each feature came up
        self._counted = np.zeros(0, np.bool_)  # features that are 0 or 1
        self._edges = np.zeros((0, len(EDGES)))
        self._centres = np.zeros((0, 2))  # mean and deviation that the edges were made from
        self._misfits = np.zeros(0, np.int64)  # segments that they have not fitted any more

    def add(self, batch: Batch, encoded: Encoded, encoder: OnlineEncoder) -> None:
        """Count the cells of rows that lie within one segment."""
        if not batch.n_rows:
            return
        self._widen(encoder)
        self._rows[2] += batch.n_rows
        # Sums of zeros and ones are exact, in whatever order; those of numbers would not be.
        self._values[2] += np.where(self._counted, encoded.X.sum(axis=0), 0.0)
        if not len(self._edges):
            return
        for k, name in enumerate(_numbers(encoder)):
            self._bins[2, k] += _binned(batch.columns[name], self._edges[k])

    def end_segment(self, encoder: OnlineEncoder) -> None:
        """The segment is complete: move the counts on by one."""
        fading = 2.0 ** (-self.size / self.half_life)
        for counts in (self._rows, self._bins, self._values):
            counts[0] = fading * counts[0] + counts[1]
            counts[1], counts[2] = counts[2], 0.0
        self._segment += 1
        self._centre(encoder)

    def usual(self, encoder: OnlineEncoder) -> NDArray[np.float64]:
        """Share of the rows before this segment in which each indicator is 1; 0 for numbers."""
        self._widen(encoder)
        shares: NDArray[np.float64] = self._values[0] + self._values[1]
        return shares / max(float(self._rows[0] + self._rows[1]), 1.0)

    def moves(self, encoder: OnlineEncoder) -> list[ColumnShift]:
        """Columns that moved or lie outside, the worst first; none while there is no past."""
        if self._rows[0] < FEWEST_ROWS or self._rows[1] + self._rows[2] < FEWEST_ROWS:
            return []
        self._widen(encoder)
        found = [*self._numbers_moved(encoder), *self._categories_moved(encoder)]
        moved = [
            each
            for each in found
            if each.stability_index > MOVED_FAR or each.outside > MUCH_OUTSIDE
        ]
        return sorted(moved, key=lambda each: (-each.stability_index, each.column))

    def _numbers_moved(self, encoder: OnlineEncoder) -> list[ColumnShift]:
        moved = []
        for k, name in enumerate(_numbers(encoder) if len(self._edges) else []):
            past, recent = self._bins[0, k], self._bins[1, k] + self._bins[2, k]
            if past.sum() < FEWEST_ROWS or recent.sum() < FEWEST_ROWS:
                continue
            n_outside = recent[0] + recent[len(EDGES)]
            moved.append(column_shift(name, recent, past, n_outside, recent.sum()))
        return moved

    def _categories_moved(self, encoder: OnlineEncoder) -> list[ColumnShift]:
        past, recent = self._values[0], self._values[1] + self._values[2]
        kinds, features = encoder.schema.features, encoder.features
        places: dict[str, list[int]] = {}
        for place, feature in enumerate(features):
            if kinds[feature.column] == "category":
                places.setdefault(feature.column, []).append(place)
        rows = float(self._rows[1] + self._rows[2])
        moved = []
        for name, own in places.items():
            is_value = np.array([features[place].role != "missing" for place in own])
            is_new = (self._born[own] >= self._segment - 1) & is_value
            n_outside = recent[own][is_new].sum()
            moved.append(column_shift(name, recent[own], past[own], n_outside, rows))
        return moved

    def _widen(self, encoder: OnlineEncoder) -> None:
        more = encoder.n_features - len(self._born)
        if more > 0:
            self._values = np.concatenate([self._values, np.zeros((3, more))], axis=1)
            self._born = np.concatenate([self._born, np.full(more, self._segment)])
        if len(self._counted) < encoder.n_features:
            self._counted = np.array([each.role != "number" for each in encoder.features])

    def _centre(self, encoder: OnlineEncoder) -> None:
        """Make the bins of numbers, and make them anew where they no longer fit."""
        statistics = encoder.to_state()["statistics"]
        mean, deviation = statistics[:, 1] + statistics[:, 2], np.sqrt(statistics[:, 3])
        deviation = np.where(deviation <= _ROUNDING * np.abs(mean), 0.0, deviation)
        if not len(self._edges):
            self._bins = np.zeros((3, len(mean), _SLOTS))
            self._edges = np.zeros((len(mean), len(EDGES)))
            self._centres = np.full((len(mean), 2), np.nan)
            self._misfits = np.zeros(len(mean), np.int64)
        before, spread = self._centres[:, 0], self._centres[:, 1]
        fits = (np.abs(mean - before) <= 2.0 * spread) & (deviation <= 4.0 * spread)
        fits &= 4.0 * deviation >= spread
        self._misfits = np.where(fits, 0, self._misfits + 1)
        is_due = (self._misfits > _PATIENCE) | np.isnan(before)
        for k in np.flatnonzero(is_due & (statistics[:, 0] > 0)).tolist():
            self._bins[:, k] = 0.0
            self._misfits[k] = 0
            self._centres[k] = mean[k], deviation[k]
            self._edges[k] = _edges(mean[k], deviation[k])

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: arrays and values that JSON can write."""
        return {
            "size": self.size, "half_life": self.half_life, "segment": self._segment,
            "rows": self._rows, "bins": self._bins, "values": self._values, "born": self._born,
            "edges": self._edges, "centres": self._centres, "misfits": self._misfits,
        }  # fmt: skip

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "ColumnCounts":
        """Return the counts that `to_state` described."""
        drift = cls(int(state["size"]), float(state["half_life"]))
        drift._segment = int(state["segment"])
        for name in ("rows", "bins", "values", "born", "edges", "centres", "misfits"):
            setattr(drift, f"_{name}", np.array(state[name]))
        return drift


def _binned(cells: NDArray[np.float64], edges: NDArray[np.float64]) -> NDArray[np.int64]:
    """Cells in each bin, above one edge and up to the next; the last is of empty ones."""
    counts = np.bincount(np.searchsorted(edges, cells), minlength=_SLOTS)
    counts[-1] = np.count_nonzero(np.isnan(cells))  # sorted behind the last edge
    counts[-2] -= counts[-1]
    return counts


def _edges(mean: float, deviation: float) -> NDArray[np.float64]:
    """Around a column that does not vary all other values are outside."""
    if deviation > 0.0:
        edges: NDArray[np.float64] = mean + deviation * EDGES
        return edges
    near = 1e-9 * max(abs(mean), 1e-300)
    return np.where(EDGES < 0.0, mean - near, mean + near)


def _numbers(encoder: OnlineEncoder) -> list[str]:
    return [name for name, kind in encoder.schema.features.items() if kind == "number"]
