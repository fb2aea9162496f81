"""Facts of a model file that reports state, read from its metadata in this one place."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

from rareclass.model.model_file import ModelFile
from rareclass.report.document import Fact


class TrainedColumn(NamedTuple):
    """A column of the training rows."""

    name: str
    kind: str
    treatment: str
    n_missing: int | None


@dataclass(frozen=True)
class TrainingFacts:
    """How a model was trained; None, 0 or empty where its file does not say."""

    target: str
    rare_label: str
    rest_label: str
    label_counts: Any  # labels of training, with their rows
    columns: tuple[TrainedColumn, ...]
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
    "lam": "lam", "width": "Kernel width", "n_landmarks": "Landmarks", "cost": "Cost C",
    "covariance": "Covariance", "loss": "Loss",
}  # fmt: skip


def training_facts(content: ModelFile) -> TrainingFacts:
    """Read the facts of a model file."""
    metadata = content.metadata
    rule = metadata.get("rule") or {}
    columns = (
        TrainedColumn(
            each["name"],
            each.get("kind", ""),
            each.get("treatment", ""),
            each.get("n_missing"),
        )
        for each in metadata.get("columns", ())
    )
    return TrainingFacts(
        target=str(metadata.get("target", "")),
        rare_label=str(metadata.get("rare_label", "")),
        rest_label=str(metadata.get("rest_label", "rest")),
        label_counts=metadata.get("label_counts", ()),
        columns=tuple(columns),
        importances=metadata.get("importances") or {},
        n_rows=metadata.get("n_rows") or 0,
        n_rare=metadata.get("n_rare"),
        n_without_target=metadata.get("n_rows_without_target") or 0,
        n_copies=metadata.get("n_copies_collapsed") or 0,
        copies_count=bool(metadata.get("copies_count")),
        date=metadata.get("date") or "",
        time=metadata.get("time"),
        estimated_by=str(metadata.get("estimated_by")),
        trained_on_all_rows=bool(metadata.get("trained_on_all_rows")),
        rule=rule.get("rule") or "",
        confidence=rule["confidence"] if rule.get("guaranteed") else None,
        settings=tuple(_settings(metadata)),
        versions=tuple(_versions(metadata)),
    )


def _settings(metadata: Mapping[str, Any]) -> list[Fact]:
    """Settings by the names that a reader knows."""
    facts = []
    for key, name in _SETTINGS.items():
        value = metadata.get(key)
        if value not in (None, "", 0.0) or key == "seed":
            facts.append(Fact(name, f"{value:g}" if isinstance(value, float) else str(value)))
    return facts


def _versions(metadata: Mapping[str, Any]) -> list[Fact]:
    facts = []
    members = [each["member"] for each in metadata.get("leaderboard", ()) if each["weight"] > 0]
    if members:
        facts.append(Fact("Members", ", ".join(dict.fromkeys(members))))
    versions = metadata.get("versions") or {}
    if versions:
        words = ", ".join(f"{name} {number}" for name, number in versions.items())
        facts.append(Fact("Versions", words))
    return facts
