"""Alerts of a stream: which rows, why, and the file that they are written to."""

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.encoding.streams import Feature
from rareclass.errors import ErrorKind, InputError
from rareclass.online.ranker import OnlineRanker
from rareclass.stream.growing_file import GrowingFile
from rareclass.stream.options import AlertBudget
from rareclass.stream.reading import Arrivals, days_of_cells, plain_cell
from rareclass.stream.threshold import NO_DAY, MovingThreshold
from rareclass.tables.cells import writable

N_REASONS = 3
# Records between two looks at the weights: each costs as much as some ten rows. Among the first
# LOOK_EVERY records, while the weights are young, it is a tenth of that.
LOOK_EVERY = 1_000
FIELDS = ("row", "id", "time", "score", "place", "recent", "threshold", "file", "line")
# What each feature of a row does to its score, given the row and weights.
Raises = Callable[[NDArray[np.float64], NDArray[np.float64]], NDArray[np.float64]]


class Reason(NamedTuple):
    """A column that raised a score: its cell as given, and by how much."""

    column: str
    value: Any
    raises: float


def reasons_of(
    raises: NDArray[np.float64],
    columns: Sequence[str],
    cells: dict[str, Any],
    most: int = N_REASONS,
) -> list[Reason]:
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
    return [Reason(name, cells[name], raised[name]) for name in best[:most]]


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
        self._looks: list[tuple[int, NDArray[np.float64]]] = []

    def look(self, block: int, learner: OnlineRanker) -> None:
        """Keep the weights for rows of a block, if it is a new one."""
        if not self._looks or block > self._looks[-1][0]:
            coef = learner.additive_weights() if learner.has_begun else np.empty(0)
            self._looks.append((block, coef))

    def at(self, number: int) -> NDArray[np.float64]:
        """Return the weights for a record of the last batch, of the features born by then."""
        block = int(blocks_of(np.array(number)))
        return next(coef for known, coef in reversed(self._looks) if known <= block)

    def forget(self) -> None:
        """Keep only what the next batch may need."""
        del self._looks[:-1]


class SavedAlerts(NamedTuple):
    """State of the alerts in a checkpoint."""

    n_alerts: int
    length: int  # of their file
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
            raise InputError(
                f"--alerts {path} is there already, and was not begun by this stream.",
                "Give another name, or remove it.",
                ErrorKind.EXISTING_FILE,
            )
        saved = saved or SavedAlerts(0, 0, MovingThreshold(budget), ReasonWeights())
        super().__init__(path, saved.length)
        self.count, self.threshold, self.weights = saved.n_alerts, saved.threshold, saved.weights
        self._time_column = time_column
        self._is_csv = path.suffix.lower() == ".csv"

    def saved(self) -> SavedAlerts:
        """Return what a checkpoint keeps."""
        return SavedAlerts(self.count, self.length, self.threshold, self.weights)

    def take(
        self,
        arrivals: Arrivals,
        X: NDArray[np.float64],
        scores: NDArray[np.float64],
        features: tuple[Feature, ...],
        raises: Raises,
    ) -> None:
        """Decide on the rows of a batch that have cells of their own, and write the alerts.

        `X` and `scores` are of these rows, and `features` those of the encoder.
        """
        cells = arrivals.rows.columns
        times, days = cells.get(self._time_column or ""), None
        if self.threshold.budget.rows is None:
            n_rows = arrivals.rows.n_rows
            days = np.full(n_rows, NO_DAY) if times is None else days_of_cells(times)
        decided = self.threshold.decide(scores, days)
        columns = [feature.column for feature in features]
        alerts: list[dict[str, Any]] = []
        for row in np.flatnonzero(decided.is_alert).tolist():
            number = int(arrivals.numbers[arrivals.places[row]])
            own = {name: plain_cell(cells[name][row]) for name in dict.fromkeys(columns)}
            values = (
                number, arrivals.ids[row], None if times is None else plain_cell(times[row]),
                float(scores[row]), int(decided.places[row]), int(decided.recent[row]),
                float(decided.thresholds[row]), arrivals.rows.file, int(arrivals.rows.lines[row]),
            )  # fmt: skip
            reasons = reasons_of(raises(X[row], self.weights.at(number)), columns, own)
            alerts.append({**dict(zip(FIELDS, values, strict=True)), "reasons": reasons})
        if alerts:
            self.append(self._as_csv(alerts) if self._is_csv else _as_json_lines(alerts))
            self.count += len(alerts)
        self.weights.forget()

    def _as_csv(self, alerts: list[dict[str, Any]]) -> str:
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        if not self.length:
            writer.writerow([*FIELDS, *(f"reason_{k + 1}" for k in range(N_REASONS))])
        for alert in alerts:
            said = [f"{each.column} = {_shown(each.value)} ({each.raises:+.3g})"
                    for each in alert["reasons"]]  # fmt: skip
            cells = [*(alert[name] for name in FIELDS), *said, *[""] * (N_REASONS - len(said))]
            writer.writerow(cells)
        return writable(text.getvalue())


def _as_json_lines(alerts: list[dict[str, Any]]) -> str:
    plain = [alert | {"reasons": [each._asdict() for each in alert["reasons"]]} for alert in alerts]
    return "".join(json.dumps(alert, ensure_ascii=False) + "\n" for alert in plain)


def _shown(value: Any) -> str:
    if value is None:
        return "(empty)"
    return f"{value:.6g}" if isinstance(value, float) else str(value)
