"""The chosen threshold, with what held-out rows say of it."""

from dataclasses import dataclass, replace
from typing import Any, Self

from numpy.typing import ArrayLike

from rareclass.decide.alert_budget import PeriodBudget
from rareclass.decide.constraints import USEFUL_RECALL, ChosenCut, Share
from rareclass.findings import Finding, FindingKind
from rareclass.metrics.held_out_cuts import HeldOutCuts
from rareclass.metrics.intervals import Interval, exact_interval
from rareclass.stored import plain_data

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
        no whole copies, rows of groups, nor without a confidence or a constraint, nor where
        `DecisionClassifier` learns from all rows after it has chosen.
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
    useful_bound : float or None
        What is vouched for of a precision at a held-out recall of 0.25 or more; None of others.
    n_independent : float or None
        Independent rare rows that those of groups count as; None without groups.
    budget : PeriodBudget or None
        Of alerts a period: in how many held-out periods there are more.
    measure, batch : str, int or None
        What the rule limits, as "recall" (None of alerts), and the rows that a limit is of.
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
    useful_bound: float | None = None
    n_independent: float | None = None
    budget: PeriodBudget | None = None
    measure: str | None = None
    batch: int | None = None
    findings: tuple[Finding, ...] = ()

    def failing(self, bound: float) -> Self:
        """Return the threshold with a rule that is not met: its measure is only `bound`."""
        assert self.wanted is not None
        shortfall = abs(bound - self.wanted)
        values = {"rule": self.rule, "wanted": self.wanted, "bound": bound, "shortfall": shortfall}
        finding = Finding(FindingKind.CONSTRAINT_NOT_MET, values, {"confidence": "smaller"})
        failed = replace(self, met=False, guaranteed=False, bound=bound, shortfall=shortfall)
        return replace(failed, findings=(finding, *self.findings))

    def approximately(self, reason: str) -> Self:
        """Return the threshold with an inexact guarantee, and the finding that says why."""
        if not self.guaranteed:
            return self
        finding = Finding(FindingKind.APPROXIMATE, {"reason": reason})
        return replace(self, guaranteed=False, findings=(*self.findings, finding))

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as dicts, lists and numbers, for JSON."""
        return plain_data(self)

    def says(self) -> str:
        """Describe the threshold in a sentence or two."""
        with_confidence = ""
        if self.met and self.confidence is not None:
            about = "" if self.guaranteed else "about "
            with_confidence = f" at confidence {about}{self.confidence:g}"
        words = (
            f"{self.rule}{with_confidence}: score > {self.threshold:.4g} raises {self.alerts:,.0f} "
            f"alerts in {self.rows:,.0f} held-out rows, precision {self.precision.text()}, "
            f"recall {self.recall.text()}."
        )
        remedy = ""
        if not self.met and self.confidence is not None:
            remedy = (
                " Give more held-out rows, a smaller confidence or a weaker constraint; with "
                "confidence=None there is no guarantee."
            )
        return f"{words} {self.caveat()}{remedy}".rstrip()

    def rule_text(self) -> str:
        """Return the rule with its confidence, and whether it is met."""
        sure = "" if self.confidence is None else f", confidence {self.confidence:g}"
        inexact = " (approximate)" if sure and self.met and not self.guaranteed else ""
        return f"{self.rule}{sure}{inexact}{'' if self.met else ' (not met)'}"

    def caveat(self) -> str:
        """Say by which bound the constraint is not met, and what is guaranteed; "" if all is well.

        Of a precision also what is guaranteed at a recall of 0.25 or more, where the threshold
        finds fewer of the rare rows.
        """
        useful, verb = "", "have" if self.confidence is None else "guarantee"
        if self.useful_bound is not None and self.recall.value < USEFUL_RECALL:
            useful = (
                f" Recall is only {self.recall.value:.3f}. For a recall of {USEFUL_RECALL:g} or "
                f"more, these rows {verb} a precision of at most {self.useful_bound:.4g}."
            )
        if self.met:
            return useful.strip()
        if self.confidence is None:
            return f"The rule is not met: the best held-out threshold has {self.bound:.4g}.{useful}"
        count = ""
        if self.n_independent is not None:
            count = f" (they count as {self.n_independent:,.0f} independent ones)"
        return (
            f"The rule is not met: {self.n_rare:,.0f} rare{count} among {self.rows:,.0f} held-out "
            f"rows guarantee at best {self.bound:.4g}, at confidence {self.confidence:g}; this is "
            f"the closest threshold.{useful}"
        )


def chosen_by_hand(
    threshold: float,
    y: ArrayLike,
    scores: ArrayLike,
    sample_weight: ArrayLike | None = None,
    prevalence: float | None = None,
    groups: Any = None,
) -> ChosenThreshold:
    """A threshold that was named, and how it does on held-out rows.

    Nothing is vouched for: ``rule`` says where it is, and its intervals are those of any threshold
    named before. Raises `ValueError` as `ThresholdRule.choose`.

    >>> chosen = chosen_by_hand(2.5, [0, 0, 1, 1], [1.0, 3.0, 2.0, 4.0])
    >>> chosen.rule, chosen.alerts, chosen.recall.value, chosen.guaranteed
    ('score > 2.5', 2.0, 0.5, False)
    """
    held = HeldOutCuts.read(y, scores, sample_weight, groups=groups)
    found = ChosenCut(held.at(threshold), True, threshold, None, "given")
    return replace(
        describe(held, found, f"score > {threshold:g}", None, prevalence), threshold=threshold
    )


def describe(
    held: HeldOutCuts, found: ChosenCut, rule: str, confidence: Share, prevalence: Share
) -> ChosenThreshold:
    """Describe the threshold of a cut, with intervals and findings."""
    cut, level = found.cut, _LEVEL if confidence is None else confidence
    tests = held.tests_of(cut)
    precision, recall, fpr = (exact_interval(*each, level) for each in tests)
    alerts, rows = float(held.rare[cut] + held.majority[cut]), held.n_rare + held.n_majority
    findings, bound = [], float(found.bound)
    if alerts and prevalence is not None:
        precision = precision_at(*tests[1:], level, prevalence)
    if alerts == 0:
        findings.append(Finding(FindingKind.NO_ALERTS, {"rule": rule}))
    if found.guaranteed and held.inexact:
        trials = {"rare": held.rare_trials, "majority": held.majority_trials}
        values = {"reason": held.inexact, **trials}
        findings.append(Finding(FindingKind.APPROXIMATE, values))
    chosen = ChosenThreshold(
        threshold=held.threshold(cut),
        rule=rule,
        met=True,
        confidence=confidence,
        guaranteed=found.guaranteed and not held.inexact,
        procedure=found.procedure,
        bound=bound,
        wanted=None if found.wanted is None else float(found.wanted),
        shortfall=0.0,
        alerts=alerts,
        rows=rows,
        precision=precision,
        recall=recall,
        false_positive_rate=fpr,
        level=level,
        prevalence=held.n_rare / rows if prevalence is None else prevalence,
        n_rare=held.n_rare,
        n_independent=held.rare_trials if held.alike > 1.0 else None,
        useful_bound=None if found.useful is None else float(found.useful),
        findings=tuple(findings),
    )
    return chosen if found.met else chosen.failing(bound)


def precision_at(
    found: tuple[float, float], false: tuple[float, float], level: float, prevalence: float
) -> Interval:
    """Precision where a share `prevalence` of the rows is rare, from intervals of both classes.

    `found` are the rare rows above the threshold and all of them, `false` the same of the others.
    Each class has half of the chance of error.
    """
    recall, fpr = (exact_interval(*each, (1.0 + level) / 2.0) for each in (found, false))
    return precision_from(recall, fpr, prevalence)


def precision_from(recall: Interval, fpr: Interval, prevalence: float) -> Interval:
    """Precision where a share `prevalence` of the rows is rare, from bounds of both classes."""

    def share(of_rare: float, of_majority: float) -> float:
        rare, majority = prevalence * of_rare, (1.0 - prevalence) * of_majority
        return rare / (rare + majority) if rare + majority > 0 else 0.0

    low, high = share(recall.low, fpr.high), share(recall.high, fpr.low)
    return Interval(share(recall.value, fpr.value), low, high)
