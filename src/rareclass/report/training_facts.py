"""Facts of a model that its reports state, in the words of a report."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rareclass.model.facts import CombinationFacts, ModelFacts, facts_as_json
from rareclass.model.model import Model
from rareclass.report.document import Fact
from rareclass.tables.columns import Column


@dataclass(frozen=True)
class ReportFacts:
    """How a model was trained; None, 0 or empty where its file does not say."""

    target: str
    rare_label: str
    rest_label: str
    label_counts: Any  # labels of training, with their rows
    columns: tuple[Column, ...]
    importances: Mapping[str, float]
    n_rows: int
    n_rare: int | None
    n_without_target: int
    n_copies: int
    copies_count: bool  # copies count as often as they occur, not once
    date: str
    time: str | None  # column by which rows were held out
    estimated_by: str  # "cross-fitting", "held-out rows", ...
    trained_on_all_rows: bool
    rule: str  # sets the threshold, in words
    confidence: float | None  # of a rule that is guaranteed
    settings: tuple[Fact, ...]
    versions: tuple[Fact, ...]  # members of an ensemble, and versions of packages

    @property
    def rare(self) -> str:
        """Target and label of the rare class."""
        return f"{self.target} = {self.rare_label}"

    @property
    def rest(self) -> str:
        """Target and label of the majority class."""
        return "the rest" if self.rest_label == "rest" else f"{self.target} = {self.rest_label}"


_SETTINGS = {
    "date": "Trained", "method": "Method", "objective": "Objective", "seed": "Seed",
    "time_budget": "Time budget, seconds", "estimated_by": "Estimated by",
    "holdout": "Share held out", "groups": "Kept together by", "time": "Held out by time",
    "lam": "lam", "width": "Kernel width", "n_landmarks": "Landmarks", "C": "Cost C",
    "covariance": "Covariance",
}  # fmt: skip


def training_facts(model: Model) -> ReportFacts:
    """Return the facts of a model of a rare class; raises `InputError` for one of levels."""
    facts, target = model.facts, model.rare_class
    training, rule = facts.training, facts.rule
    return ReportFacts(
        target=target.target,
        rare_label=target.rare_label,
        rest_label=target.rest_label,
        label_counts=target.label_counts,
        columns=facts.columns,
        importances=facts.importances,
        n_rows=0 if training is None else training.n_rows,
        n_rare=target.n_rare,
        n_without_target=0 if training is None else training.n_rows_without_target,
        n_copies=0 if training is None else training.n_copies_collapsed,
        copies_count=training is not None and training.copies_count,
        date="" if training is None else training.date,
        time=None if training is None else training.time,
        estimated_by=str(None if training is None else training.estimated_by),
        trained_on_all_rows=training is not None and training.trained_on_all_rows,
        rule="" if rule is None else rule.rule,
        confidence=rule.confidence if rule is not None and rule.guaranteed else None,
        settings=tuple(_settings(facts)),
        versions=tuple(_versions(facts)),
    )


def _settings(facts: ModelFacts) -> list[Fact]:
    """Settings by the names that a reader knows."""
    told, listed = facts_as_json(facts), []
    for key, name in _SETTINGS.items():
        value = told.get(key)
        if value not in (None, "", 0.0) or (key == "seed" and value is not None):
            listed.append(Fact(name, f"{value:g}" if isinstance(value, float) else str(value)))
    return listed


def _versions(facts: ModelFacts) -> list[Fact]:
    listed = []
    if isinstance(facts.method, CombinationFacts):
        members = [each.member for each in facts.method.leaderboard if each.weight > 0]
        listed.append(Fact("Members", ", ".join(dict.fromkeys(members))))
    if facts.training is not None:
        versions = facts.training.versions.items()
        listed.append(Fact("Versions", ", ".join(f"{name} {number}" for name, number in versions)))
    return listed
