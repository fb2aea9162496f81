"""Trees of LightGBM as a `TreeSum`."""

from typing import Any

import numpy as np

from rareclass.ensemble.functions.tree_sum import Tree, TreeSum

# Bits of a split's decision_type: whether it asks for a category, where missing values go, and,
# from the third bit on, what counts as missing.
_BY_CATEGORY, _LEFT_BY_DEFAULT, _MISSING = 1, 2, 2
_NOTHING, _NAN = 0, 2


def from_lightgbm(booster: Any) -> TreeSum:
    """The raw score of a LightGBM `Booster` of one output and numerical splits.

    Read from its model in text, which holds every number in full.
    """
    text = booster.model_to_string().split("end of trees")[0]
    return TreeSum.of([_tree(section) for section in text.split("\nTree=")[1:]])


def _tree(section: str) -> Tree:
    entries = dict(line.split("=", 1) for line in section.splitlines() if "=" in line)

    def numbers(name: str, kind: Any = np.float64) -> np.ndarray:
        return np.array(entries.get(name, "").split(), dtype=kind)

    leaves, threshold = numbers("leaf_value"), numbers("threshold")
    decision = numbers("decision_type", np.int64)
    missing = decision >> _MISSING
    if (decision & _BY_CATEGORY).any() or not np.isin(missing, (_NOTHING, _NAN)).all():
        raise ValueError("a split by category, or with 0 as missing, is no plain comparison.")
    # Where nothing was missing in training, NaN is compared as if it were 0.
    by_default = (decision & _LEFT_BY_DEFAULT) > 0
    missing_goes_left = np.where(missing == _NAN, by_default, threshold >= 0)
    left, right = (
        np.where(child < 0, len(threshold) + ~child, child)
        for child in (numbers("left_child", np.int64), numbers("right_child", np.int64))
    )
    # Splits first, then leaves.
    at_leaves = np.zeros(len(leaves))
    none = np.full(len(leaves), -1)
    return Tree(
        np.concatenate([numbers("split_feature", np.int64), none]),
        np.concatenate([threshold, at_leaves]),
        np.concatenate([left, none]),
        np.concatenate([right, none]),
        np.concatenate([missing_goes_left, at_leaves]),
        np.concatenate([np.zeros(len(threshold)), leaves]),
    )
