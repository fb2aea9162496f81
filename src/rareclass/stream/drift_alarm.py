"""Whether a stream has begun to drift: columns or a measure that had not at the last look."""

from collections.abc import Sequence
from typing import Any

from rareclass.metrics.column_drift import ColumnShift
from rareclass.stream.best_windows import Fall

# Share of the columns that begin to move together when a stream drifts (docs/decisions/0039).
ENOUGH_COLUMNS = 0.2


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
        begins = n_new > 0 and n_new >= ENOUGH_COLUMNS * n_columns
        begins = begins or bool(measures - self._fell)
        self._moved, self._fell = columns, measures
        if begins:
            self.count, self.last = self.count + 1, rows
        return begins

    def to_state(self) -> dict[str, Any]:
        """Return what `from_state` needs: values that JSON can write."""
        return {
            "count": self.count,
            "last": self.last,
            "moved": sorted(self._moved),
            "fell": sorted(self._fell),
        }

    @classmethod
    def from_state(cls, state: dict[str, Any]) -> "DriftAlarm":
        """Return the alarm that `to_state` described."""
        alarm = cls()
        alarm.count, alarm.last = state["count"], state["last"]
        alarm._moved, alarm._fell = set(state["moved"]), set(state["fell"])
        return alarm
