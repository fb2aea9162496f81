"""Folds that keep rare rows: stratified, by group, by time; scikit-learn's splitter interface."""

from typing import TYPE_CHECKING

from rareclass.lazy_names import lazy_names

if TYPE_CHECKING:
    from rareclass.folds.splitters import RareGroupKFold, RareStratifiedKFold, RareTimeSplit

__all__ = ["RareGroupKFold", "RareStratifiedKFold", "RareTimeSplit"]

__getattr__, __dir__ = lazy_names(
    __name__, {".splitters": ["RareGroupKFold", "RareStratifiedKFold", "RareTimeSplit"]}
)
