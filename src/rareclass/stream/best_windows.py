"""Whether a stream ranks worse than it did: its last window beside the best before."""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rareclass.metrics import precision_at_k, roc_auc, roc_auc_interval
from rareclass.metrics.interval import Interval, difference_interval, wilson_interval
from rareclass.stream.window import Window

# Smaller windows are not compared.
FEWEST_ROWS = 100
# Chance that a report of a stream that stays as it is tells of a fall, at most.
ERROR = 0.01
MEASURES = ("auc", "precision_at_k")


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


class _Best(NamedTuple):
    value: float
    rows: int
    scores: NDArray[np.float64]
    rare: NDArray[np.bool_]


class BestWindows:
    r"""The best of the windows that lie end to end: of AUC and of precision at k.

    The best of many windows is high by chance as well: the last is compared with each of the K
    windows before, and the interval of the difference has the level ``1 - ERROR / K``
    (Bonferroni). Of AUC it comes from DeLong's intervals of both windows, of precision at k from
    Wilson's for k trials, by Zou's method, the windows being independent. Best windows are kept
    whole: 9 bytes a row of each.
    """

    def __init__(self) -> None:
        self._best: dict[str, _Best] = {}
        self._n_windows = 0
        self._looked_at = 0  # labelled rows when a window was last considered

    def look(self, window: Window, n_added: int) -> None:
        """Consider the window, when it has just filled again and before rows are added."""
        if n_added == self._looked_at or window.size < max(FEWEST_ROWS, window.top):
            return
        self._looked_at = n_added
        scores, rare = window.rows()
        if rare.all() or not rare.any():
            return
        self._n_windows += 1
        at_top = precision_at_k(rare, scores, window.top)
        for measure, value in (("auc", roc_auc(rare, scores)), ("precision_at_k", at_top)):
            if measure not in self._best or value > self._best[measure].value:
                self._best[measure] = _Best(value, n_added, scores.copy(), rare.copy())

    def falls(self, window: Window) -> list[Fall]:
        """What the rows now in a full window are worse at; none before there is one to compare."""
        scores, rare = window.rows()
        if len(rare) < window.size or rare.all() or not rare.any() or not self._n_windows:
            return []
        level = 1.0 - ERROR / self._n_windows
        found = []
        for measure, best in self._best.items():
            now = _interval(measure, scores, rare, window.top, level)
            if now.value >= best.value:
                continue
            before = _interval(measure, best.scores, best.rare, window.top, level)
            fall = difference_interval(before, now, 0.0)
            if fall.low > 0.0:
                found.append(Fall(measure, now.value, best.value, best.rows, fall.low, fall.high))
        return found

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: arrays and values that JSON can write."""
        return {
            "n_windows": self._n_windows,
            "looked_at": self._looked_at,
            "best": {measure: best._asdict() for measure, best in self._best.items()},
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "BestWindows":
        """Return the windows that `to_state` described."""
        windows = cls()
        windows._n_windows = int(state["n_windows"])
        windows._looked_at = int(state["looked_at"])
        windows._best = {measure: _Best(**best) for measure, best in state["best"].items()}
        return windows


def _interval(
    measure: str, scores: NDArray[np.float64], rare: NDArray[np.bool_], k: int, level: float
) -> Interval:
    if measure == "auc":
        return roc_auc_interval(rare, scores, level=level)
    return wilson_interval(precision_at_k(rare, scores, k), k, level)
