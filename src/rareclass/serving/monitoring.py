"""Counts of the rows that a model scored: where their scores lie, and how their columns drift."""

from dataclasses import dataclass, field
from threading import Lock

import numpy as np
import polars as pl
from numpy.typing import NDArray

from rareclass.model.drift import AlertRate, InputSummary, alert_rate
from rareclass.model.model import Model
from rareclass.model.rare_class import RareDecision
from rareclass.report.columns_section import ColumnDrift, ColumnTracker

# Rows of a window: enough for the stability index over tenths, and few enough that yesterday's
# rows do not hide today's.
WINDOW_ROWS = 10_000
# Rows that are counted together: counting one alone takes longer than scoring it.
_LOOK_ROWS = 250


class ScoreCounts:
    """Counts scores between increasing edges. Safe to call from threads.

    Examples
    --------
    >>> counts = ScoreCounts(np.array([0.0, 1.0]))
    >>> counts.add(np.array([-1.0, 0.0, 0.5, 9.0]))
    >>> counts.up_to()
    [('0.0', 2), ('1.0', 3), ('+Inf', 4)]
    """

    def __init__(self, edges: NDArray[np.float64]) -> None:
        self._edges = edges
        self._counts = np.zeros(len(edges) + 1, np.int64)
        self._lock = Lock()

    def add(self, scores: NDArray[np.float64]) -> None:
        """Count scores; a score at an edge is below it."""
        places = np.searchsorted(self._edges, scores, side="left")
        counts = np.bincount(places, minlength=len(self._counts))
        with self._lock:
            self._counts += counts

    def up_to(self) -> list[tuple[str, int]]:
        """Number of scores up to each edge, as a Prometheus histogram has them."""
        with self._lock:
            counts = np.cumsum(self._counts).tolist()
        edges = [*map(repr, self._edges.tolist()), "+Inf"]
        return list(zip(edges, counts, strict=True))


@dataclass
class _Window:
    """Counts over consecutive rows."""

    columns: ColumnTracker
    seen: InputSummary = field(default_factory=InputSummary)
    n_alerts: int = 0

    def found(self) -> list[ColumnDrift]:
        n_rows = max(self.seen.n_rows, 1)
        cells = self.seen.unseen_values | self.seen.outside  # of one column: the greater count
        return self.columns.drifts({name: n / n_rows for name, n in cells.items()})


class InputDrift:
    """Drift of each column from training, over the latest rows of requests.

    Figures cover the last full window of `WINDOW_ROWS` rows, or the rows so far until one is full.
    Rows are held until 250 have come and `look` is called, or until figures are read. Safe to call
    from threads.
    """

    def __init__(self, content: Model) -> None:
        self._content = content
        self._threshold = None
        decision = content.decision
        if isinstance(decision, RareDecision):
            self._threshold = float(decision.thresholds[0])
        self._lock = Lock()
        self._add_lock = Lock()  # so that rows can be added during a look
        self._waiting: list[pl.DataFrame] = []
        self._n_waiting = self._n_alerts_waiting = 0
        self._window = self._empty()
        self._full: _Window | None = None

    def add(self, rows: pl.DataFrame, n_alerts: int) -> bool:
        """Hold typed rows, of which `n_alerts` were called rare; True when it is time to `look`."""
        with self._add_lock:
            self._waiting.append(rows)
            before = self._n_waiting
            self._n_waiting += rows.height
            self._n_alerts_waiting += n_alerts
            return before < _LOOK_ROWS <= self._n_waiting

    def look(self) -> None:
        """Count the rows held; some milliseconds for 1,000."""
        with self._lock:
            self._look()

    def columns(self) -> tuple[int, list[ColumnDrift]]:
        """Number of rows that the figures cover, and the drift of each column of the model."""
        with self._lock:
            self._look()
            window = self._full or self._window
            return window.seen.n_rows, window.found()

    def alerts(self) -> AlertRate | None:
        """Alert rate against the rate on held-out rows; None where that is not known."""
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
        self._content.count_unlike(rows, self._content.encode(rows), window.seen)
        if window.seen.n_rows >= WINDOW_ROWS:
            self._window, self._full = self._empty(), window

    def _empty(self) -> _Window:
        return _Window(ColumnTracker(self._content, with_copies=False))
