"""Constraints on recall and on the false-positive rate: one order statistic answers each exactly.

Both measures only grow as the threshold falls, so testing one threshold after the other, each by
its exact binomial test, needs no correction for their number: the first threshold that breaks the
constraint is a fixed one, and its test errs with the chance stated. (The order statistic of a
tolerance interval: Wilks 1941.)
"""

from dataclasses import dataclass

import numpy as np

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.exact_bounds import lower_bound, upper_bound
from rareclass.decide.rules.held_out import HeldOut
from rareclass.parameters import check_number

ORDER_STATISTIC = "exact order statistic"
HELD_OUT = "held-out rows, no guarantee"
# Shares and bounds that are equal on paper differ by rounding.
_EQUAL = 1e-12


@dataclass(frozen=True)
class AtLeastRecall:
    """``recall >= share``; of the thresholds that keep it, the one of highest precision."""

    share: float

    def __post_init__(self) -> None:
        check_number("min_recall", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"recall >= {self.share:g}"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The lowest part of the list is certain first: the best precision below its end."""
        procedure, bound = HELD_OUT, held.recalls()
        if confidence is not None:
            procedure = ORDER_STATISTIC
            hits = bound * held.rare_trials
            bound = lower_bound(hits, held.rare_trials, 1.0 - confidence)
        allowed = np.flatnonzero(bound >= self.share - _EQUAL)
        if not len(allowed):  # no held-out rare row missed is the closest there is
            cut = int(np.argmax(held.rare >= held.n_rare * (1.0 - _EQUAL)))
            return Found(cut, False, float(bound[cut]), self.share, procedure)
        precision = held.precisions(prevalence)[allowed]
        best = allowed[np.flatnonzero(precision >= precision.max() - _EQUAL)[0]]
        guaranteed = confidence is not None
        return Found(int(best), True, float(bound[best]), self.share, procedure, guaranteed)


@dataclass(frozen=True)
class AtMostFalsePositiveRate:
    """``false-positive rate <= share``; of the thresholds that keep it, the lowest."""

    share: float

    def __post_init__(self) -> None:
        check_number("max_fpr", self.share, "between 0 and 1", 0.0, 1.0)

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"false-positive rate <= {self.share:g}"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The lowest threshold whose bound keeps the constraint."""
        procedure, bound = HELD_OUT, held.false_positive_rates()
        if confidence is not None:
            procedure = ORDER_STATISTIC
            hits = bound * held.majority_trials
            bound = upper_bound(hits, held.majority_trials, 1.0 - confidence)
        allowed = np.flatnonzero(bound <= self.share + _EQUAL)
        met = len(allowed) > 0
        # None: no false positive among the held-out rows is the closest there is.
        cut = int(allowed[-1]) if met else int(np.flatnonzero(held.majority <= 0)[-1])
        guaranteed = met and confidence is not None
        return Found(cut, met, float(bound[cut]), self.share, procedure, guaranteed)
