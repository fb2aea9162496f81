"""Trees of scikit-learn as a `TreeSum`."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from rareclass.ensemble.functions.float32_thresholds import before_rounding
from rareclass.ensemble.functions.tree_sum import Tree, TreeSum


def from_histogram_boosting(model: Any) -> TreeSum:
    """The raw score, log odds of the second class, of a `HistGradientBoostingClassifier`.

    Its splits must be numerical; there are two classes.
    """
    trees = [_boosted_tree(predictor.nodes) for (predictor,) in model._predictors]
    return TreeSum.of(trees, float(model._baseline_prediction[0, 0]))


def _boosted_tree(nodes: np.ndarray) -> Tree:
    if nodes["is_categorical"].any():
        raise ValueError("a split by category is no comparison with a threshold.")
    leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(leaf, -1, nodes[side].astype(np.int64)) for side in ("left", "right"))
    return Tree(
        nodes["feature_idx"],
        nodes["num_threshold"],
        left,
        right,
        nodes["missing_go_to_left"],
        nodes["value"],
    )


def from_forest(trees: Sequence[Any]) -> TreeSum:
    """The mean share of the second class in the leaves of decision trees or extra trees.

    Each was learned from two classes; of a forest, pass its ``estimators_``.
    """
    learned = [each.tree_ for each in trees]
    return TreeSum.of(
        [
            Tree(
                tree.feature,
                before_rounding(tree.threshold),
                tree.children_left,
                tree.children_right,
                tree.missing_go_to_left,
                tree.value[:, 0, 1] / len(learned),
            )
            for tree in learned
        ]
    )
