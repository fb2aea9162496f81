"""Rows known by id: those that wait for their label, and the labels learned last."""

from collections import OrderedDict
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NOT_YET = np.empty(0)


class HeldRow:
    """A row whose label is not known yet, encoded and scored as it was when it came."""

    __slots__ = ("arrival", "score", "vector")

    def __init__(
        self, arrival: int, vector: NDArray[np.float64] = _NOT_YET, score: float = 0.0
    ) -> None:
        self.arrival, self.vector, self.score = arrival, vector, score


class WaitingRows:
    """Rows by id until their label comes; when there are too many, the oldest is dropped.

    Memory is 8 bytes a feature of each of at most `capacity` rows, and about 300 more.

    Every operation costs O(1).

    >>> held = WaitingRows(capacity=2)
    >>> for number, name in enumerate("abc", start=1):
    ...     _ = held.hold(name, number)
    >>> "a" in held, held.take("b").arrival, len(held), held.n_dropped
    (False, 2, 1, 1)
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.n_dropped = 0
        self._rows: OrderedDict[str, HeldRow] = OrderedDict()

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: str) -> bool:
        return name in self._rows

    def hold(self, name: str, arrival: int) -> HeldRow:
        """Hold a row under an id that is not held; its vector and score may be set later.

        Raises `ValueError` when a row with this id waits already.
        """
        if name in self._rows:
            raise ValueError(f"id {name!r} is held already.")
        if len(self._rows) >= self.capacity:
            self._rows.popitem(last=False)
            self.n_dropped += 1
        row = self._rows[name] = HeldRow(arrival)
        return row

    def take(self, name: str) -> HeldRow | None:
        """Take out the row with this id; None when there is none."""
        return self._rows.pop(name, None)

    def to_state(self) -> dict[str, Any]:
        """Return ids, vectors and scores as columns, oldest row first."""
        rows = self._rows.values()
        vectors = [row.vector for row in rows]
        return {
            "capacity": self.capacity,
            "n_dropped": self.n_dropped,
            "ids": list(self._rows),
            "arrivals": np.array([row.arrival for row in rows], np.int64),
            "scores": np.array([row.score for row in rows], np.float64),
            "widths": np.array([len(vector) for vector in vectors], np.int64),
            "values": np.concatenate([_NOT_YET, *vectors]),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "WaitingRows":
        """Return the rows that `to_state` described."""
        held = cls(int(state["capacity"]))
        held.n_dropped = int(state["n_dropped"])
        ends = np.cumsum(state["widths"]).tolist()
        starts = [0, *ends]
        columns = (state["ids"], state["arrivals"].tolist(), state["scores"].tolist(), starts, ends)
        for name, arrival, score, start, end in zip(*columns, strict=False):
            held._rows[name] = HeldRow(arrival, np.array(state["values"][start:end]), score)
        return held


class LearnedLabels:
    """Labels of the last `capacity` ids, to notice a label that contradicts an earlier one.

    About 150 bytes an id; every operation costs O(1).

    >>> learned = LearnedLabels(capacity=2)
    >>> learned.add("a", rare=False, row=1), learned.add("a", rare=False, row=2)
    (None, None)
    >>> learned.add("a", rare=True, row=3)
    "id 'a' comes as rare at row 3 of the stream, and was learned from as not rare at row 2"
    """

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self._labels: OrderedDict[str, tuple[bool, int]] = OrderedDict()

    def add(self, name: str, rare: bool, row: int) -> str | None:
        """Remember the label of a row; return what it contradicts, in words."""
        words = self.contradiction(name, rare, row)
        self._labels.pop(name, None)
        self._labels[name] = (rare, row)
        if len(self._labels) > self.capacity:
            self._labels.popitem(last=False)
        return words

    def contradiction(self, name: str, rare: bool, row: int) -> str | None:
        """Return what the label of a row contradicts, in words; None where it agrees."""
        was, before = self._labels.get(name, (rare, row))
        if was == rare:
            return None
        now, then = ("rare", "not rare") if rare else ("not rare", "rare")
        return (
            f"id {name!r} comes as {now} at row {row:,} of the stream, and was learned from as "
            f"{then} at row {before:,}"
        )

    def to_state(self) -> dict[str, Any]:
        """Return ids, labels and rows as columns, oldest first."""
        labels = self._labels.values()
        return {
            "capacity": self.capacity,
            "ids": list(self._labels),
            "rare": np.array([rare for rare, _ in labels], np.bool_),
            "rows": np.array([row for _, row in labels], np.int64),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "LearnedLabels":
        """Return the labels that `to_state` described."""
        learned = cls(int(state["capacity"]))
        kept = zip(state["ids"], state["rare"].tolist(), state["rows"].tolist(), strict=True)
        learned._labels.update((name, (rare, row)) for name, rare, row in kept)
        return learned
