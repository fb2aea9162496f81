"""Rules that a threshold keeps, and the chosen threshold with what held-out rows say of it.

`ThresholdRule` makes one threshold. `ReviewBand` makes two: above the one a row is blocked, between
them it is reviewed, below both it passes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.alert_budget import AtMostAlerts, AtMostAlertsAPeriod, PeriodBudget
from rareclass.decide.chosen_threshold import ChosenThreshold, chosen_by_hand, describe
from rareclass.decide.constraints import (
    HELD_OUT,
    AsManyAsRare,
    AtLeastPrecision,
    AtLeastRecall,
    AtMostFalsePositiveRate,
    Constraint,
    Cost,
    GreatestFBeta,
    LeastCost,
)
from rareclass.decide.threshold import balanced_accuracy_threshold
from rareclass.errors import ErrorKind, setting
from rareclass.findings import Finding, FindingKind
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.parameters import check_number, check_prevalence
from rareclass.stored import plain_data

BLOCK, REVIEW, PASS = "block", "review", "pass"


@dataclass(frozen=True)
class ThresholdRule:
    """A constraint that a threshold keeps on rows to come, with a confidence, or an aim.

    Made by its class methods. `choose` finds the threshold on held-out scores.

    Held-out rows are a sample: the threshold that just keeps a constraint on them breaks it on
    fresh rows about every second time, and more often than that when it is the best of many. Here
    the constraint holds on fresh rows in a share `confidence` of samples at least, by a procedure
    that is exact at any number of rows (Clopper-Pearson, order statistics, a fixed sequence of
    tests), for rows drawn alike and a model that did not see them.

    Parameters
    ----------
    constraint : Constraint
        As the class methods make it.
    confidence : float or None, default=0.9
        Strictly between 0 and 1. None: kept on the held-out rows, no guarantee. Aims
        (`least_cost`, `f_beta`, `as_many_as_rare`) have none either way.
    prevalence : float or None, default=None
        Share of rare rows where the threshold will be used, which precision, alerts and cost
        depend on; None: as among the held-out rows. Strictly between 0 and 1.

    Raises
    ------
    ValueError
        On numbers outside their range, or that contradict each other.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(5000) < 100
    >>> scores = random.normal(size=5000) + 3 * y
    >>> chosen = ThresholdRule.min_precision(0.5).choose(y, scores)
    >>> chosen.met, chosen.alerts, chosen.precision.value > 0.5
    (True, 148.0, True)
    >>> ThresholdRule.max_alerts(20, rows=1000).choose(y, scores).alerts
    73.0
    """

    constraint: Constraint
    confidence: float | None = 0.9
    prevalence: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.constraint, Constraint):
            raise ErrorKind.SETTING.error(
                f"constraint={self.constraint!r} is none: use a class method, such as "
                "ThresholdRule.min_precision(0.3)."
            )
        if self.confidence is not None:
            check_number("confidence", self.confidence, "None or between 0 and 1", high=1.0)
        check_prevalence(self.prevalence)
        if self.prevalence is not None and isinstance(self.constraint, AtMostAlertsAPeriod):
            raise ErrorKind.COMBINATION.error(
                f"{self.words} and {setting('prevalence', self.prevalence)} contradict each other: "
                "the rows of a period are the held-out rows themselves, whose share is another.",
                "Leave the prevalence out, or give the alerts per number of rows.",
            )

    @classmethod
    def min_precision(
        cls, share: float, *, confidence: float | None = 0.9, prevalence: float | None = None
    ) -> Self:
        """The highest recall with ``precision >= share``; see `AtLeastPrecision`."""
        return cls(AtLeastPrecision(share), confidence, prevalence)

    @classmethod
    def min_recall(
        cls, share: float, *, confidence: float | None = 0.9, prevalence: float | None = None
    ) -> Self:
        """The highest precision with ``recall >= share``.

        At confidence c that needs ``log(1 - c) / log(share)`` rare rows: 22 for .9 at .9.
        """
        return cls(AtLeastRecall(share), confidence, prevalence)

    @classmethod
    def max_fpr(
        cls, share: float, *, confidence: float | None = 0.9, prevalence: float | None = None
    ) -> Self:
        """The highest recall with ``false-positive rate <= share``."""
        return cls(AtMostFalsePositiveRate(share), confidence, prevalence)

    @classmethod
    def max_alerts(
        cls,
        number: int,
        *,
        rows: int | None = None,
        per: str = "day",
        confidence: float | None = 0.9,
        prevalence: float | None = None,
    ) -> Self:
        """The lowest threshold with at most `number` alerts in the next `rows` rows.

        Without `rows`: in an hour, day or week to come (`per`), which needs the time of each row.
        The count itself is what the confidence is about: of the batches (or days) to come, one in
        ten may have more at 0.9, on the mean over samples.
        """
        constraint: Constraint = AtMostAlertsAPeriod(number, per)
        if rows is not None:
            constraint = AtMostAlerts(number, rows)
        return cls(constraint, confidence, prevalence)

    @classmethod
    def least_cost(
        cls, fp: Cost = 0.0, fn: Cost = 0.0, review: Cost = 0.0, *, prevalence: float | None = None
    ) -> Self:
        """The least expected cost: `fn` a missed rare row, `fp` a false alert, `review` any alert.

        Each a number, or the name of one of `costs`, with a number for every row.
        """
        return cls(LeastCost(fp, fn, review), None, prevalence)

    @classmethod
    def f_beta(cls, beta: float = 1.0, *, prevalence: float | None = None) -> Self:
        """The greatest F-beta; beta above 1 weighs recall more."""
        return cls(GreatestFBeta(beta), None, prevalence)

    @classmethod
    def as_many_as_rare(cls, *, prevalence: float | None = None) -> Self:
        """Raise as many alerts as there are rare rows, where precision is recall: the default."""
        return cls(AsManyAsRare(), None, prevalence)

    @property
    def words(self) -> str:
        """The constraint or aim as a formula."""
        return self.constraint.words

    def choose(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        costs: Mapping[str, Any] | None = None,
        time: Any = None,
        groups: Any = None,
    ) -> ChosenThreshold:
        """The threshold for scores of rows that the model did not learn from.

        Parameters
        ----------
        y : array-like of shape (n,)
            True or 1 where the row is rare.
        scores : array-like of shape (n,)
            Higher means rarer.
        sample_weight : array-like of shape (n,), optional
            Copies that each row stands for, each as independent as a row; 0 leaves it out. Weights
            that are not whole, or of a thinned majority (multiples of 10 where one row in 10 was
            drawn), count as so many rows as have the same variance (``(sum w)**2 / sum w**2``), and
            the guarantee is approximate.
        costs : mapping of str to array-like of shape (n,), optional
            Costs of each row, by the names that `least_cost` was given.
        time : array-like of shape (n,), optional
            When each row was: for alerts a day, and where days may differ in alerts for `rows`.
        groups : array-like of shape (n,), optional
            Rows of equal group move together (a customer): they count as so many independent rows
            as their scores and labels have in common, and the guarantee is approximate.

        Returns
        -------
        ChosenThreshold
            Also where no threshold meets the constraint: then the one that comes closest, with
            ``met`` False and how far it is. O(n log n) time, O(n) memory.

        Raises
        ------
        ValueError
            On one class, NaN scores, negative weights, columns of different lengths.
        InputError
            Where all scores are tied, a time is none, or costs or times are missing.
        """
        held = HeldOutCuts.read(y, scores, sample_weight, time, costs, groups)
        found = self.constraint.find(held, self.confidence, self.prevalence)
        chosen = describe(held, found, self.words, self.confidence, self.prevalence)
        limit = self.constraint
        chosen = replace(chosen, measure=limit.measure, batch=vars(limit).get("rows"))
        if not isinstance(limit, AtMostAlertsAPeriod) or held.time is None:
            return chosen
        allowed = None if self.confidence is None else 1.0 - self.confidence
        budget = PeriodBudget(limit.number, limit.period, allowed=allowed)
        alerts = np.where(held.score > chosen.threshold, held.weight, 0.0)
        return replace(chosen, budget=budget.on(held.time, alerts))


def default_thresholds(
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    prevalence: float | None = None,
    groups: Any = None,
) -> list[ChosenThreshold]:
    """Thresholds where nothing was asked for: the default, and two to take in its place.

    As many alerts as rare rows; the greatest F1; the best balanced accuracy. None where all scores
    are tied or all rows are of one class.
    """
    rare, value = np.asarray(y) == 1, np.asarray(scores, dtype=float)
    if not rare.any() or rare.all() or value.min() == value.max():
        return []
    rules = (ThresholdRule.as_many_as_rare, ThresholdRule.f_beta)
    rows = rare, value, sample_weight
    found = [each(prevalence=prevalence).choose(*rows, groups=groups) for each in rules]
    balanced = balanced_accuracy_threshold(*rows)
    other = chosen_by_hand(balanced, *rows, prevalence, groups)
    return [*found, replace(other, rule="best balanced accuracy", procedure=HELD_OUT)]


@dataclass(frozen=True)
class ChosenBand:
    """A threshold for blocking and one for review, which is lower unless a finding says not.

    `block` and `review` are about all rows above their own threshold: those of `review` include
    what is blocked.
    """

    block: ChosenThreshold
    review: ChosenThreshold

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings of both thresholds."""
        return self.block.findings + self.review.findings

    def decide(self, scores: ArrayLike) -> NDArray[np.str_]:
        """ "block", "review" or "pass" for each score."""
        value = np.asarray(scores, dtype=float)
        held_up = np.where(value > self.review.threshold, REVIEW, PASS)
        return np.where(value > self.block.threshold, BLOCK, held_up)

    def approximately(self, reason: str) -> Self:
        """Return both thresholds with guarantees that are not exact."""
        return replace(
            self, block=self.block.approximately(reason), review=self.review.approximately(reason)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return both thresholds as plain numbers."""
        return plain_data(self)


@dataclass(frozen=True)
class ReviewBand:
    """Rules for two thresholds: rows above that of `block` are blocked, above `review` looked at.

    Such as ``ReviewBand(block=ThresholdRule.min_precision(0.9),
    review=ThresholdRule.min_recall(0.95))``. The rows that `review` is about include those that
    are blocked. Where its threshold is not below the other's, blocked rows are as `block` has them
    and there is nothing to review: a finding says so.

    Each rule has its own confidence; both hold together with that of the two less one (.8 for .9
    and .9) at least.

    Examples
    --------
    >>> import numpy as np
    >>> random = np.random.default_rng(0)
    >>> y = np.arange(5000) < 100
    >>> scores = random.normal(size=5000) + 3 * y
    >>> band = ReviewBand(ThresholdRule.min_precision(0.7), ThresholdRule.min_recall(0.9))
    >>> chosen = band.choose(y, scores)
    >>> [(chosen.decide(scores) == word).sum().item() for word in ("block", "review", "pass")]
    [79, 232, 4689]
    """

    block: ThresholdRule
    review: ThresholdRule

    def __post_init__(self) -> None:
        for name, rule in (("block", self.block), ("review", self.review)):
            if not isinstance(rule, ThresholdRule):
                raise ErrorKind.SETTING.error(f"{name}={rule!r} must be a ThresholdRule.")

    def choose(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        **columns: Any,
    ) -> ChosenBand:
        """Both thresholds; parameters as of `ThresholdRule.choose`."""
        rows = y, scores, sample_weight
        block, review = (rule.choose(*rows, **columns) for rule in (self.block, self.review))
        if review.threshold < block.threshold:
            return ChosenBand(block, review)
        values = {"block": block.threshold, "review": review.threshold}
        finding = Finding(FindingKind.NOTHING_TO_REVIEW, values, {"review": "a weaker rule"})
        return ChosenBand(block, replace(review, findings=(*review.findings, finding)))
