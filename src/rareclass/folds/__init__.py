"""Folds that keep rare rows: stratified, by group, by time; scikit-learn's splitter interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.folds.rare_group_k_fold import RareGroupKFold
    from rareclass.folds.rare_stratified_k_fold import RareStratifiedKFold
    from rareclass.folds.rare_time_split import RareTimeSplit

__all__ = ["RareGroupKFold", "RareStratifiedKFold", "RareTimeSplit"]

_HOME = {
    "RareGroupKFold": "rare_group_k_fold",
    "RareStratifiedKFold": "rare_stratified_k_fold",
    "RareTimeSplit": "rare_time_split",
}


def __getattr__(name: str) -> Any:
    """Import a splitter on first use: scoring needs none of them, nor scikit-learn's own."""
    if name in _HOME:
        return getattr(import_module(f"rareclass.folds.{_HOME[name]}"), name)
    raise AttributeError(f"module 'rareclass.folds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
