"""A training table in the encodings that members ask for, each made once."""

from typing import Any

from rareclass.encoding.table_statistics import EncodedTable, TableStatistics
from rareclass.encoding.views import VIEWS
from rareclass.ensemble.training_rows import TrainingRows


class TrainingViews:
    """Views of the training rows, fitted as they are asked for.

    What a view knows of the labels is out of fold: no row's own label is among its features. The
    rows are encoded anew for each round of folds, while new rows are encoded by the views of the
    first round, which know all labels.
    """

    def __init__(self, rows: TrainingRows, absolute_time: bool = False) -> None:
        self.table, self.is_rare, self.weight = rows.table, rows.is_rare, rows.weight
        self.folds = rows.folds
        self.views: dict[str, Any] = {}
        self._statistics = TableStatistics(absolute_time)
        self._tables: dict[int, EncodedTable] = {}
        self._encoded: dict[tuple[str, int], Any] = {}

    def encoded(self, name: str, number: int = 0) -> Any:
        """The training rows for a view, out of the folds of a round."""
        if number and not self.statistics.category_names_:
            number = 0  # nothing in it depends on the folds
        if (name, number) not in self._encoded:
            self._encoded[name, number] = self._encode(name, number)
        return self._encoded[name, number]

    def _encode(self, name: str, number: int) -> Any:
        statistics = self.statistics
        if name not in self.views:
            self.views[name] = VIEWS[name]()
            first = self.views[name].fit_transform(
                self._rows_of(0), self.is_rare, self.weight, self.folds[0], statistics
            )
            self._encoded[name, 0] = first
        if number == 0:
            return self._encoded[name, 0]
        return self.views[name].transform(self._rows_of(number))

    @property
    def statistics(self) -> TableStatistics:
        """What all views know of the table."""
        self._rows_of(0)
        return self._statistics

    def _rows_of(self, number: int) -> EncodedTable:
        """The training rows as the statistics encode them, out of the folds of a round."""
        if number not in self._tables:
            fold = self.folds[number]
            encode = (
                self._statistics.fit_encode if number == 0 else self._statistics.encode_out_of_fold
            )
            self._tables[number] = encode(self.table, self.is_rare, self.weight, fold)
        return self._tables[number]
