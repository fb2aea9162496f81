"""Constraints and aims of a threshold, each with the cut of held-out scores that it chooses.

Recall and the false-positive rate only grow as the threshold falls, so testing one threshold after
the other, each by its exact binomial test, needs no correction for their number: the first
threshold that breaks the constraint is a fixed one, and its test errs with the chance stated. (The
order statistic of a tolerance interval: Wilks 1941.) Precision and numbers of alerts have
procedures of their own, see `AtLeastPrecision`, `AtMostAlerts` and `AtMostAlertsADay`.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from scipy import special

from rareclass.decide.held_out_cuts import HeldOutCuts
from rareclass.errors import ErrorKind, InputError
from rareclass.metrics.interval import (
    chance_of_at_least,
    chance_of_at_most,
    lower_bound,
    upper_bound,
)
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number, check_whole, is_number

HELD_OUT = "held-out rows, no guarantee"
ORDER_STATISTIC = "exact order statistic"
SEQUENCE = "learn then test, fixed sequence"
BAND = "simultaneous band of exact bounds"
EXCHANGEABLE_ROWS = "exact order statistic of rows to come"
EXCHANGEABLE_DAYS = "exact order statistic of days"
POISSON = "exact order statistic of Poisson arrivals"
TWO_CLASSES = "exact bounds of both classes"
# Shares and chances that are equal on paper differ by rounding.
_EQUAL = 1e-12
_UP = 1.0 + 1e-9
# Each rank that is tested is so many times the one before.
_STEP = 1.05
# The first rank has this part of the chance of error; the rest is for beginning anew at each
# doubling, where the top of the list was unlucky or is no good.
_FIRST, _DOUBLING = 0.7, 2.0
Share = float | None  # strictly between 0 and 1; None where it is not stated
# A number for every row, or the name of a column of `costs`.
Cost = float | str


class ChosenCut(NamedTuple):
    """Cut that a constraint or aim chooses.

    ``bound`` is what the confidence vouches for of the constrained measure (without a confidence
    or a constraint: what the held-out rows have), ``met`` whether that is enough, ``wanted`` what
    was asked for, None for an aim without a constraint.
    """

    cut: int
    met: bool
    bound: float
    wanted: float | None
    procedure: str
    guaranteed: bool = False


class Constraint(ABC):
    """Settings of a constraint or aim, checked when they are made; subclasses are dataclasses."""

    formula: ClassVar[str]  # with the names of the settings in braces

    @property
    def words(self) -> str:
        """The constraint or aim as a formula."""
        return self.formula.format(**vars(self))

    @abstractmethod
    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the best cut among those that meet the constraint, or the closest one."""


@dataclass(frozen=True)
class AtLeastRecall(Constraint):
    """``recall >= share``; of the thresholds that keep it, the one of highest precision."""

    formula: ClassVar[str] = "recall >= {share:g}"
    share: float

    def __post_init__(self) -> None:
        check_number("min_recall", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut of best precision among those that are certain of their recall."""
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
            return ChosenCut(cut, met, float(share[cut]), self.share, HELD_OUT)
        bound = float(lower_bound(hits[cut], trials, 1.0 - confidence))
        return ChosenCut(cut, met, bound, self.share, ORDER_STATISTIC, guaranteed=met)


@dataclass(frozen=True)
class AtMostFalsePositiveRate(Constraint):
    """``false-positive rate <= share``; of the thresholds that keep it, the lowest."""

    formula: ClassVar[str] = "false-positive rate <= {share:g}"
    share: float

    def __post_init__(self) -> None:
        check_number("max_fpr", self.share, "between 0 and 1", 0.0, 1.0)

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut whose bound keeps the constraint."""
        share, trials = held.false_positive_rates(), held.majority_trials
        hits = share * trials
        kept = share <= self.share + _EQUAL
        if confidence is not None:
            kept = chance_of_at_most(hits, trials, self.share) <= (1.0 - confidence) * _UP
        met = bool(kept[0])
        # None: no false positive among the held-out rows is the closest there is.
        cut = int(np.flatnonzero(kept if met else held.majority <= 0)[-1])
        if confidence is None:
            return ChosenCut(cut, met, float(share[cut]), self.share, HELD_OUT)
        bound = float(upper_bound(hits[cut], trials, 1.0 - confidence))
        return ChosenCut(cut, met, bound, self.share, ORDER_STATISTIC, guaranteed=met)


@dataclass(frozen=True)
class AtLeastPrecision(Constraint):
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

    formula: ClassVar[str] = "precision >= {share:g}"
    share: float

    def __post_init__(self) -> None:
        check_number("min_precision", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut whose precision is vouched for, or the one that comes closest."""
        if confidence is None:
            precision = np.nan_to_num(held.precisions(prevalence), nan=-1.0)
            kept = np.flatnonzero(precision >= self.share - _EQUAL)
            cut = int(kept[-1]) if len(kept) else int(np.argmax(precision))
            return ChosenCut(cut, len(kept) > 0, float(precision[cut]), self.share, HELD_OUT)
        error = 1.0 - confidence
        if prevalence is not None:
            bound = precision_band(held, error, prevalence)
            kept = np.flatnonzero(bound >= self.share)
            cut = int(kept[-1]) if len(kept) else int(np.argmax(bound))
            met = len(kept) > 0
            return ChosenCut(cut, met, float(bound[cut]), self.share, BAND, guaranteed=met)
        kept = self._certified(held, error)
        if len(kept):  # vouched for is the share itself: its test says no more
            return ChosenCut(int(kept[-1]), True, self.share, self.share, SEQUENCE, guaranteed=True)
        cuts = np.flatnonzero(np.diff(held.rare, prepend=0.0) > 0)  # the rest are no better
        bound = lower_bound(
            held.trials[cuts] * held.precisions(None)[cuts], held.trials[cuts], error
        )
        best = int(np.argmax(bound))
        return ChosenCut(int(cuts[best]), False, float(bound[best]), self.share, SEQUENCE)

    def _certified(self, held: HeldOutCuts, error: float) -> np.ndarray:
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


def precision_band(held: HeldOutCuts, error: float, prevalence: float) -> FloatArray:
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


@dataclass(frozen=True)
class AtMostAlerts(Constraint):
    r"""At most `number` alerts in the next `rows` rows; the lowest threshold that keeps it.

    The confidence is that of the count itself: over held-out rows and rows to come together. Of n
    held-out rows and N to come, all drawn alike, the number of those to come that score above the
    (m + 1)-th highest held-out score is beta-binomial with (N, m + 1, n - m), whatever the
    distribution of scores. m is the greatest for which at most `number` has the confidence.

    With another prevalence the shares of both classes above a threshold are bounded exactly, and
    the count of a binomial beyond that: half of the chance of error for each.
    """

    formula: ClassVar[str] = "alerts <= {number} in {rows} rows"
    number: int
    rows: int

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)
        check_whole("rows", self.rows)
        if self.number >= self.rows:
            raise ValueError(
                f"max_alerts={self.number} in rows={self.rows} is no constraint: give fewer alerts "
                "than rows."
            )

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut with few enough alerts."""
        rate = np.add(*held.shares(prevalence))
        if confidence is None:
            cut = int(np.flatnonzero(rate * self.rows <= self.number * (1.0 + 1e-12))[-1])
            return ChosenCut(cut, True, float(rate[cut] * self.rows), self.number, HELD_OUT)
        error = 1.0 - confidence
        n = float(held.trials[-1])
        most = None if prevalence is None else self._most(held, error, prevalence)

        def keeps(cut: int, number: int) -> bool:
            if most is None:
                chance = _beta_binomial(number, self.rows, float(rate[cut]) * n, n)
                return chance >= confidence
            over = 1.0 - chance_of_at_most(number, self.rows, most[cut])
            return bool(over <= error / 2.0)

        procedure = EXCHANGEABLE_ROWS if most is None else TWO_CLASSES
        return _lowest(keeps, len(rate) - 1, self.number, self.rows, procedure)

    def _most(self, held: HeldOutCuts, error: float, prevalence: float) -> FloatArray:
        """Upper bound of the share of rows above each cut."""
        rare, majority = (
            upper_bound(share * trials, trials, error / 4.0)
            for share, trials in (
                (held.recalls(), held.rare_trials),
                (held.false_positive_rates(), held.majority_trials),
            )
        )
        return np.minimum(prevalence * rare + (1.0 - prevalence) * majority, 1.0)


@dataclass(frozen=True)
class AtMostAlertsADay(Constraint):
    r"""At most `number` alerts on a day to come; the lowest threshold that keeps it.

    Given the time of each row. With D days, at least ``confidence / (1 - confidence)``, days are
    exchangeable and nothing else: each has a highest threshold that it would have exceeded `number`
    times, and of these the ``ceil(confidence (D + 1))``-th smallest keeps a new day within
    `number` with the confidence, however many rows a day has. With fewer days alerts are taken to
    arrive at random (Poisson): of those that score above the (m + 1)-th highest held-out score, the
    number on a new day is negative binomial, exactly. Days that differ by more than chance then
    break it more often.
    """

    formula: ClassVar[str] = "alerts <= {number} a day"
    number: int

    def __post_init__(self) -> None:
        check_whole("max_alerts", self.number)

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut with few enough alerts a day."""
        if held.days is None:
            raise InputError(
                f"{self.words}: which day each row is of is not known.",
                "Pass time=, one date a row, or ask for so many alerts in so many rows.",
                ErrorKind.MISSING_COLUMN,
            )
        if prevalence is not None:
            raise InputError(
                f"{self.words} at prevalence={prevalence:g}: the rows of a day are the held-out "
                "rows themselves.",
                "Leave the prevalence out, or ask for so many alerts in so many rows.",
                ErrorKind.COMBINATION,
            )
        n_days = int(held.days.max()) + 1
        above = held.rare + held.majority
        if confidence is None:
            kept = above <= self.number * n_days * (1.0 + 1e-12)
            cut = int(np.flatnonzero(kept)[-1])
            return ChosenCut(cut, True, float(above[cut] / n_days), self.number, HELD_OUT)
        place = math.ceil(confidence * (n_days + 1) - 1e-9)
        if place <= n_days:
            limit = np.sort(self._limits(held, n_days))[place - 1]
            lowest = np.concatenate([[np.inf], held.score[held.ends[1:] - 1]])  # above each cut
            cut = max(int(np.count_nonzero(lowest > limit)) - 1, 0)
            return ChosenCut(cut, True, self.number, self.number, EXCHANGEABLE_DAYS, True)
        share = n_days / (n_days + 1.0)

        def keeps(cut: int, number: int) -> bool:
            return bool(special.betainc(above[cut] + 1.0, number + 1.0, share) >= confidence)

        return _lowest(keeps, len(above) - 1, self.number, 2**40, POISSON)

    def _limits(self, held: HeldOutCuts, n_days: int) -> np.ndarray:
        """Of each day the highest score with more than `number` alerts at or above it."""
        limits = np.full(n_days, -np.inf)
        for day in range(n_days):
            own = np.flatnonzero(held.days == day)
            over = np.flatnonzero(np.cumsum(held.weight[own]) > self.number)
            if len(over):
                limits[day] = held.score[own[over[0]]]
        return limits


def _lowest(
    keeps: Callable[[int, int], bool], n_cuts: int, number: int, most: int, procedure: str
) -> ChosenCut:
    """The last of the cuts that keeps at most `number` alerts; `keeps` is of a cut and a number.

    Cuts that keep it come before those that do not. Where there is none: cut 0, no held-out alert,
    with the number that it does keep, at most `most`.
    """
    low, high = -1, n_cuts - 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if keeps(middle, number) else (low, middle - 1)
    if low >= 0:
        return ChosenCut(low, True, number, number, procedure, guaranteed=True)
    few, many = number, most
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (few, middle) if keeps(0, middle) else (middle, many)
    return ChosenCut(0, False, many, number, procedure)


def _beta_binomial(most: int, trials: int, above: float, n: float) -> float:
    """Chance of at most `most` of `trials` new rows above the (above + 1)-th highest of n."""
    j = np.arange(most + 1.0)
    log_choose = -np.log1p(trials) - special.betaln(trials - j + 1.0, j + 1.0)
    a, b = above + 1.0, n - above
    log_chance = log_choose + special.betaln(j + a, trials - j + b) - special.betaln(a, b)
    return float(np.exp(log_chance).sum())


@dataclass(frozen=True)
class LeastCost(Constraint):
    r"""The least expected cost a row.

    ``mean of fn_i (rare, no alert) + fp_i (majority, alert) + review_i (alert)``: a missed rare row
    costs `fn` (the amount at stake), a false alert `fp`, looking at any alert `review`. Each is a
    number, or the name of a column with a cost for every row.
    """

    formula: ClassVar[str] = "least cost with fp={fp}, fn={fn}, review={review}"
    fp: Cost = 0.0
    fn: Cost = 0.0
    review: Cost = 0.0

    def __post_init__(self) -> None:
        for name, value in (("fp", self.fp), ("fn", self.fn), ("review", self.review)):
            if not isinstance(value, str):
                check_number(
                    name, value, "a number of at least 0, or the name of a cost", ends="[)"
                )
        for name, others, always in (
            ("fn", (self.fn,), "no alert"),
            ("fp and review", (self.fp, self.review), "an alert for every row"),
        ):
            if all(is_number(value, ends="[]") and value == 0 for value in others):
                raise ValueError(f"{name} of 0: {always} costs least, whatever the scores.")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut of least cost on the held-out rows."""
        cost = self.costs(held, prevalence)
        equal = np.flatnonzero(cost <= cost.min() + _EQUAL * max(float(cost.max()), 1e-300))
        cut = held.widest(equal)
        return ChosenCut(cut, True, float(cost[cut]), None, HELD_OUT)

    def costs(self, held: HeldOutCuts, prevalence: float | None) -> FloatArray:
        """Mean cost a row of each cut, at the prevalence meant."""
        fp, fn, review = (self._column(held, cost) for cost in (self.fp, self.fn, self.review))
        if prevalence is None:
            prevalence = held.n_rare / (held.n_rare + held.n_majority)
        share = np.where(
            held.is_rare, prevalence / held.n_rare, (1.0 - prevalence) / held.n_majority
        )
        share = share * held.weight
        change = share * np.where(held.is_rare, review - fn, fp + review)
        none = float(share @ np.where(held.is_rare, fn, 0.0))
        return none + np.concatenate([[0.0], np.cumsum(change)])[held.ends]

    def _column(self, held: HeldOutCuts, cost: Cost) -> FloatArray:
        if not isinstance(cost, str):
            return np.full(len(held.score), float(cost))
        if cost not in held.costs:
            raise InputError(
                f"the cost {cost!r} is not among costs: {sorted(held.costs)}.",
                f"Pass costs={{{cost!r}: a number for each row}}.",
                ErrorKind.MISSING_COLUMN,
                column=cost,
            )
        return held.costs[cost]


@dataclass(frozen=True)
class GreatestFBeta(Constraint):
    r"""The greatest F-beta: ``(1 + beta**2) tp / ((1 + beta**2) tp + beta**2 fn + fp)``."""

    formula: ClassVar[str] = "greatest F{beta:g}"
    beta: float = 1.0

    def __post_init__(self) -> None:
        check_number("beta", self.beta)

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut of greatest F-beta on the held-out rows."""
        rare, majority = held.shares(prevalence)
        square = self.beta**2
        value = (1.0 + square) * rare / (rare + majority + square * rare[-1])
        cut = held.widest(np.flatnonzero(value >= value.max() - _EQUAL))
        return ChosenCut(cut, True, float(value[cut]), None, HELD_OUT)
