"""Threshold that follows the scores of a stream, so that alerts keep within a budget."""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.stream._threshold_jit import raise_alerts
from rareclass.stream.options import AlertBudget

FEWEST = 100  # scores without which no row is an alert
NO_DAY = np.iinfo(np.int64).min
_MOST_RECENT = 100_000
_FEWEST_RECENT = 1_000
_MOST_DAYS = 4_000
_WEEK = 7
_FIRST_DAY = 10_000.0  # rows that a day is taken to have before one has ended


class AlertDecisions(NamedTuple):
    """Decisions on rows, one entry a row."""

    is_alert: NDArray[np.bool_]
    thresholds: NDArray[np.float64]  # in force; NaN while there is none
    places: NDArray[np.int64]  # recent scores that are higher, and one
    recent: NDArray[np.int64]  # scores that it was compared with


class MovingThreshold:
    r"""Decides which rows of a stream are alerts, never more in a period than the budget has.

    Periods are rows 1 to N, N + 1 to 2N, ... of those decided on, or calendar days. With b of the k
    alerts of a period left and n of its rows to come, this one included, a row is an alert when its
    score is above the quantile of recent scores that a share ``min(b / n, 2 k / N)`` of scores
    exceeds, and b > 0. For scores that are exchangeable with the recent ones, and have no ties, the
    expected number of alerts in what is left of the period is then b, but for the bound 2 k / N,
    which keeps the last rows of a quiet period from being alerts whatever they score.

    A day is taken to have as many rows as the day a week before, else as the seven days before it
    on average (10,000 before a day has ended); n is a tenth of that at least. A row without a day
    belongs to that of the row before it. Rows of a day are counted together however far apart they
    come; of days before the earliest of the last 4,000, none is an alert.

    Recent scores are the last ``30 N / k`` (1,000 to 100,000), brought up to date after each
    fiftieth of them, 100 rows at least; before the first 100 no row is an alert. All of this
    depends on the rows before alone, never on how they came in batches. O(1) a row, and O(m log m)
    for each time that the m recent scores are sorted.

    >>> threshold = MovingThreshold(AlertBudget(2, 100))
    >>> scores = np.random.default_rng(0).normal(size=1000)
    >>> threshold.decide(scores).is_alert.reshape(10, 100).sum(axis=1)
    array([0, 1, 2, 2, 2, 0, 2, 2, 1, 2])
    """

    def __init__(self, budget: AlertBudget) -> None:
        self.budget = budget
        self._recent = np.empty(0)  # in the order of the stream, as of the last time sorted
        self._sorted = np.empty(0)
        self._later = np.empty(0)  # since then
        self._n_rows = 0
        self._periods: dict[int, tuple[int, int]] = {}  # rows and alerts of each
        self._earliest = NO_DAY
        self._day = NO_DAY

    def decide(
        self, scores: NDArray[np.float64], days: NDArray[np.int64] | None = None
    ) -> AlertDecisions:
        """Decide on the next rows; `days` are numbers of days, `NO_DAY` where that is not known."""
        n = len(scores)
        scores = np.ascontiguousarray(scores, np.float64)
        periods = self._periods_of(n, days)
        decided = AlertDecisions(
            np.zeros(n, np.bool_), np.full(n, np.nan), np.zeros(n, np.int64), np.zeros(n, np.int64)
        )
        for start, end in self._runs(periods):
            rows = slice(start, end)
            m = len(self._sorted)
            decided.recent[rows] = m
            decided.places[rows] = 1 + m - np.searchsorted(self._sorted, scores[rows], "right")
            self._take(int(periods[start]), scores[rows], decided, rows)
            self._remember(int(periods[start]), scores[rows])
        self._n_rows += n
        return decided

    def _periods_of(self, n: int, days: NDArray[np.int64] | None) -> NDArray[np.int64]:
        if self.budget.rows is not None:
            periods: NDArray[np.int64] = (self._n_rows + np.arange(n)) // self.budget.rows
            return periods
        if days is None:
            raise ValueError("a budget a day needs the day of each row")
        known = np.where(days != NO_DAY, np.arange(n), -1)
        last = np.maximum.accumulate(known) if n else known
        found = np.where(last >= 0, days[last], self._day)
        if n:
            self._day = int(found[-1])
        return found

    def _runs(self, periods: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Rows in succession of one period and with the same recent scores."""
        changes = [*(np.flatnonzero(np.diff(periods)) + 1).tolist(), len(periods)]
        start = 0
        for change in changes:
            while start < change:
                end = min(change, start + self._step() - len(self._later))
                yield start, end
                start = end

    def _step(self) -> int:
        return max(FEWEST, len(self._recent) // 50)

    def _take(
        self, period: int, scores: NDArray[np.float64], decided: AlertDecisions, rows: slice
    ) -> None:
        if period == NO_DAY or period < self._earliest:
            return
        seen, used = self._periods.get(period, (0, 0))
        if len(self._sorted):
            size = self._size(period)
            used = raise_alerts(
                scores, self._sorted, float(seen), used, self.budget.number, size,
                1.0 if self.budget.rows else size / 10.0,
                decided.thresholds[rows], decided.is_alert[rows],
            )  # fmt: skip
        self._periods[period] = (seen + len(scores), used)
        if self.budget.rows is not None:
            if len(self._periods) > 1:
                del self._periods[min(self._periods)]
        elif len(self._periods) > _MOST_DAYS:
            del self._periods[min(self._periods)]
            self._earliest = min(self._periods)

    def _size(self, period: int) -> float:
        """Rows that a period has, or is expected to have: never fewer than it may have alerts."""
        if self.budget.rows is not None:
            return float(self.budget.rows)
        if period - _WEEK in self._periods:
            return float(max(self._periods[period - _WEEK][0], self.budget.number))
        before = sorted(day for day in self._periods if day < period)[-_WEEK:]
        rows = [self._periods[day][0] for day in before]
        expected = sum(rows) / len(rows) if rows else _FIRST_DAY
        return max(expected, float(self.budget.number))

    def _remember(self, period: int, scores: NDArray[np.float64]) -> None:
        self._later = np.concatenate([self._later, scores])
        if len(self._later) < self._step():
            return
        wanted = 30.0 * self._size(period) / self.budget.number
        wanted = int(min(max(wanted, _FEWEST_RECENT), _MOST_RECENT))
        self._recent = np.concatenate([self._recent, self._later])[-wanted:]
        self._sorted, self._later = np.sort(self._recent), np.empty(0)
