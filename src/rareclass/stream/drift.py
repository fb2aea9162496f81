"""Drift of a stream: measures of its last rows, falls of these, columns that move, an alarm.

States are plain attributes, and a checkpoint holds them as they are: all depend on the rows alone,
never on how rows came in batches.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Encoded, OnlineEncoder
from rareclass.metrics import average_precision, interval, precision_at_k, roc_auc
from rareclass.metrics.at_k import precision_in_top, rare_at_cut
from rareclass.metrics.column_drift import MOVED_FAR, ColumnShift, column_shift
from rareclass.metrics.intervals import Interval, difference_interval, wilson_interval
from rareclass.metrics.scored_classes import RareCells, cells_of
from rareclass.tables.text_reader import Batch

Floats = NDArray[np.float64]
# Smaller windows are not compared with each other.
FEWEST_IN_WINDOW = 100
# Chance that a report of a stream that stays as it is tells of a fall, at most.
ERROR = 0.01
# Share of the columns that begin to move together when a stream drifts (docs/decisions/0033).
ENOUGH_COLUMNS = 0.2
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


class WindowMeasures(NamedTuple):
    """Measures of the rows in a window; None where they are not defined."""

    auc: float | None  # exact, as in `rareclass.metrics`; None while a class is missing
    average_precision: float | None
    precision_at_k: float | None  # None also below k rows


class Window:
    """The scores and labels of the last `size` rows whose label is known; `top` is the k.

    Rows stand in ring arrays: the n-th row (from 0) in place n % size, however they were added.
    Memory is 9 bytes a row; adding costs O(rows added).

    >>> window = Window(size=4, top=2)
    >>> window.add([0.1, 0.4, 0.3, 0.9], [False, False, True, True])
    >>> window.measures()
    WindowMeasures(auc=0.75, average_precision=0.8333333333333333, precision_at_k=0.5)
    """

    def __init__(self, size: int, top: int) -> None:
        self.size, self.top = size, top
        self._scores = np.zeros(size)
        self._rare = np.zeros(size, np.bool_)
        self._added = 0

    @property
    def n_added(self) -> int:
        """Rows added so far."""
        return self._added

    def add(self, scores: Any, rare: Any) -> None:
        """Take in rows in the order in which their labels became known; the oldest leave."""
        scores, rare = np.asarray(scores, np.float64), np.asarray(rare, np.bool_)
        first = max(0, len(scores) - self.size)
        places = (self._added + np.arange(first, len(scores))) % self.size
        self._scores[places], self._rare[places] = scores[first:], rare[first:]
        self._added += len(scores)

    def measures(self) -> WindowMeasures:
        """Measure the rows now in the window: O(n log n)."""
        scores, rare = self.rows()
        n_rare = int(rare.sum())
        if n_rare in (0, len(rare)):
            return WindowMeasures(None, None, None)
        at_top = precision_at_k(rare, scores, self.top) if len(rare) >= self.top else None
        return WindowMeasures(roc_auc(rare, scores), average_precision(rare, scores), at_top)

    def rows(self) -> tuple[Floats, NDArray[np.bool_]]:
        """Return the scores and labels in the window, in the order of the ring."""
        n_rows = min(self._added, self.size)
        return self._scores[:n_rows], self._rare[:n_rows]


class Fall(NamedTuple):
    """A measure that is lower than in the best window by more than chance explains.

    The fall, ``best - value``, lies between `low` and `high`, with `low` above 0.
    """

    measure: str
    value: float  # of the last window
    best: float
    best_rows: int  # labelled rows at the end of the best window
    low: float
    high: float


class BestWindow(NamedTuple):
    """The rows of a best window, and its measure."""

    value: float
    rows: int
    scores: Floats
    rare: NDArray[np.bool_]


class BestWindows:
    r"""The best of the windows that lie end to end: of AUC and of precision at k.

    The best of many windows is high by chance as well: the last is compared with each of the K
    windows before, and the interval of the difference has the level ``1 - ERROR / K``
    (Bonferroni). Of AUC it comes from DeLong's intervals of both windows, of precision at k from
    `precision_interval`, by Zou's method, the windows being independent; that of a window with
    fewer rare rows than the best one is not judged. Best windows are kept whole: 9 bytes a row of
    each.
    """

    def __init__(self) -> None:
        self._best: dict[str, BestWindow] = {}
        self._n_windows = 0
        self._looked_at = 0  # labelled rows when a window was last considered

    def add(self, window: Window, scores: Floats, rare: NDArray[np.bool_]) -> None:
        """Add rows to the window, and look at it whenever all of its rows are new."""
        start = 0
        while start < len(scores):
            before = window.n_added % window.size
            if not before and window.n_added:
                self.look(window)
            end = start + window.size - before
            window.add(scores[start:end], rare[start:end])
            start = end

    def look(self, window: Window) -> None:
        """Consider the window, when it has just filled again and before rows are added."""
        if window.n_added == self._looked_at or window.size < max(FEWEST_IN_WINDOW, window.top):
            return
        self._looked_at = window.n_added
        scores, rare = window.rows()
        if rare.all() or not rare.any():
            return
        self._n_windows += 1
        at_top = precision_at_k(rare, scores, window.top)
        for measure, value in (("auc", roc_auc(rare, scores)), ("precision_at_k", at_top)):
            if measure not in self._best or value > self._best[measure].value:
                self._best[measure] = BestWindow(value, window.n_added, scores.copy(), rare.copy())

    def falls(self, window: Window) -> list[Fall]:
        """Return the measures that a full window is worse at than the best one before."""
        scores, rare = window.rows()
        if len(rare) < window.size or rare.all() or not rare.any() or not self._n_windows:
            return []
        level = 1.0 - ERROR / self._n_windows
        found = []
        for measure, best in self._best.items():
            if measure == "precision_at_k" and rare.sum() < best.rare.sum():
                continue  # among fewer rare rows it is lower, however these are ranked
            now = _interval(measure, scores, rare, window.top, level)
            if now.value >= best.value:
                continue
            before = _interval(measure, best.scores, best.rare, window.top, level)
            fall = difference_interval(before, now, 0.0)
            if fall.low > 0.0:
                found.append(Fall(measure, now.value, best.value, best.rows, fall.low, fall.high))
        return found


def segment_size(window: int) -> int:
    """Return the records of a segment: those of a window, 1,000 at least."""
    return max(window, LEAST_SEGMENT)


class ColumnCounts:
    """Counts of the cells of each column, to compare recent segments with the past.

    A segment is `size` records; the current one and the one before are recent. Numbers are counted
    in bins around the running mean, fixed in the units of the column when the first segment ends,
    and again (its counts begin anew) when the mean has been two deviations away, or the deviation
    fourfold, for five segments; categories by the encoder's features. When a segment ends, the one
    before joins the past, which fades with the encoder's half life. O(1) a cell; 400 bytes a number
    column, and 32 a category.
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
            self._bins[2, k] += _binned(np.array(batch.frame[name]), self._edges[k])

    def end_segment(self, encoder: OnlineEncoder) -> None:
        """Move the counts on by one segment, which is complete."""
        fading = 2.0 ** (-self.size / self.half_life)
        for counts in (self._rows, self._bins, self._values):
            counts[0] = fading * counts[0] + counts[1]
            counts[1], counts[2] = counts[2], 0.0
        self._segment += 1
        self._centre(encoder)

    @property
    def n_rows(self) -> float:
        """Rows that are counted; those of the past have faded."""
        return float(self._rows.sum())

    def number_counts(self, encoder: OnlineEncoder) -> dict[str, tuple[Any, Any]]:
        """Return the edges of each number, and its cells in each bin, the last of empty ones."""
        counts = self._bins.sum(axis=0)
        known = zip(_numbers(encoder), self._edges, counts, strict=False)
        return {name: (edges, cells) for name, edges, cells in known if cells.sum()}

    def value_counts(self, encoder: OnlineEncoder) -> Floats:
        """Return the rows in which each indicator is 1; 0 for numbers."""
        self._widen(encoder)
        counts: Floats = self._values.sum(axis=0)
        return counts

    def usual(self, encoder: OnlineEncoder) -> Floats:
        """Return the share of earlier rows in which each indicator is 1; 0 for numbers."""
        self._widen(encoder)
        shares: Floats = self._values[0] + self._values[1]
        return shares / max(float(self._rows[0] + self._rows[1]), 1.0)

    def moves(self, encoder: OnlineEncoder) -> list[ColumnShift]:
        """Return columns that moved or lie outside, the worst first; none without a past."""
        if self._rows[0] < FEWEST_ROWS or self._rows[1] + self._rows[2] < FEWEST_ROWS:
            return []
        self._widen(encoder)
        shifts = []
        for k, name in enumerate(_numbers(encoder) if len(self._edges) else []):
            past, recent = self._bins[0, k], self._bins[1, k] + self._bins[2, k]
            if past.sum() >= FEWEST_ROWS and recent.sum() >= FEWEST_ROWS:
                n_outside = recent[0] + recent[len(EDGES)]
                shifts.append(column_shift(name, recent, past, n_outside, recent.sum()))
        past, recent = self._values[0], self._values[1] + self._values[2]
        rows = float(self._rows[1] + self._rows[2])
        is_value = np.array([each.role != "missing" for each in encoder.features])
        is_new = (self._born >= self._segment - 1) & is_value
        column_of = np.array([each.column for each in encoder.features])
        for name, kind in encoder.schema.features.items():
            own = np.flatnonzero(column_of == name)
            if kind == "category" and len(own):
                n_outside = recent[own][is_new[own]].sum()
                shifts.append(column_shift(name, recent[own], past[own], n_outside, rows))
        moved = [
            each
            for each in shifts
            if each.stability_index >= MOVED_FAR or each.outside > MUCH_OUTSIDE
        ]
        return sorted(moved, key=lambda each: (-each.stability_index, each.column))

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
            self._edges[k] = mean[k] + deviation[k] * EDGES
            if deviation[k] == 0.0:  # around a column that does not vary all others are outside
                near = 1e-9 * max(abs(mean[k]), 1e-300)
                self._edges[k] = np.where(EDGES < 0.0, mean[k] - near, mean[k] + near)


class DriftAlarm:
    """Rings when a fifth of the columns move that did not at the last look, or a measure falls.

    What has moved goes on being unlike the past for many segments: it rings once. Single columns
    come and go in streams that rank as well as before.

    >>> alarm = DriftAlarm()
    >>> moved = [ColumnShift("amount", 0.4, 0.0)]
    >>> looks = [(1000, moved), (2000, moved), (3000, [])]
    >>> [alarm.rings(rows, moved, [], n_columns=5) for rows, moved in looks]
    [True, False, False]
    >>> alarm.count, alarm.last
    (1, 1000)
    """

    def __init__(self) -> None:
        self.count = 0  # how often it rang
        self.last: int | None = None  # records when it rang last
        self._moved: set[str] = set()
        self._fell: set[str] = set()

    def rings(
        self, rows: int, moved: Sequence[ColumnShift], falls: Sequence[Fall], n_columns: int
    ) -> bool:
        """Look at what is told of drift after so many records."""
        columns, measures = {each.column for each in moved}, {each.measure for each in falls}
        n_new = len(columns - self._moved)
        begins = n_new >= max(ENOUGH_COLUMNS * n_columns, 1) or bool(measures - self._fell)
        self._moved, self._fell = columns, measures
        if begins:
            self.count, self.last = self.count + 1, rows
        return begins


def _binned(cells: Floats, edges: Floats) -> NDArray[np.int64]:
    """Count cells in each bin, above one edge and up to the next; the last is of empty ones."""
    counts = np.bincount(np.searchsorted(edges, cells), minlength=_SLOTS)
    counts[-1] = np.count_nonzero(np.isnan(cells))  # sorted behind the last edge
    counts[-2] -= counts[-1]
    return counts


def _numbers(encoder: OnlineEncoder) -> list[str]:
    return [name for name, kind in encoder.schema.features.items() if kind == "number"]


def _interval(
    measure: str, scores: Floats, rare: NDArray[np.bool_], k: int, level: float
) -> Interval:
    if measure == "auc":
        return interval("roc_auc", rare, scores, level=level)
    return precision_interval(cells_of(rare, scores), k, level)


def precision_interval(cells: RareCells, k: float, level: float) -> Interval:
    r"""Interval of the precision P at k in n rows of which it is chance how many are rare.

    A row more in the top takes the place of one at the cut, which is rare with the chance L, so
    that the variance is :math:`(P (1 - P) + (P - L)^2 (1 - k / n)) / k`: where the top holds most
    of the rare rows it varies as their number does. Wilson's, for as many trials as have that.
    """
    precision, n = precision_in_top(cells, k), cells.n_rare + cells.n_majority
    shrunk = (k * precision + 2.0) / (k + 4.0)
    more = (precision - rare_at_cut(cells, k)) ** 2 * (1.0 - k / n) / (shrunk * (1.0 - shrunk))
    return wilson_interval(precision, k / (1.0 + more), level)
