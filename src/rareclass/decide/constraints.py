"""Constraints and aims of a threshold, each with the cut of held-out scores that it chooses.

Recall and the false-positive rate only grow as the threshold falls, so testing one threshold after
the other, each by its exact binomial test, needs no correction for their number: the first
threshold that breaks the constraint is a fixed one, and its test errs with the chance stated. (The
order statistic of a tolerance interval: Wilks 1941.) Precision and numbers of alerts have
procedures of their own, see `sequence_bounds` and `rareclass.decide.alert_budget`.
"""

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rareclass.decide.threshold import nearest_cut
from rareclass.errors import ErrorKind, setting
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import (
    EQUAL,
    chance_of_at_least,
    chance_of_at_most,
    lower_bound,
    upper_bound,
)
from rareclass.metrics.scored_classes import FloatArray
from rareclass.parameters import check_number, is_number

HELD_OUT = "held-out rows, no guarantee"
ORDER_STATISTIC = "exact order statistic"
SEQUENCE = "fixed sequence of exact binomial tests"
BAND = "simultaneous band of exact bounds"
_UP = 1.0 + 1e-9
# Each rank that is tested is so many times the one before; the first has so many rows.
_STEP, _FIRST_RANK = 1.05, 6.0
# Part of the chance of error that is left for beginning anew, at each doubling of the ranks: where
# the top of the list was unlucky or is no good (docs/decisions/0031).
_PART = 0.6
# Held-out recall that a threshold has at least to be of use; what is guaranteed there is stated.
USEFUL_RECALL = 0.25
Share = float | None  # strictly between 0 and 1; None where it is not stated
# A number for every row, or the name of a column of `costs`.
Cost = float | str


class ChosenCut(NamedTuple):
    """Cut that a constraint or aim chooses.

    ``bound`` is what the confidence vouches for of the constrained measure (without a confidence
    or a constraint: what the held-out rows have), ``met`` whether that is enough, ``wanted`` what
    was asked for, None for an aim without a constraint. ``useful`` is what could be vouched for at
    a recall of `USEFUL_RECALL` or more, of a precision.
    """

    cut: int
    met: bool
    bound: float
    wanted: float | None
    procedure: str
    guaranteed: bool = False
    useful: float | None = None


class Constraint(ABC):
    """Settings of a constraint or aim, checked when they are made; subclasses are dataclasses."""

    formula: ClassVar[str]  # with the names of the settings in braces
    measure: ClassVar[str | None] = None  # that a constraint limits; None of an aim

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
    measure: ClassVar[str | None] = "recall"
    share: float

    def __post_init__(self) -> None:
        check_number("min_recall", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut of best precision among those that are certain of their recall."""
        share, trials = held.recalls(), held.rare_trials
        hits = share * trials
        kept = share >= self.share - EQUAL
        if confidence is not None:
            kept = chance_of_at_least(hits, trials, self.share) <= (1.0 - confidence) * _UP
        allowed = np.flatnonzero(kept)
        met = len(allowed) > 0
        if met:
            precision = held.precisions(prevalence)[allowed]
            cut = int(allowed[np.flatnonzero(precision >= precision.max() - EQUAL)[0]])
        else:  # no held-out rare row missed is the closest there is
            cut = int(np.argmax(held.rare >= held.n_rare * (1.0 - EQUAL)))
        if confidence is None:
            return ChosenCut(cut, met, float(share[cut]), self.share, HELD_OUT)
        bound = float(lower_bound(hits[cut], trials, 1.0 - confidence))
        return ChosenCut(cut, met, bound, self.share, ORDER_STATISTIC, guaranteed=met)


@dataclass(frozen=True)
class AtMostFalsePositiveRate(Constraint):
    """``false-positive rate <= share``; of the thresholds that keep it, the lowest."""

    formula: ClassVar[str] = "false-positive rate <= {share:g}"
    measure: ClassVar[str | None] = "false_positive_rate"
    share: float

    def __post_init__(self) -> None:
        check_number("max_fpr", self.share, "between 0 and 1", 0.0, 1.0)

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut whose bound keeps the constraint."""
        share, trials = held.false_positive_rates(), held.majority_trials
        hits = share * trials
        kept = share <= self.share + EQUAL
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

    The chosen cut is the lowest whose guaranteed precision (`sequence_bounds`) reaches `share`.
    Those bounds know nothing of `share`, so a greater share never gives more alerts, and neither
    does a greater confidence. Where no cut reaches it, the cut is the one that comes closest.

    With another prevalence pi than the sample's the classes are judged apart: simultaneous bounds
    of recall R from below and of the false-positive rate F from above, for all thresholds at once
    (exact ones at some ranks, Bonferroni over those), in ``pi R / (pi R + (1 - pi) F)``. That needs
    no assumption, and asks for more rows.
    """

    formula: ClassVar[str] = "precision >= {share:g}"
    measure: ClassVar[str | None] = "precision"
    share: float

    def __post_init__(self) -> None:
        check_number("min_precision", self.share, "above 0 and at most 1", 0.0, 1.0, "(]")

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the lowest cut whose precision is guaranteed, or the one that comes closest."""
        if confidence is None:
            bound, procedure = np.nan_to_num(held.precisions(prevalence), nan=-1.0), HELD_OUT
        elif prevalence is not None:
            bound, procedure = precision_band(held, 1.0 - confidence, prevalence), BAND
        else:
            bound, procedure = sequence_bounds(held, 1.0 - confidence), SEQUENCE
        met = bool(bound.max() >= self.share - EQUAL)
        reached = self.share if met else float(bound.max())
        cut = int(np.flatnonzero(bound >= reached - EQUAL)[-1])
        # Of the sequence the share itself is guaranteed: its test says no more.
        known = reached if procedure == SEQUENCE else float(bound[cut])
        guaranteed = met and confidence is not None
        useful = float(bound[held.recalls() >= USEFUL_RECALL].max())
        return ChosenCut(cut, met, known, self.share, procedure, guaranteed, useful)


def sequence_bounds(held: HeldOutCuts, error: float) -> FloatArray:
    r"""Guaranteed precision of every cut, by a fixed sequence of exact tests; 0 where none tests.

    Learn then test: ranks k of the scores' own order, each `_STEP` times the one before, are tested
    in order. The hypothesis that the precision above is less than p is tested by the exact binomial
    chance of as many rare rows among the k. A rank that fails loses its part of the chance of
    error, one that does not hands it on (the fallback procedure); ranks at each doubling bring a
    part of their own. The bound of a cut is the greatest p for which its hypothesis is rejected:
    over the ranks that a chain of tests may begin at, the greatest of the least lower bounds of the
    chain up to the cut.

    Ranks and parts look at scores only, never at labels, p or `error`. Given the number of rows
    above a fixed threshold, they are rare independently with its precision; where precision falls
    below p at one threshold and stays there, the answer errs with the chance stated at most, ties
    or not. Where precision crosses p several times, that is so for each rank and not proven for
    all. O(ranks x doublings) incomplete beta functions.
    """
    cuts, part = _ranks(held.ranks)
    trials = held.trials[cuts]
    hits = trials * held.precisions(None)[cuts]
    best = np.zeros(len(cuts))
    for first in np.flatnonzero(part):
        level = error * np.cumsum(part[first:])
        chain = np.minimum.accumulate(lower_bound(hits[first:], trials[first:], level))
        best[first:] = np.maximum(best[first:], chain)
    bounds = np.zeros(len(held.trials))
    bounds[cuts] = best
    return bounds


def _ranks(trials: FloatArray) -> tuple[np.ndarray, FloatArray]:
    """Cuts to test, and the part of the chance of error that each brings: all parts sum to 1."""
    n, begins = float(trials.max()), 1.0 - _PART
    ranks, part = [min(_FIRST_RANK, n)], [begins]
    doubled = 2.0 * ranks[0]
    while ranks[-1] < n:
        ranks.append(min(max(ranks[-1] * _STEP, ranks[-1] + 1.0), n))
        part.append(0.0)
        if ranks[-1] >= doubled:
            doubled, begins = 2.0 * doubled, begins * _PART
            part[-1] = begins
    part[-1] += 1.0 - sum(part)
    # The first cut that has so many rows above it; several ranks may be of one cut.
    places = np.searchsorted(np.maximum.accumulate(trials), np.array(ranks) - 1e-9, side="left")
    cuts, number = np.unique(places, return_inverse=True)
    return cuts, np.bincount(number, part).astype(np.float64)


def precision_band(held: HeldOutCuts, error: float, prevalence: float) -> FloatArray:
    """A lower bound of the precision of every cut, all of them right at once but for `error`.

    Half of `error` is for each class, divided evenly over ranks at which its share is bounded
    exactly; between two of these the bound is that of the worse one.
    """
    (found, n_rare), (false, n_majority) = held.tests
    recall = _from_below(found, n_rare, error / 2.0)
    fpr = 1.0 - _from_below(n_majority - false, n_majority, error / 2.0)
    return prevalence * recall / (prevalence * recall + (1.0 - prevalence) * fpr)


def _from_below(hits: FloatArray, trials: float, error: float) -> FloatArray:
    """Lower bounds of the share of hits, simultaneous over all cuts; of steps of the misses."""
    steps = [0.0]
    while steps[-1] < trials:
        steps.append(max(steps[-1] + 1.0, math.floor(1.3 * steps[-1])))
    misses = np.minimum(steps, trials)
    bounds = lower_bound(trials - misses, trials, error / len(steps))
    return bounds[np.searchsorted(misses, trials - hits - 1e-9 * trials, side="left")]


def check_cost(name: str, cost: Any) -> None:
    """Raise `InputError` for a cost that is neither a number of at least 0 nor a name."""
    if not isinstance(cost, str) and not is_number(cost, ends="[)"):
        given = setting("costs", f"{name}={cost}", elsewhere=f"{name}={cost!r}")
        raise ErrorKind.SETTING.error(f"{given} must be a number of at least 0, or a name.")


@dataclass(frozen=True)
class LeastCost(Constraint):
    r"""The least expected cost a row.

    ``mean of fn_i (rare, no alert) + fp_i (majority, alert) + review_i (alert)``: a missed rare row
    costs `fn` (the amount at stake), a false alert `fp`, looking at any alert `review`. Each is a
    number, or the name of a column with a cost for every row.
    """

    formula: ClassVar[str] = "least cost, {costs}"
    fp: Cost
    fn: Cost
    review: Cost

    def __post_init__(self) -> None:
        for name, value in (("fp", self.fp), ("fn", self.fn), ("review", self.review)):
            check_cost(name, value)
        for name, others, always in (
            ("fn", (self.fn,), "no alert"),
            ("fp and review", (self.fp, self.review), "an alert for every row"),
        ):
            if all(is_number(value, ends="[]") and value == 0 for value in others):
                fault = f"{name} of 0: {always} costs least, whatever the scores."
                raise ErrorKind.SETTING.error(fault, "Give a cost above 0.")

    @property
    def words(self) -> str:
        """The aim with its costs, such as "least cost, fp=5, fn=amount"."""
        shown = [
            f"{name}={value if isinstance(value, str) else format(value, 'g')}"
            for name, value in vars(self).items()
            if value
        ]
        return self.formula.format(costs=", ".join(shown))

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut of least cost on the held-out rows."""
        cost = self.costs(held, prevalence)
        equal = np.flatnonzero(cost <= cost.min() + EQUAL * max(float(cost.max()), 1e-300))
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
        return none + held.above(change)

    def _column(self, held: HeldOutCuts, cost: Cost) -> FloatArray:
        if not isinstance(cost, str):
            return np.full(len(held.score), float(cost))
        if cost not in held.costs:
            raise ErrorKind.MISSING_COLUMN.error(
                f"the cost {cost!r} is not among costs: {sorted(held.costs)}.",
                f"Pass costs={{{cost!r}: a number for each row}}.",
                column=cost,
            )
        return held.costs[cost]


@dataclass(frozen=True)
class AsManyAsRare(Constraint):
    """Cut with as many alerts as rare rows, as nearly as ties allow: precision is recall there.

    The default of models: of labels only the number of rare rows has a part in it, so that the
    held-out rows do not flatter it (docs/decisions/0057 has it beside others).
    """

    formula: ClassVar[str] = "as many alerts as rare rows"

    def find(self, held: HeldOutCuts, confidence: Share, prevalence: Share) -> ChosenCut:
        """Return the cut whose share of alerts is nearest to that of rare rows; never none."""
        rare, majority = held.shares(prevalence)
        wanted, alerts = float(rare[-1]), rare + majority
        cut = 1 + nearest_cut(alerts[1:], wanted)
        return ChosenCut(cut, True, float(alerts[cut] / wanted), None, HELD_OUT)


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
        cut = held.widest(np.flatnonzero(value >= value.max() - EQUAL))
        return ChosenCut(cut, True, float(value[cut]), None, HELD_OUT)
