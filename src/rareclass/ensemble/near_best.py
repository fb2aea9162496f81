"""Members that are near the best one, and members that their first fold shows not to be.

A member is near where its objective on held-out rows is within the 80 percent confidence interval
of the best one's. One that will not come near is found out on the first fold that it learned:
a paired test of it and of the best says that it is farther behind than that.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rareclass.ensemble.training_rows import HeldOutRows
from rareclass.estimators.search import Scoring
from rareclass.metrics import Interval, interval, paired_difference, roc_auc
from rareclass.metrics.named_measures import MeasureName

# Level of the confidence interval of the best member that the others must reach.
_LEVEL = 0.8
# Level of the interval of the difference on the first fold. A member as good as the best is taken
# to be behind in one of twenty cases.
_DIFFERENCE_LEVEL = 0.8
# With fewer rare rows in the first fold nothing is told from it.
_LEAST_RARE = 3


class Behind(Exception):  # noqa: N818 (nothing went wrong)
    """A member will not come near the best one."""


def interval_of(
    objective: Scoring, held_out: HeldOutRows, scores: np.ndarray, level: float = _LEVEL
) -> Interval:
    """Return the confidence interval that says who is near the best.

    That of AUC where AUC is the objective, else of average precision, which looks at the top as
    other objectives do.
    """
    measure: MeasureName = "roc_auc" if objective is roc_auc else "average_precision"
    is_rare = held_out.is_rare[held_out.tested]
    return interval(measure, is_rare, scores, held_out.tested_weight, level)


class Leader(NamedTuple):
    """The best member so far: its held-out scores (n_rows,), objective, and the least near it."""

    held_out: np.ndarray
    value: float
    low: float

    @classmethod
    def of(
        cls,
        scores: Sequence[np.ndarray],
        held_out: HeldOutRows,
        objective: Scoring,
        leader: "Leader | None" = None,
    ) -> "Leader | None":
        """Return the best of a leader and of held-out scores; None where no rare row is held out.

        Of equals the first. O(n log n) for each of the scores.
        """
        if not held_out.is_rare[held_out.tested].any():
            return leader
        for each in scores:
            bound = interval_of(objective, held_out, each[held_out.tested])
            if leader is None or bound.value > leader.value:
                leader = cls(each, bound.value, bound.low)
        return leader

    def is_ahead_of(
        self,
        scores: np.ndarray,
        rows: np.ndarray,
        is_rare: np.ndarray,
        weight: np.ndarray | None,
        objective: Scoring,
    ) -> bool:
        """Return whether a member with these scores of some rows (numbers) will not come near.

        `is_rare` and `weight` are those of the rows. O(n log n).
        """
        leading = self.held_out[rows]
        known = ~(np.isnan(leading) | np.isnan(scores))
        if not (_LEAST_RARE <= np.count_nonzero(is_rare[known]) < np.count_nonzero(known)):
            return False
        difference = paired_difference(
            is_rare[known],
            scores[known],
            leading[known],
            "roc_auc" if objective is roc_auc else "average_precision",
            sample_weight=None if weight is None else weight[known],
            level=_DIFFERENCE_LEVEL,
        )
        return difference.high < self.low - self.value
