"""Rules that a threshold keeps, and the chosen threshold with what held-out rows say of it.

`ThresholdRule` makes one threshold. `ReviewBand` makes two: above the one a row is blocked, between
them it is reviewed, below both it passes.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from rareclass.decide.constraints import (
    AtLeastPrecision,
    AtLeastRecall,
    AtMostAlerts,
    AtMostAlertsADay,
    AtMostFalsePositiveRate,
    ChosenCut,
    Constraint,
    Cost,
    GreatestFBeta,
    LeastCost,
)
from rareclass.decide.held_out_cuts import HeldOutCuts
from rareclass.findings import Finding, FindingKind
from rareclass.metrics.interval import Interval, exact_interval
from rareclass.parameters import check_number

BLOCK, REVIEW, PASS = "block", "review", "pass"
# Of the intervals, where the rule states no confidence.
_LEVEL = 0.95


@dataclass(frozen=True)
class ChosenThreshold:
    """Calling ``score > threshold`` rare, and how that does on the held-out rows.

    Attributes
    ----------
    threshold : float
        Between two held-out scores; -inf calls every row rare.
    rule : str
        What was wanted, such as "precision >= 0.3".
    met : bool
        Whether the rule's constraint is met: with the confidence, where it states one.
    confidence : float or None
        Share of held-out samples of which the constraint holds on fresh rows, at least.
    guaranteed : bool
        Whether that confidence is exact for scores and rows drawn alike. Not for weights that are
        no whole copies, nor without a confidence or a constraint, nor where `DecisionClassifier`
        learns from all rows after it has chosen.
    procedure : str
        How the threshold was found, and what vouches for it.
    bound : float
        What is vouched for of the measure that the rule is about; for an aim, the held-out value.
    wanted : float or None
        What the constraint asks of it.
    shortfall : float
        By how much `bound` misses `wanted`; 0 where it is met.
    alerts, rows : float
        Held-out rows above the threshold, and all of them; weights where there are some.
    precision, recall, false_positive_rate : Interval
        Held-out value and its exact (Clopper-Pearson) interval at `level`, of this threshold as if
        it had been named before. Precision is at `prevalence`.
    level : float
        Of the intervals: `confidence`, or 0.95.
    prevalence : float
        Share of rare rows that precision is meant for.
    n_rare : float
        Held-out rare rows.
    findings : tuple of Finding
        What to know before relying on it: kinds "constraint not met" (with wanted, bound,
        shortfall), "no held-out alerts", "guarantee is approximate".
    """

    threshold: float
    rule: str
    met: bool
    confidence: float | None
    guaranteed: bool
    procedure: str
    bound: float
    wanted: float | None
    shortfall: float
    alerts: float
    rows: float
    precision: Interval
    recall: Interval
    false_positive_rate: Interval
    level: float
    prevalence: float
    n_rare: float
    findings: tuple[Finding, ...] = ()

    def approximately(self, reason: str) -> Self:
        """Return the threshold with an inexact guarantee, and the finding that says why."""
        if not self.guaranteed:
            return self
        finding = Finding(FindingKind.APPROXIMATE, {"reason": reason})
        return replace(self, guaranteed=False, findings=(*self.findings, finding))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as dicts, lists and numbers, for JSON."""
        given = asdict(self)
        for name in ("precision", "recall", "false_positive_rate"):
            given[name] = given[name]._asdict()
        given["findings"] = [
            {"kind": one.kind, "values": dict(one.values), "remedy": dict(one.remedy)}
            for one in self.findings
        ]
        return given

    def says(self) -> str:
        """Describe the threshold in a sentence or two."""
        with_confidence = ""
        if self.met and self.confidence is not None:
            about = "" if self.guaranteed else "about "
            with_confidence = f" at confidence {about}{self.confidence:g}"
        precision, recall = (
            f"{each.value:.3f} ({each.low:.3f} to {each.high:.3f})"
            for each in (self.precision, self.recall)
        )
        words = (
            f"{self.rule}{with_confidence}: score > {self.threshold:.6g} raises {self.alerts:g} "
            f"alerts in {self.rows:g} held-out rows, precision {precision}, recall {recall}."
        )
        if self.met:
            return words
        if self.confidence is None:
            return f"{words} Not met: the best held-out threshold has {self.bound:.4g}."
        return (
            f"{words} Not met: the {self.n_rare:g} rare among {self.rows:g} held-out rows vouch "
            f"for {self.bound:.4g} at confidence {self.confidence:g} at best. More held-out rows, "
            "a smaller confidence or a weaker constraint would be met; confidence=None takes the "
            "held-out rows at their word."
        )


def chosen_by_hand(
    threshold: float, y: ArrayLike, scores: ArrayLike, sample_weight: ArrayLike | None = None
) -> ChosenThreshold:
    """A threshold that was named, and how it does on held-out rows.

    Nothing is vouched for: ``rule`` says where it is, and its intervals are those of any threshold
    named before. Raises `ValueError` as `ThresholdRule.choose`.

    >>> chosen = chosen_by_hand(2.5, [0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0])
    >>> chosen.rule, chosen.alerts, chosen.recall.value, chosen.guaranteed
    ('score > 2.5', 2.0, 0.5, False)
    """
    held = HeldOutCuts.read(y, scores, sample_weight)
    n_above = int(np.searchsorted(-held.score, -threshold, side="left"))
    cut = int(np.searchsorted(held.ends, n_above))
    found = ChosenCut(cut, True, threshold, None, "named by hand")
    return replace(
        _describe(held, found, f"score > {threshold:g}", None, None), threshold=threshold
    )


def _describe(
    held: HeldOutCuts,
    found: ChosenCut,
    rule: str,
    confidence: float | None,
    prevalence: float | None,
) -> ChosenThreshold:
    """Describe the threshold of a cut, with intervals and findings."""
    cut, level = found.cut, _LEVEL if confidence is None else confidence
    wanted = None if found.wanted is None else float(found.wanted)
    bound = float(found.bound)
    shortfall = 0.0 if found.met or wanted is None else abs(bound - wanted)
    recall, fpr = (
        exact_interval(float(share[cut]) * trials, trials, level)
        for share, trials in (
            (held.recalls(), held.rare_trials),
            (held.false_positive_rates(), held.majority_trials),
        )
    )
    alerts, rows = float(held.rare[cut] + held.majority[cut]), held.n_rare + held.n_majority
    findings = []
    if not found.met:
        values = {"rule": rule, "wanted": found.wanted, "bound": found.bound}
        values["shortfall"] = shortfall
        remedy = {"confidence": "smaller"}
        findings.append(Finding(FindingKind.CONSTRAINT_NOT_MET, values, remedy))
    if alerts == 0:
        findings.append(Finding(FindingKind.NO_ALERTS, {"rule": rule}))
    if found.guaranteed and not held.whole:
        trials = {"rare": held.rare_trials, "majority": held.majority_trials}
        reason = {"reason": "weights are not whole", **trials}
        findings.append(Finding(FindingKind.APPROXIMATE, reason))
    return ChosenThreshold(
        threshold=held.threshold(cut),
        rule=rule,
        met=found.met,
        confidence=confidence,
        guaranteed=found.guaranteed and held.whole,
        procedure=found.procedure,
        bound=bound,
        wanted=wanted,
        shortfall=shortfall,
        alerts=alerts,
        rows=rows,
        precision=_precision(held, cut, level, prevalence),
        recall=recall,
        false_positive_rate=fpr,
        level=level,
        prevalence=held.n_rare / rows if prevalence is None else prevalence,
        n_rare=held.n_rare,
        findings=tuple(findings),
    )


def _precision(held: HeldOutCuts, cut: int, level: float, prevalence: float | None) -> Interval:
    """Precision above a cut; at another prevalence from intervals of both classes, half each."""
    if prevalence is None or held.trials[cut] <= 0:
        trials = float(held.trials[cut])
        value = held.precisions(None)[cut] if trials > 0 else 0.0
        return exact_interval(float(value) * trials, trials, level)
    half = (1.0 + level) / 2.0
    recall = exact_interval(float(held.recalls()[cut]) * held.rare_trials, held.rare_trials, half)
    hits = float(held.false_positive_rates()[cut]) * held.majority_trials
    fpr = exact_interval(hits, held.majority_trials, half)

    def share(of_rare: float, of_majority: float) -> float:
        rare, majority = prevalence * of_rare, (1.0 - prevalence) * of_majority
        return rare / (rare + majority) if rare + majority > 0 else 0.0

    low, high = share(recall.low, fpr.high), share(recall.high, fpr.low)
    return Interval(share(recall.value, fpr.value), low, high)


@dataclass(frozen=True)
class ThresholdRule:
    """A constraint that a threshold keeps on rows to come, with a confidence, or an aim.

    Made by its class methods: `min_precision`, `min_recall`, `max_fpr`, `max_alerts`,
    `least_cost`, `f_beta`. `choose` finds the threshold on held-out scores.

    Held-out rows are a sample: the threshold that just keeps a constraint on them breaks it on
    fresh rows about every second time, and more often than that when it is the best of many. Here
    the constraint holds on fresh rows in a share `confidence` of samples at least, by a procedure
    that is exact at any number of rows (Clopper-Pearson, order statistics, learn then test), for
    rows drawn alike and a model that did not see them.

    Parameters
    ----------
    constraint : Constraint
        As the class methods make it.
    confidence : float or None, default=0.9
        Strictly between 0 and 1. None takes held-out rows at their word: no guarantee. Aims
        (`least_cost`, `f_beta`) have none either way.
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
    (True, 147.0, True)
    >>> ThresholdRule.max_alerts(20, rows=1000).choose(y, scores).alerts
    73.0
    """

    constraint: Constraint
    confidence: float | None = 0.9
    prevalence: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.constraint, Constraint):
            raise ValueError(
                f"constraint={self.constraint!r} is none: use a class method, such as "
                "ThresholdRule.min_precision(0.3)."
            )
        between = "None or a number strictly between 0 and 1"
        stated = {"confidence": self.confidence, "prevalence": self.prevalence}
        for name, value in stated.items():
            if value is not None:
                check_number(name, value, between, 0.0, 1.0)

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
        confidence: float | None = 0.9,
        prevalence: float | None = None,
    ) -> Self:
        """The lowest threshold with at most `number` alerts in the next `rows` rows.

        Without `rows`: on a day to come, which needs the time of each row. The count itself is
        what the confidence is about: one batch (or day) in ten may have more at 0.9.
        """
        constraint = AtMostAlertsADay(number) if rows is None else AtMostAlerts(number, rows)
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
            that are not whole count as so many rows as have the same variance
            (``(sum w)**2 / sum w**2``), and the guarantee is approximate.
        costs : mapping of str to array-like of shape (n,), optional
            Costs of each row, by the names that `least_cost` was given.
        time : array-like of shape (n,), optional
            When each row was: for alerts a day.

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
        held = HeldOutCuts.read(y, scores, sample_weight, time, costs)
        found = self.constraint.find(held, self.confidence, self.prevalence)
        return _describe(held, found, self.words, self.confidence, self.prevalence)


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
        return {"block": self.block.to_dict(), "review": self.review.to_dict()}


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
    [86, 225, 4689]
    """

    block: ThresholdRule
    review: ThresholdRule

    def __post_init__(self) -> None:
        for name, rule in (("block", self.block), ("review", self.review)):
            if not isinstance(rule, ThresholdRule):
                raise ValueError(f"{name}={rule!r} must be a ThresholdRule.")

    def choose(
        self,
        y: ArrayLike,
        scores: ArrayLike,
        sample_weight: ArrayLike | None = None,
        *,
        costs: Mapping[str, Any] | None = None,
        time: Any = None,
    ) -> ChosenBand:
        """Both thresholds; parameters as of `ThresholdRule.choose`."""
        block, review = (
            rule.choose(y, scores, sample_weight, costs=costs, time=time)
            for rule in (self.block, self.review)
        )
        if review.threshold < block.threshold:
            return ChosenBand(block, review)
        values = {"block": block.threshold, "review": review.threshold}
        finding = Finding(FindingKind.NOTHING_TO_REVIEW, values, {"review": "a weaker rule"})
        return ChosenBand(block, replace(review, findings=(*review.findings, finding)))
