"""Constraints on recall and on the false-positive rate: one order statistic answers each exactly.

Both measures only grow as the threshold falls, so testing one threshold after the other, each by
its exact binomial test, needs no correction for their number: the first threshold that breaks the
constraint is a fixed one, and its test errs with the chance stated. (The order statistic of a
tolerance interval: Wilks 1941.)
"""

from dataclasses import dataclass

import numpy as np

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.exact_bounds import (
    chance_of_at_least,
    chance_of_at_most,
    lower_bound,
    upper_bound,
)
from rareclass.decide.rules.held_out import HeldOut
from rareclass.parameters import check_number

ORDER_STATISTIC = "exact order statistic"
HELD_OUT = "held-out rows, no guarantee"
# Shares and chances that are equal on paper differ by rounding.
_EQUAL = 1e-12
_UP = 1.0 + 1e-9


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
        share, trials = held.recalls(), held.rare_trials
        hits = share * trials
        kept = share >= self.share - _EQUAL
        if confidence is not None:
            kept = chance_of_at_least(hits, trials, self.share) <= (1.0 - confidence) * _UP
        allowed = np.flatnonzero(kept)
        met = len(allowed) > 0
        if met:
            precision = held.precisions(prevalence)[allowed]
            cut = int(allowed[np.flatnonzero(precision >= precision.max() - _EQUAL)[0]])
        else:  # no held-out rare row missed is the closest there is
            cut = int(np.argmax(held.rare >= held.n_rare * (1.0 - _EQUAL)))
        if confidence is None:
            return Found(cut, met, float(share[cut]), self.share, HELD_OUT)
        bound = float(lower_bound(hits[cut], trials, 1.0 - confidence))
        return Found(cut, met, bound, self.share, ORDER_STATISTIC, guaranteed=met)


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
        share, trials = held.false_positive_rates(), held.majority_trials
        hits = share * trials
        kept = share <= self.share + _EQUAL
        if confidence is not None:
            kept = chance_of_at_most(hits, trials, self.share) <= (1.0 - confidence) * _UP
        met = bool(kept[0])
        # None: no false positive among the held-out rows is the closest there is.
        cut = int(np.flatnonzero(kept if met else held.majority <= 0)[-1])
        if confidence is None:
            return Found(cut, met, float(share[cut]), self.share, HELD_OUT)
        bound = float(upper_bound(hits[cut], trials, 1.0 - confidence))
        return Found(cut, met, bound, self.share, ORDER_STATISTIC, guaranteed=met)
