"""The training rows that members and their combination are judged on."""

from typing import NamedTuple, Self

import numpy as np

from rareclass.ensemble.training_rows import TrainingRows
from rareclass.estimators.search import Scoring
from rareclass.folds.majority_part import draw_majority

# Majority rows that every member scores out of fold, at most: more would hardly be told apart
# better, and cost time that learning can use.
MOST_MAJORITY = 100_000


class HeldOut(NamedTuple):
    """Labels and weights of the training rows, and those of them that are judged on.

    `is_rare` and `weight` (None: every row counts once) have an entry a training row; weights are
    those of judging, under which the rows `tested`, row numbers, stand for all that folds hold out.
    """

    is_rare: np.ndarray
    weight: np.ndarray | None
    tested: np.ndarray

    @classmethod
    def of(cls, rows: TrainingRows, seed: int) -> "HeldOut":
        """All rows that a fold holds out, or the rare ones and 100,000 of the others."""
        tested = np.flatnonzero(rows.fold >= 0)
        is_rare, weight = rows.is_rare[tested], rows.weight
        every = cls(rows.is_rare, weight, tested)
        if len(tested) - int(is_rare.sum()) <= MOST_MAJORITY:
            return every
        return every.thinned(is_rare, MOST_MAJORITY, seed)[1]

    def thinned(self, kept: np.ndarray, n_others: int, seed: int) -> tuple[np.ndarray, Self]:
        """Positions among the tested rows, and these rows: those `kept` and a draw of the others.

        The draw stands for all of the others by its weight.
        """
        places, weights = draw_majority(kept, self.tested_weight, n_others, seed)
        of_row = np.zeros(len(self.is_rare))
        of_row[self.tested[places]] = weights
        return places, self._replace(weight=of_row, tested=self.tested[places])

    def measure(self, objective: Scoring, scores: np.ndarray, rows: np.ndarray) -> float:
        """The objective of scores of rows; NaN where they hold one class only."""
        y = self.is_rare[rows]
        if y.all() or not y.any():
            return float("nan")
        return objective(y, scores, None if self.weight is None else self.weight[rows])

    @property
    def tested_weight(self) -> np.ndarray | None:
        """Weights of the rows `tested`, if there are any."""
        return None if self.weight is None else self.weight[self.tested]
