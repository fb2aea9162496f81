"""What the labels of a file mean: a rare class and the rest, or levels in order."""

from typing import Any

from rareclass.verbs.targets.levels import KIND as LEVELS
from rareclass.verbs.targets.levels import LevelDecision
from rareclass.verbs.targets.rare_class import KIND as RARE_CLASS
from rareclass.verbs.targets.rare_class import RareDecision
from rareclass.verbs.targets.target import Decision

_DECISIONS: dict[str, type[Decision]] = {RARE_CLASS: RareDecision, LEVELS: LevelDecision}


def decision_of(model: Any, metadata: dict[str, Any]) -> Decision:
    """Return what a model with these metadata decides."""
    return _DECISIONS[_kind(metadata)](model, metadata)


def needed_for_decisions(metadata: dict[str, Any]) -> set[str]:
    """Return what `metadata` must say besides what every model file says."""
    return _DECISIONS[_kind(metadata)].needed


def _kind(metadata: dict[str, Any]) -> str:
    """The kind of target; one that is not known, or not named, is a rare class."""
    named = metadata.get("target_kind")
    return named if isinstance(named, str) and named in _DECISIONS else RARE_CLASS
