"""What the labels of a file mean: a rare class and the rest, or levels in order."""

from typing import Any

from rareclass.model.soundness import finite_vector
from rareclass.model.targets.levels import KIND as LEVELS
from rareclass.model.targets.levels import LevelDecision
from rareclass.model.targets.rare_class import KIND as RARE_CLASS
from rareclass.model.targets.rare_class import RareDecision
from rareclass.model.targets.target import Decision

_DECISIONS: dict[str, type[Decision]] = {RARE_CLASS: RareDecision, LEVELS: LevelDecision}


def decision_of(model: Any, metadata: dict[str, Any]) -> Decision:
    """Return what a model with these metadata decides."""
    return _DECISIONS[_kind(metadata)](model, metadata)


def needed_for_decisions(metadata: dict[str, Any]) -> set[str]:
    """Return what `metadata` must say besides what every model file says."""
    return _DECISIONS[_kind(metadata)].needed


def check_metadata(metadata: dict[str, Any]) -> None:
    """Raise `ValueError` where what scoring looks up in metadata of a file is of another type."""
    decision = _DECISIONS[_kind(metadata)]
    texts = ["target", "format", *(decision.needed & {"rare_label", "rest_label"})]
    for name in texts:
        if not isinstance(metadata[name], str):
            raise ValueError(f"{name} of its metadata is no text")
    columns = metadata["columns"]
    if not isinstance(columns, list) or not all(
        isinstance(each, dict) and isinstance(each.get("name"), str) for each in columns
    ):
        raise ValueError("the columns of its metadata have no names")
    quantiles = finite_vector(metadata[decision.quantiles], f"{decision.quantiles} of its metadata")
    if not len(quantiles) or (quantiles[1:] < quantiles[:-1]).any():
        raise ValueError(f"{decision.quantiles} of its metadata do not increase")
    levels = metadata.get("levels", [])
    if not isinstance(levels, list) or not all(isinstance(each, str) for each in levels):
        raise ValueError("the levels of its metadata are no texts")


def _kind(metadata: dict[str, Any]) -> str:
    """The kind of target; one that is not known, or not named, is a rare class."""
    named = metadata.get("target_kind")
    return named if isinstance(named, str) and named in _DECISIONS else RARE_CLASS
