"""Alerts of a stream: which rows, within a budget, why, and the file that they are written to."""

import csv
import datetime as dt
import io
import json
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Feature
from rareclass.errors import ErrorKind, setting
from rareclass.online.ranker import OnlineRanker
from rareclass.stream._threshold_jit import raise_alerts
from rareclass.stream.log import FileMark, GrowingFile
from rareclass.stream.options import AlertBudget
from rareclass.stream.reading import Arrivals
from rareclass.tables.cells import writable

N_REASONS = 3
# Records between two looks at the weights: each costs as much as some ten rows. Among the first
# LOOK_EVERY records, while the weights are young, it is a tenth of that.
LOOK_EVERY = 1_000
FIELDS = ("row", "id", "time", "score", "place", "recent", "threshold", "file", "line")
FEWEST = 100  # scores without which no row is an alert
_MOST_RECENT, _FEWEST_RECENT = 100_000, 1_000
_MOST_DAYS = 4_000
_WEEK = 7
_FIRST_DAY = 10_000  # rows that a day is taken to have where no other is known
Floats = NDArray[np.float64]
# What each feature of a row does to its score, given the row and weights.
Raises = Callable[[Floats, Floats], Floats]


class AlertDecisions(NamedTuple):
    """Decisions on rows, one entry a row."""

    is_alert: NDArray[np.bool_]
    thresholds: Floats  # in force; NaN while there is none
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
    on average, else as the seven after it (10,000 in the first day); n is a tenth of that at least.
    Rows of a day are counted together however far apart they come; of days before the earliest of
    the last 4,000, none is an alert.

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
        self._earliest = -math.inf

    def decide(self, scores: Floats, days: NDArray[np.int64] | None = None) -> AlertDecisions:
        """Decide on the next rows; `days` are their numbers of days, needed for a budget a day."""
        n = len(scores)
        scores = np.ascontiguousarray(scores, np.float64)
        if self.budget.rows is not None:
            days = (self._n_rows + np.arange(n)) // self.budget.rows
        if days is None:
            raise ValueError("a budget a day needs the day of each row")
        decided = AlertDecisions(
            np.zeros(n, np.bool_), np.full(n, np.nan), np.zeros(n, np.int64), np.zeros(n, np.int64)
        )
        for rows in self._runs(days):
            period, m = int(days[rows.start]), len(self._sorted)
            decided.recent[rows] = m
            decided.places[rows] = 1 + m - np.searchsorted(self._sorted, scores[rows], "right")
            self._take(period, scores[rows], decided, rows)
            self._remember(period, scores[rows])
        self._n_rows += n
        return decided

    def _runs(self, periods: NDArray[np.int64]) -> Iterator[slice]:
        """Yield rows in succession of one period and with the same recent scores."""
        start = 0
        for change in [*(np.flatnonzero(np.diff(periods)) + 1).tolist(), len(periods)]:
            while start < change:
                end = min(change, start + self._step() - len(self._later))
                yield slice(start, end)
                start = end

    def _step(self) -> int:
        return max(FEWEST, len(self._recent) // 50)

    def _take(self, period: int, scores: Floats, decided: AlertDecisions, rows: slice) -> None:
        if period < self._earliest:
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
        if len(self._periods) > (1 if self.budget.rows else _MOST_DAYS):
            del self._periods[min(self._periods)]
            self._earliest = min(self._periods)

    def _size(self, period: int) -> float:
        """Rows that a period has, or is expected to have: never fewer than it may have alerts."""
        if self.budget.rows is not None:
            return float(self.budget.rows)
        others = sorted(self._periods.keys() - {period})
        days = [day for day in others if day < period][-_WEEK:] or others[:_WEEK]
        if period - _WEEK in self._periods:
            days = [period - _WEEK]
        rows = [self._periods[day][0] for day in days] or [_FIRST_DAY]
        return max(sum(rows) / len(rows), float(self.budget.number))

    def _remember(self, period: int, scores: Floats) -> None:
        self._later = np.concatenate([self._later, scores])
        if len(self._later) < self._step():
            return
        wanted = 30.0 * self._size(period) / self.budget.number
        wanted = int(min(max(wanted, _FEWEST_RECENT), _MOST_RECENT))
        self._recent = np.concatenate([self._recent, self._later])[-wanted:]
        self._sorted, self._later = np.sort(self._recent), np.empty(0)


class AlertReason(NamedTuple):
    """A column that raised a score: its cell as given, and by how much."""

    column: str
    value: Any
    raises: float


def reasons_of(raises: Floats, columns: Sequence[str], cells: dict[str, Any]) -> list[AlertReason]:
    """Return the columns of a row that raised its score most, the first one most: O(features).

    `raises` is what each feature adds, by `OnlineRanker.raises` above a usual row: for a linear
    learner ``weight_j (x_j - usual_j)``, where usual is 0 for a scaled number, which is 0 at its
    running mean, and the share of rows with the value for a category. `columns` names the column
    of each feature. Columns that do not raise the score are left out.
    """
    raised: dict[str, float] = {}
    for name, amount in zip(columns, raises.tolist(), strict=True):
        raised[name] = raised.get(name, 0.0) + amount
    best = sorted((name for name in raised if raised[name] > 0.0), key=lambda name: -raised[name])
    return [AlertReason(name, cells[name], raised[name]) for name in best[:N_REASONS]]


def blocks_of(numbers: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the block of each record, from 1: one block has reasons by the same weights.

    >>> blocks_of(np.array([1, 100, 101, 1000, 1001, 2000, 2001]))
    array([ 0,  0,  1,  9, 10, 10, 11])
    """
    before = numbers - 1
    return np.where(before < LOOK_EVERY, before * 10 // LOOK_EVERY, 9 + before // LOOK_EVERY)


class ReasonWeights:
    """Weights that reasons are computed with: those of the learner when a block of records began.

    The weights of each row are gone when it turns out to be an alert. Blocks are fixed by the
    number of the record, not by the batch, so that reasons do not depend on how rows came.
    """

    def __init__(self) -> None:
        self._looks: list[tuple[int, Floats]] = []

    def look(self, block: int, learner: OnlineRanker) -> None:
        """Keep the weights for rows of a block, if it is a new one."""
        if not self._looks or block > self._looks[-1][0]:
            coef = learner.additive_weights() if learner.has_begun else np.empty(0)
            self._looks.append((block, coef))

    def at(self, number: int) -> Floats:
        """Return the weights for a record of the last batch, of the features born by then."""
        block = int(blocks_of(np.array(number)))
        return next(coef for known, coef in reversed(self._looks) if known <= block)

    def forget(self) -> None:
        """Keep only what the next batch may need."""
        del self._looks[:-1]


class SavedAlerts(NamedTuple):
    """State of the alerts in a checkpoint."""

    file: FileMark
    threshold: MovingThreshold
    weights: ReasonWeights


class AlertFile(GrowingFile):
    """Raises alerts within a budget and appends them to a file.

    The file has a row an alert: ``row`` (number in the stream, from 1), ``id`` and ``time`` as
    given, ``score``, its ``place`` among the last ``recent`` scores (1: higher than all), the
    ``threshold`` in force, ``file`` and ``line``, and the reasons: columns that raised the score
    most. JSON lines have reasons as a list of column, value and raises, CSV as text.

    `time_column` gives the day of each row; None where the budget is in rows. `saved` is the state
    to go on from. Raises `InputError` where a new file is not empty, or cannot be made.
    """

    def __init__(
        self,
        path: Path,
        budget: AlertBudget,
        time_column: str | None = None,
        saved: SavedAlerts | None = None,
    ) -> None:
        if saved is None and path.is_file() and path.stat().st_size:
            raise ErrorKind.EXISTING_FILE.error(
                f"{setting('alert_file', path)} is there already, and was not begun by this "
                "stream.",
                "Give another name, or remove it.",
            )
        saved = saved or SavedAlerts(FileMark(), MovingThreshold(budget), ReasonWeights())
        super().__init__(path, saved.file)
        self.threshold, self.weights = saved.threshold, saved.weights
        self._time_column = time_column

    def saved(self) -> SavedAlerts:
        """Return what a checkpoint keeps."""
        return SavedAlerts(self.mark, self.threshold, self.weights)

    def take(
        self,
        arrivals: Arrivals,
        X: Floats,
        scores: Floats,
        features: tuple[Feature, ...],
        raises: Raises,
    ) -> None:
        """Decide on the rows of a batch that have cells of their own, and write the alerts.

        `X` and `scores` are of these rows, and `features` those of the encoder.
        """
        cells = arrivals.rows.frame
        times = cells[self._time_column] if self._time_column in cells.columns else None
        decided = self.threshold.decide(scores, arrivals.days)
        columns = [feature.column for feature in features]
        alerts: list[dict[str, Any]] = []
        for row in np.flatnonzero(decided.is_alert).tolist():
            number = int(arrivals.numbers[arrivals.places[row]])
            own = {name: _plain(cells[name][row]) for name in dict.fromkeys(columns)}
            values = (
                number, arrivals.ids[row], None if times is None else _plain(times[row]),
                float(scores[row]), int(decided.places[row]), int(decided.recent[row]),
                float(decided.thresholds[row]), arrivals.rows.file, int(arrivals.rows.lines[row]),
            )  # fmt: skip
            reasons = reasons_of(raises(X[row], self.weights.at(number)), columns, own)
            alerts.append({**dict(zip(FIELDS, values, strict=True)), "reasons": reasons})
        if alerts:
            is_csv = self.path.suffix.lower() == ".csv"
            text = _as_csv(alerts, not self.mark.length) if is_csv else _as_json_lines(alerts)
            self.append(text, len(alerts))
        self.weights.forget()


def _plain(cell: Any) -> Any:
    """Return a cell as JSON can write it."""
    if isinstance(cell, dt.date):
        return cell.isoformat()
    if isinstance(cell, float) and cell != cell:
        return None
    return cell if cell is None or isinstance(cell, (str, int, float, bool)) else str(cell)


def _as_csv(alerts: list[dict[str, Any]], with_header: bool) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if with_header:
        writer.writerow([*FIELDS, *(f"reason_{k + 1}" for k in range(N_REASONS))])
    for alert in alerts:
        reasons = [""] * N_REASONS
        for place, (column, value, raises) in enumerate(alert["reasons"]):
            shown = "(empty)" if value is None else value
            shown = f"{shown:.6g}" if isinstance(shown, float) else shown
            reasons[place] = f"{column} = {shown} ({raises:+.3g})"
        writer.writerow([*(alert[name] for name in FIELDS), *reasons])
    return writable(text.getvalue())


def _as_json_lines(alerts: list[dict[str, Any]]) -> str:
    plain = [alert | {"reasons": [each._asdict() for each in alert["reasons"]]} for alert in alerts]
    return "".join(json.dumps(alert, ensure_ascii=False) + "\n" for alert in plain)
