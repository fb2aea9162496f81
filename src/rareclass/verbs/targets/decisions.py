"""Which decision belongs to which kind of target."""

from typing import Any

from rareclass.verbs.targets.decision import Decision
from rareclass.verbs.targets.level_decision import LevelDecision
from rareclass.verbs.targets.level_target import KIND as LEVELS
from rareclass.verbs.targets.rare_decision import RareDecision
from rareclass.verbs.targets.rare_target import KIND as RARE_CLASS

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
