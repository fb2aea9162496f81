"""A training table in the encodings that members ask for, each made once."""

from typing import Any

import numpy as np

from rareclass.encoding.table_statistics import TableStatistics
from rareclass.encoding.typed_table import TypedTable
from rareclass.encoding.views import VIEWS


class TrainingViews:
    """Views of the training rows, fitted as they are asked for.

    What a view knows of the labels is out of fold: no row's own label is among its features. The
    rows are encoded anew for each round of folds, while new rows are encoded by the views of the
    first round, which know all labels.
    """

    def __init__(
        self,
        table: TypedTable,
        is_rare: np.ndarray,
        weight: np.ndarray | None,
        folds: list[np.ndarray],
        absolute_time: bool = False,
    ) -> None:
        self.table, self.is_rare, self.weight, self.folds = table, is_rare, weight, folds
        self.absolute_time = absolute_time
        self.views: dict[str, Any] = {}
        self._statistics: list[tuple[TableStatistics, Any] | None] = [None] * len(folds)
        self._encoded: dict[tuple[str, int], Any] = {}

    @property
    def statistics(self) -> TableStatistics:
        """What all views know of the table."""
        return self._statistics_of(0)[0]

    def encoded(self, name: str, number: int = 0) -> Any:
        """The training rows for a view, out of the folds of a round."""
        statistics, table = self._statistics_of(number)
        if not statistics.category_names_:
            number = 0  # nothing in it depends on the folds
        if (name, number) not in self._encoded:
            view = VIEWS[name]()
            fold = self.folds[number]
            statistics, table = self._statistics_of(number)
            rows = view.fit_transform(table, self.is_rare, self.weight, fold, statistics)
            self._encoded[name, number] = rows
            if number == 0:
                self.views[name] = view
        return self._encoded[name, number]

    def forget(self, number: int) -> None:
        """Let go of the encoded rows of a round."""
        for key in [key for key in self._encoded if key[1] == number]:
            del self._encoded[key]

    def _statistics_of(self, number: int) -> tuple[TableStatistics, Any]:
        known = self._statistics[number]
        if known is None:
            statistics = TableStatistics(self.absolute_time)
            fold = self.folds[number]
            rows = statistics.fit_encode(self.table, self.is_rare, self.weight, fold)
            known = self._statistics[number] = statistics, rows
        return known
