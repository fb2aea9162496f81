"""A constraint on precision: many thresholds are tested, and the answer holds for all of them."""

import math
from dataclasses import dataclass

import numpy as np

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.exact_bounds import chance_of_at_least, lower_bound
from rareclass.decide.rules.held_out import HeldOut
from rareclass.decide.rules.rates import HELD_OUT
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number

SEQUENCE = "learn then test, fixed sequence"
BAND = "simultaneous band of exact bounds"
# Each rank that is tested is so many times the one before.
_STEP = 1.05
# The first rank has this part of the chance of error; the rest is for beginning anew at each
# doubling, where the top of the list was unlucky or is no good.
_FIRST, _DOUBLING = 0.7, 2.0
_EQUAL = 1e-12


@dataclass(frozen=True)
class AtLeastPrecision:
    r"""``precision >= share``; of the thresholds that keep it, the one of highest recall.

    Learn then test: at ranks k of the scores' own order, from few rows on, the hypothesis that the
    precision above is less than `share` is tested by the exact binomial chance of as many rare
    rows among the k. Ranks are tested in order; one that fails costs its part of the chance of
    error, one that does not hands it on (the fallback procedure). The last that held is the answer.

    Ranks look at scores and never at labels. Given the number of rows above a fixed threshold,
    they are rare independently with its precision; where precision falls below `share` at one
    threshold and stays there, the answer errs with the chance stated at most, ties or not. Where
    precision crosses `share` several times, that is so for each rank and not proven for all.

    With another prevalence pi than the sample's the classes are judged apart: simultaneous bounds
    of recall R from below and of the false-positive rate F from above, for all thresholds at once
    (exact ones at some ranks, Bonferroni over those), in ``pi R / (pi R + (1 - pi) F)``. That needs
    no assumption, and asks for more rows.
    """

    share: float

    def __post_init__(self) -> None:
        check_number("min_precision", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    @property
    def words(self) -> str:
        """What is wanted, as a formula."""
        return f"precision >= {self.share:g}"

    def find(self, held: HeldOut, confidence: float | None, prevalence: float | None) -> Found:
        """The lowest cut whose precision is vouched for, or the one that comes closest."""
        if confidence is None:
            precision = np.nan_to_num(held.precisions(prevalence), nan=-1.0)
            kept = np.flatnonzero(precision >= self.share - _EQUAL)
            cut = int(kept[-1]) if len(kept) else int(np.argmax(precision))
            return Found(cut, len(kept) > 0, float(precision[cut]), self.share, HELD_OUT)
        error = 1.0 - confidence
        if prevalence is not None:
            bound = precision_band(held, error, prevalence)
            kept = np.flatnonzero(bound >= self.share)
            cut = int(kept[-1]) if len(kept) else int(np.argmax(bound))
            met = len(kept) > 0
            return Found(cut, met, float(bound[cut]), self.share, BAND, guaranteed=met)
        kept = self._certified(held, error)
        if len(kept):  # vouched for is the share itself: its test says no more
            return Found(int(kept[-1]), True, self.share, self.share, SEQUENCE, guaranteed=True)
        cuts = np.flatnonzero(np.diff(held.rare, prepend=0.0) > 0)  # the rest are no better
        bound = lower_bound(
            held.trials[cuts] * held.precisions(None)[cuts], held.trials[cuts], error
        )
        best = int(np.argmax(bound))
        return Found(int(cuts[best]), False, float(bound[best]), self.share, SEQUENCE)

    def _certified(self, held: HeldOut, error: float) -> np.ndarray:
        """Cuts whose hypothesis is rejected."""
        cuts, part = _ranks(held.trials, self.share, error)
        if not len(cuts):
            return cuts
        hits = held.trials[cuts] * held.precisions(None)[cuts]
        chance = chance_of_at_least(hits, held.trials[cuts], self.share)
        kept, level = [], 0.0
        for cut, p, own in zip(cuts, chance, part, strict=True):
            level += own
            if level > 0.0 and p <= level:
                kept.append(cut)
            else:
                level = 0.0
        return np.array(kept, dtype=int)


def _ranks(trials: FloatArray, share: float, error: float) -> tuple[np.ndarray, FloatArray]:
    """Cuts to test, and the part of the chance of error that each brings."""
    if share >= 1.0:  # no number of rows without a false one is evidence that there is none
        return np.empty(0, dtype=int), np.empty(0)
    first = max(1, math.ceil(math.log(_FIRST * error) / math.log(share) - 1e-9))
    ranks = [float(first)]
    while ranks[-1] < trials[-1]:
        ranks.append(max(ranks[-1] * _STEP, ranks[-1] + 1.0))
    cuts = np.unique(np.searchsorted(trials, ranks, side="right") - 1)
    cuts = cuts[trials[cuts] >= min(first, trials[-1])]
    if not len(cuts):
        return cuts, np.empty(0)
    doublings = np.floor(np.log(trials[cuts] / trials[cuts[0]]) / math.log(_DOUBLING) + 1e-9)
    begins = np.concatenate([[False], np.diff(doublings) > 0])
    part = np.where(begins, error * (1.0 - _FIRST) / max(int(begins.sum()), 1), 0.0)
    part[0] = error * _FIRST
    return cuts, part


def precision_band(held: HeldOut, error: float, prevalence: float) -> FloatArray:
    """A lower bound of the precision of every cut, all of them right at once but for `error`.

    Half of `error` is for each class, divided evenly over ranks at which its share is bounded
    exactly; between two of these the bound is that of the worse one.
    """
    recall = _from_below(held.recalls() * held.rare_trials, held.rare_trials, error / 2.0)
    missed = held.majority_trials - held.false_positive_rates() * held.majority_trials
    fpr = 1.0 - _from_below(missed, held.majority_trials, error / 2.0)
    return prevalence * recall / (prevalence * recall + (1.0 - prevalence) * fpr)


def _from_below(hits: FloatArray, trials: float, error: float) -> FloatArray:
    """Lower bounds of the share of hits, simultaneous over all cuts.

    Bounded are numbers of rows that are no hits: 0, 1, 2, ..., then each 1.3 times the one before.
    """
    steps = [0.0]
    while steps[-1] < trials:
        steps.append(max(steps[-1] + 1.0, math.floor(1.3 * steps[-1])))
    misses = np.minimum(steps, trials)
    bounds = lower_bound(trials - misses, trials, error / len(steps))
    return bounds[np.searchsorted(misses, trials - hits - 1e-9 * trials, side="left")]
