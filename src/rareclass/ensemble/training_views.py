"""A training table in the encodings that members ask for, each made once."""

from functools import cached_property
from typing import Any

from rareclass.encoding.table_statistics import EncodedTable, TableStatistics
from rareclass.encoding.views import VIEWS
from rareclass.ensemble.training_rows import TrainingRows


class TrainingViews:
    """Views of the training rows, fitted as they are asked for.

    What a view knows of the labels is out of fold: no row's own label is among its features. New
    rows are encoded by what all labels say.
    """

    def __init__(self, rows: TrainingRows, absolute_time: bool = False) -> None:
        self.table, self.is_rare, self.weight = rows.table, rows.is_rare, rows.weight
        self.fold, self.is_drawn = rows.fold, rows.is_drawn
        self.views: dict[str, Any] = {}
        self._statistics = TableStatistics(absolute_time)
        self._encoded: dict[str, Any] = {}

    def encoded(self, name: str) -> Any:
        """The training rows for a view."""
        if name not in self._encoded:
            self.views[name] = VIEWS[name]()
            self._encoded[name] = self.views[name].fit_transform(
                self._table, self.is_rare, self.weight, self.fold, self._statistics
            )
        return self._encoded[name]

    @property
    def statistics(self) -> TableStatistics:
        """What all views know of the table."""
        _ = self._table
        return self._statistics

    @cached_property
    def _table(self) -> EncodedTable:
        """The training rows as the statistics encode them."""
        return self._statistics.fit_encode(
            self.table, self.is_rare, self.weight, self.fold, self.is_drawn
        )
