"""How the scores of a model lie, counted as they come."""

from threading import Lock

import numpy as np
from numpy.typing import NDArray


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
        """Take in scores; one at an edge is below it."""
        places = np.searchsorted(self._edges, scores, side="left")
        counts = np.bincount(places, minlength=len(self._counts))
        with self._lock:
            self._counts += counts

    def up_to(self) -> list[tuple[str, int]]:
        """Scores up to each edge, as Prometheus counts them."""
        with self._lock:
            counts = np.cumsum(self._counts).tolist()
        edges = [*map(repr, self._edges.tolist()), "+Inf"]
        return list(zip(edges, counts, strict=True))
