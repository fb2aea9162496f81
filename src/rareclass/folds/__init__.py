"""Folds that keep rare rows: stratified, by group, by time; scikit-learn's splitter interface."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rareclass.folds.splitters import RareGroupKFold, RareStratifiedKFold, RareTimeSplit

__all__ = ["RareGroupKFold", "RareStratifiedKFold", "RareTimeSplit"]


def __getattr__(name: str) -> Any:
    """Import a splitter on first use: scoring needs none of them, nor scikit-learn's own."""
    if name in __all__:
        return getattr(import_module("rareclass.folds.splitters"), name)
    raise AttributeError(f"module 'rareclass.folds' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
