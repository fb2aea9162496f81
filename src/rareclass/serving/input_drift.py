"""How far the rows of requests have moved from those of training, by column."""

from copy import copy
from dataclasses import dataclass, field
from threading import Lock

import polars as pl

from rareclass.model.drift import AlertRate, alert_rate
from rareclass.model.model_file import ModelFile
from rareclass.model.scored import Seen, note_unlike
from rareclass.model.targets import decision_of
from rareclass.model.targets.rare_class import RareDecision
from rareclass.report.columns_now import ColumnsNow
from rareclass.report.summaries.column_drift import ColumnDrift

# Rows after which a column is looked at anew: enough for the stability index of tenths, and few
# enough that yesterday's rows do not hide today's.
WINDOW_ROWS = 10_000
# Rows that are looked at together: a look at one alone takes longer than its score.
_LOOK_ROWS = 250


@dataclass
class _Window:
    """What was met in some rows."""

    columns: ColumnsNow
    seen: Seen = field(default_factory=Seen)
    n_alerts: int = 0

    def found(self) -> list[ColumnDrift]:
        n_rows = max(self.seen.n_rows, 1)
        cells = self.seen.unseen_values | self.seen.outside  # of one column: the greater count
        return self.columns.found({name: n / n_rows for name, n in cells.items()}, {})


class InputDrift:
    """Counts what is unlike training in the latest rows of requests.

    Figures are of the last full window of `WINDOW_ROWS` rows, of those so far until it is full.
    Rows are held until some 250 have come, and `look` is called, or somebody asks. Safe to call
    from threads.
    """

    def __init__(self, content: ModelFile) -> None:
        self._content = content
        self._threshold = None
        decision = decision_of(content.model, content.metadata)
        if isinstance(decision, RareDecision):
            self._threshold = float(decision.thresholds[0])
        self._lock = Lock()
        self._add_lock = Lock()  # so that rows can be added during a look
        self._waiting: list[pl.DataFrame] = []
        self._n_waiting = self._n_alerts_waiting = 0
        self._window, self._full = self._empty(), None  # type: tuple[_Window, _Window | None]

    def add(self, rows: pl.DataFrame, n_alerts: int) -> bool:
        """Take in typed rows, so many of which were called rare; whether it is time to `look`."""
        with self._add_lock:
            self._waiting.append(rows)
            before = self._n_waiting
            self._n_waiting += rows.height
            self._n_alerts_waiting += n_alerts
            return before < _LOOK_ROWS <= self._n_waiting

    def look(self) -> None:
        """Count the rows that wait: some milliseconds for 1,000."""
        with self._lock:
            self._look()

    def columns(self) -> tuple[int, list[ColumnDrift]]:
        """The rows that figures are of, and the columns that the model looks at."""
        with self._lock:
            self._look()
            window = self._full or self._window
            return window.seen.n_rows, window.found()

    def alerts(self) -> AlertRate | None:
        """Alerts beside those of the rows held out of training; None where these are not known."""
        with self._lock:
            self._look()
            window = self._full or self._window
            if self._threshold is None:
                return None
            held_out = self._content.held_out
            return alert_rate(held_out, self._threshold, window.n_alerts, window.seen.n_rows)

    def _look(self) -> None:
        with self._add_lock:
            waiting, n_alerts = self._waiting, self._n_alerts_waiting
            self._waiting, self._n_waiting, self._n_alerts_waiting = [], 0, 0
        if not waiting:
            return
        rows, window = pl.concat(waiting, rechunk=True), self._window
        window.n_alerts += n_alerts
        window.columns.add(rows)
        window.seen.n_rows += rows.height
        encoded = None
        if hasattr(self._content.model, "outside"):  # the model knows its words, not the encoder
            encoded = copy(self._content.encoder).transform(rows)
        note_unlike(self._content, rows, encoded, window.seen)
        if window.seen.n_rows >= WINDOW_ROWS:
            self._window, self._full = self._empty(), window

    def _empty(self) -> _Window:
        return _Window(ColumnsNow(self._content, with_copies=False))
