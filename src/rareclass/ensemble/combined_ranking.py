"""The ranking of a `RareClassifier`: members with weight, the views that they see, their scales.

A model file holds this alone, and opening one imports neither scikit-learn nor a member's library.
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from rareclass.ensemble.which_class import LN_10, WhichClass
from rareclass.rows.memory import Workers, count_threads
from rareclass.stored import KeptPart

# A RareClassifier is made, and its settings are read, without what reads tables and scores them.
if TYPE_CHECKING:
    from rareclass.encoding.table_statistics import TableStatistics
    from rareclass.encoding.typed_table import TypedTable
    from rareclass.ensemble.score_functions import FalsePositiveRate, LearnedMember
    from rareclass.tables.columns import Column

# Rows that a thread scores at a time: this bounds the memory of their views.
_SCORED_ROWS = 20_000


class CombinedRanking(KeptPart):
    """Members with weight, the views that they see, and the scale of their combination.

    Attributes
    ----------
    members_ : list of LearnedMember
    scale_ : FalsePositiveRate
        From the summed rarity of the members to the false-positive rate of the combination.
    statistics_ : TableStatistics
    views_ : dict of views
        By name, those that a member sees.
    columns_ : list of Column
        Every column of the training table.
    feature_importances_ : ndarray of shape (n_columns,)
    pos_label_ : label or tuple of labels
        The rare class; a tuple of several rare classes, in order.
    which_class_ : WhichClass or None
        What tells several rare classes apart; None where one class is rare.
    """

    members_: "list[LearnedMember]"
    scale_: "FalsePositiveRate"
    statistics_: "TableStatistics"
    views_: dict[str, Any]
    columns_: "list[Column]"
    feature_importances_: np.ndarray
    pos_label_: Any
    which_class_: WhichClass | None
    n_jobs: int | None

    @property
    def has_several(self) -> bool:
        """True where ``pos_label_`` is a tuple of several rare classes."""
        return isinstance(self.pos_label_, tuple)

    def score_samples(self, X: Any) -> np.ndarray:
        """Score of every row: the common logarithm of one over its false-positive rate.

        Higher is more like the rare class: about one majority row in 10 ** s scores s or more. X
        has the columns of training, in any order where they have names. Raises `InputError` where a
        column is missing, or a cell cannot be read as in training.
        """
        rarity = self._rarity(self._typed(X), [self.members_])
        return -self.scale_(rarity[:, 0]) / LN_10

    def score_and_classes(self, X: Any) -> tuple[np.ndarray, np.ndarray]:
        """Return `score_samples` and, of several rare classes, `class_probabilities`, at once.

        X as of `score_samples`, or a typed table. With one rare class its probability is 1.
        """
        rarity = self._rarity(self._typed(X), self._ensembles())
        scores = -self.scale_(rarity[:, 0]) / LN_10
        if self.which_class_ is None:
            return scores, np.ones((len(scores), 1))
        return scores, self.which_class_.probabilities(rarity[:, 1:])

    def class_probabilities(self, X: Any) -> np.ndarray:
        """Probability of each rare class, were the row rare: (n_rows, n_rare_classes), sums of 1.

        Columns are in the order of ``pos_label_``. Raises `AttributeError` where one class is rare.
        """
        table = self._typed(X)
        if not self.has_several:
            raise AttributeError("one class is rare: there are no others that a row could be of.")
        return self.score_and_classes(table)[1]

    def outside(self, X: Any) -> dict[str, int]:
        """Cells of each column that are unlike any of training: beyond its numbers, unseen words.

        Counts by column name, of columns that have some. Such cells count as the nearest number of
        training, or as the commonest word.
        """
        return self.statistics_.outside(self._typed(X))

    def _typed(self, X: Any) -> "TypedTable":
        from rareclass.encoding.typed_table import TypedTable, in_memory, read_table

        return X if isinstance(X, TypedTable) else read_table(in_memory(X), self.columns_)

    def _ensembles(self) -> "list[list[LearnedMember]]":
        """Return the members of the ranking, and those of each of several rare classes."""
        return [self.members_, *(self.which_class_.ensembles if self.which_class_ else [])]

    def _rarity(self, table: "TypedTable", ensembles: "list[list[LearnedMember]]") -> np.ndarray:
        """Return the summed rarity of every row, for each ensemble."""
        from rareclass.ensemble.score_functions import summed_rarity

        def of_rows(rows: "TypedTable", n_jobs: int | None) -> np.ndarray:
            return summed_rarity(ensembles, self.views_, self.statistics_.encode(rows), n_jobs)

        if table.n_rows <= _SCORED_ROWS:
            return of_rows(table, self.n_jobs)
        parts = [slice(k, k + _SCORED_ROWS) for k in range(0, table.n_rows, _SCORED_ROWS)]
        # A thread a part: within one, encoding would keep a single thread busy.
        at_once = max(1, min(count_threads(self.n_jobs), len(parts)))
        found = Workers().map(lambda part: of_rows(table.take(part), 1), parts, at_once)
        return np.concatenate(list(found))
