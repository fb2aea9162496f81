"""A threshold with what held-out rows say of it, as plain numbers."""

from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from rareclass.decide.rules.constraint import Found
from rareclass.decide.rules.exact_bounds import exact_interval
from rareclass.decide.rules.held_out import HeldOut
from rareclass.findings import Finding, FindingKind
from rareclass.metrics.interval import Interval

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
        """The same with a guarantee that is not exact, and the finding that says why."""
        if not self.guaranteed:
            return self
        finding = Finding(FindingKind.APPROXIMATE, {"reason": reason})
        return replace(self, guaranteed=False, findings=(*self.findings, finding))

    def to_dict(self) -> dict[str, Any]:
        """All of it as dicts, lists and numbers, for JSON."""
        given = asdict(self)
        for name in ("precision", "recall", "false_positive_rate"):
            given[name] = dict(getattr(self, name)._asdict())
        given["findings"] = [
            {"kind": one.kind, "values": dict(one.values), "remedy": dict(one.remedy)}
            for one in self.findings
        ]
        return given

    def says(self) -> str:
        """One sentence or two on the threshold."""
        with_confidence = ""
        if self.met and self.confidence is not None:
            about = "" if self.guaranteed else "about "
            with_confidence = f" at confidence {about}{self.confidence:g}"
        words = (
            f"{self.rule}{with_confidence}: score > {self.threshold:.6g} raises "
            f"{self.alerts:g} alerts in {self.rows:g} held-out rows, precision "
            f"{_share(self.precision)}, recall {_share(self.recall)}."
        )
        if not self.met:
            words += f" Not met: {says_unmet(self)}"
        return words


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
    held = HeldOut.read(y, scores, sample_weight)
    n_above = int(np.searchsorted(-held.score, -threshold, side="left"))
    cut = int(np.searchsorted(held.ends, n_above))
    found = Found(cut, True, threshold, None, "named by hand")
    return replace(judged(held, found, f"score > {threshold:g}", None, None), threshold=threshold)


def judged(
    held: HeldOut, found: Found, rule: str, confidence: float | None, prevalence: float | None
) -> ChosenThreshold:
    """The threshold of a cut, with intervals and findings."""
    cut, level = found.cut, _LEVEL if confidence is None else confidence
    guaranteed = found.guaranteed and held.whole
    shortfall = 0.0
    if not found.met and found.wanted is not None:
        shortfall = abs(float(found.bound) - float(found.wanted))
    recall, fpr = (
        exact_interval(float(share[cut]) * trials, trials, level)
        for share, trials in (
            (held.recalls(), held.rare_trials),
            (held.false_positive_rates(), held.majority_trials),
        )
    )
    alerts = float(held.rare[cut] + held.majority[cut])
    findings = []
    if not found.met:
        values = {"wanted": found.wanted, "bound": found.bound, "shortfall": shortfall}
        findings.append(
            Finding(
                FindingKind.CONSTRAINT_NOT_MET, {"rule": rule, **values}, {"confidence": "smaller"}
            )
        )
    if alerts == 0:
        findings.append(Finding(FindingKind.NO_ALERTS, {"rule": rule}))
    if found.guaranteed and not held.whole:
        trials = {"rare": held.rare_trials, "majority": held.majority_trials}
        findings.append(
            Finding(FindingKind.APPROXIMATE, {"reason": "weights are not whole", **trials})
        )
    return ChosenThreshold(
        threshold=held.threshold(cut),
        rule=rule,
        met=found.met,
        confidence=confidence,
        guaranteed=guaranteed,
        procedure=found.procedure,
        bound=float(found.bound),
        wanted=None if found.wanted is None else float(found.wanted),
        shortfall=shortfall,
        alerts=alerts,
        rows=held.n_rare + held.n_majority,
        precision=_precision(held, cut, level, prevalence),
        recall=recall,
        false_positive_rate=fpr,
        level=level,
        prevalence=(
            held.n_rare / (held.n_rare + held.n_majority) if prevalence is None else prevalence
        ),
        n_rare=held.n_rare,
        findings=tuple(findings),
    )


def says_unmet(chosen: ChosenThreshold) -> str:
    """Why the constraint is not met, and how far the best threshold is."""
    if chosen.confidence is None:
        return f"the best held-out threshold has {chosen.bound:.4g}."
    return (
        f"the {chosen.n_rare:g} rare among {chosen.rows:g} held-out rows vouch for "
        f"{chosen.bound:.4g} at confidence {chosen.confidence:g} at best. More held-out rows, a "
        "smaller confidence or a weaker constraint would be met; confidence=None takes the "
        "held-out rows at their word."
    )


def _precision(held: HeldOut, cut: int, level: float, prevalence: float | None) -> Interval:
    """Of the rows above; with another prevalence from intervals of both classes, half each."""
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


def _share(interval: Interval) -> str:
    return f"{interval.value:.3f} ({interval.low:.3f} to {interval.high:.3f})"
