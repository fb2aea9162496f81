"""Trees of XGBoost as a `TreeSum`."""

import json
from typing import Any

import numpy as np
from scipy.special import logit

from rareclass.ensemble.functions.float32_thresholds import below_float32
from rareclass.ensemble.functions.tree_sum import Tree, TreeSum


def from_xgboost(booster: Any) -> TreeSum:
    """The margin, log odds, of an XGBoost `Booster` of "binary:logistic" and numerical splits.

    XGBoost itself adds up in float32.
    """
    learner = json.loads(bytes(booster.save_raw("json")))["learner"]
    if learner["objective"]["name"] != "binary:logistic":
        raise ValueError("the margin is known of the objective 'binary:logistic' only.")
    base = np.float32(learner["learner_model_param"]["base_score"].strip("[]"))
    trees = learner["gradient_booster"]["model"]["trees"]
    return TreeSum.of([_tree(tree) for tree in trees], float(logit(float(base))))


def _tree(tree: dict[str, Any]) -> Tree:
    if any(tree["split_type"]):
        raise ValueError("a split by category is no comparison with a threshold.")
    numbers = np.array(tree["split_conditions"], dtype=np.float32)  # at leaves their values
    return Tree(
        np.array(tree["split_indices"]),
        below_float32(numbers),
        np.array(tree["left_children"]),
        np.array(tree["right_children"]),
        np.array(tree["default_left"]),
        numbers,
    )
