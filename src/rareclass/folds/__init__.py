"""Folds that keep rare rows: stratified, by group, by time; scikit-learn's splitter interface."""

from rareclass.folds.rare_group_k_fold import RareGroupKFold
from rareclass.folds.rare_stratified_k_fold import RareStratifiedKFold
from rareclass.folds.rare_time_split import RareTimeSplit

__all__ = ["RareGroupKFold", "RareStratifiedKFold", "RareTimeSplit"]
